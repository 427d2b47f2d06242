//! Reduction of the sums of blocks, in a fixed order, and the memory for it.

use tma_runtime::Error;
use tma_runtime::launch::LaunchOn;
use tma_runtime::prelude::*;
use tma_runtime::tma_module;

use self::blocks::{LANES, add_up};
use super::rows::without_instance;
use super::{ModelElement, ModelError};
use crate::dependent::dependent;

/// Sums of columns over blocks.
#[tma_module]
pub mod blocks {
    use tma_runtime::prelude::*;

    /// Columns of a block.
    pub const LANES: u32 = 32;

    /// Threads of a block.
    const THREADS: u32 = 1024;

    /// Warps of a block.
    const WARPS: u32 = THREADS / LANES;

    /// Rows that a warp loads at a time: enough for all rows of 384 blocks, so that there is a single
    /// latency.
    const ROWS: u32 = 12;

    /// Adds up the rows of `parts`, rows × columns, to `weight`, and as many rows after these to
    /// `bias`. Warps take rows in turn, and the sums of warps are added in their order.
    #[tma_kernel(threads = THREADS, unchecked, instances(G in [bf16, f16, f32]))]
    pub fn add_up<G>(
        parts: Global<f32>,
        weight: Option<Global<G>>,
        bias: Option<Global<G>>,
        rows: u32,
        columns: u32,
        adds: bool,
    ) where
        G: TileElement + Number,
    {
        let sums: SharedArray<f32, THREADS> = shared();
        let column = block_idx().x * LANES + lane_idx();
        let is_bias = block_idx().y == 1;
        grid_dependency_launch();
        grid_dependency_wait();
        let start = block_idx().y as u64 * rows as u64 * columns as u64 + column as u64;
        let mut sum = 0.0f32;
        let mut row = warp_idx();
        while row < rows {
            let mut values = [0.0f32; ROWS as usize];
            for i in unroll(0..ROWS) {
                let of_warp = row + WARPS * i;
                let at = start + of_warp as u64 * columns as u64;
                if column < columns && of_warp < rows && at < parts.len() {
                    values[i as usize] = parts.get(at);
                }
            }
            for i in unroll(0..ROWS as usize) {
                sum += values[i];
            }
            row += WARPS * ROWS;
        }
        sums.set(thread_idx().x, sum);
        sync_threads();
        if warp_idx() == 0 && column < columns {
            let mut all = 0.0f32;
            for warp in unroll(0..WARPS) {
                all += sums.get(warp * LANES + lane_idx());
            }
            if is_bias {
                if let Some(bias) = bias {
                    let old = if adds { cast::<f32>(bias.get(column)) } else { 0.0 };
                    bias.set(column, cast::<G>(old + all));
                }
            } else {
                if let Some(weight) = weight {
                    let old = if adds { cast::<f32>(weight.get(column)) } else { 0.0 };
                    weight.set(column, cast::<G>(old + all));
                }
            }
        }
    }
}

/// Sums of columns over the groups of threads of a block.
#[tma_module]
pub mod groups {
    use tma_runtime::prelude::*;

    use crate::model::vectors::of_rows::Part;

    /// Adds to a thread's sums of columns in shared memory, or replaces them.
    #[tma_device]
    pub fn leave<const K: usize, const V: usize, const LEN: u32>(
        to: SharedArray<f32, LEN>,
        start: u32,
        part: Part,
        x: [[f32; V]; K],
        replaces: bool,
    ) {
        for k in unroll(0..K) {
            let at = start + part.column + k as u32 * part.step;
            if V == 1 {
                let old = if replaces { 0.0 } else { to.get(at) };
                to.set(at, old + x[k][0]);
            } else {
                for quarter in unroll(0..V / 4) {
                    let mut vector = [0.0f32; 4];
                    if !replaces {
                        vector = to.get_vec::<4>(at + 4 * quarter as u32);
                    }
                    for i in unroll(0..4usize) {
                        vector[i] += x[k][4 * quarter + i];
                    }
                    to.set_vec(at + 4 * quarter as u32, vector);
                }
            }
        }
    }

    /// Adds up the sums of columns of the `height` groups of threads of a block, in their order.
    /// All threads of the block call it.
    #[tma_device]
    pub fn add_groups<const LEN: u32>(
        from: SharedArray<f32, LEN>,
        span: u32,
        height: u32,
        columns: u32,
        to: Global<f32>,
        start: u64,
        threads: u32,
    ) {
        sync_threads();
        let mut column = thread_idx().x;
        while column < columns {
            let mut sum = 0.0f32;
            for group in 0..height {
                sum += from.get(group * span + column);
            }
            to.set(start + column as u64, sum);
            column += threads;
        }
        sync_threads();
    }
}

/// The gradients of columns.
#[derive(Debug)]
pub(super) struct ColumnGradients<'a, G> {
    pub(super) weight: Option<TensorViewMut<'a, G, 1>>,
    pub(super) bias: Option<TensorViewMut<'a, G, 1>>,
    /// Whether sums are added to what the tensors have.
    pub(super) accumulate: bool,
}

impl<G> ColumnGradients<'_, G> {
    /// Returns the number of sums of a column.
    pub(super) fn kinds(&self) -> u32 {
        match (&self.weight, &self.bias) {
            (None, None) => 0,
            (Some(_), None) => 1,
            (_, Some(_)) => 2,
        }
    }
}

/// The sums that blocks have left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts<'a> {
    pub(super) sums: &'a DeviceTensor<f32, 1>,
    pub(super) blocks: u32,
    pub(super) columns: u32,
}

/// Queues the sum of what blocks have added up.
pub(super) fn add_blocks<G: ModelElement>(
    on: &impl LaunchOn,
    parts: Parts<'_>,
    gradients: ColumnGradients<'_, G>,
) -> Result<(), ModelError> {
    let Parts { sums, blocks, columns } = parts;
    let kinds = gradients.kinds();
    add_up::find::<G>(add_up::Key {}).ok_or_else(|| without_instance(&[columns as usize]))?.launch(
        dependent(on),
        Grid::new(columns.div_ceil(LANES), kinds, 1),
        sums,
        gradients.weight,
        gradients.bias,
        blocks,
        columns,
        gradients.accumulate,
    )?;
    Ok(())
}

/// Memory in which blocks leave sums for the gradients of weights and tables. Only one call may use
/// it at a time: give each stream its own.
#[derive(Debug)]
pub struct GradientWorkspace {
    pub(super) sums: DeviceTensor<f32, 1>,
    pub(super) order: DeviceTensor<u32, 1>,
}

impl GradientWorkspace {
    /// Makes a workspace without memory. A call lets it grow.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`], [`Error::KernelFault`] and [`Error::Driver`].
    pub fn new(device: &Device) -> Result<Self, Error> {
        Ok(Self { sums: device.zeros([0])?, order: device.zeros([0])? })
    }

    /// Grows until there are so many sums, and positions of tokens. What it had before is freed
    /// once every launch that uses it has run.
    pub(super) fn grow(&mut self, device: &Device, sums: usize, order: usize) -> Result<(), Error> {
        if self.sums.len() < sums {
            self.sums = device.zeros([sums])?;
        }
        if self.order.len() < order {
            self.order = device.zeros([order])?;
        }
        Ok(())
    }
}
