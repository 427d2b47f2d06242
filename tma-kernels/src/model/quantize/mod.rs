//! Rows of `e4m3` with scales.

pub mod kernel;
pub mod staged;

use tma_runtime::Scalar;
use tma_runtime::launch::{LaunchOn, MapArg, MapArgMut};
use tma_runtime::prelude::*;

use self::kernel::rows::quantise;
use self::staged::batches::quantise_staged;
use super::rows::{Division, Rows, Staging, Strides, Tile, fits, flat, flat_mut, without_instance};
use super::{ModelElement, ModelError};
use crate::dependent::dependent;

/// The columns that share a scale.
const BLOCK: usize = 128;

/// The elements that share a scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleBlocks {
    /// Those of a row: the scales are rows × 1.
    Row,
    /// 128 columns of a row: the scales are rows × columns / 128, rounded up, as
    /// [`Scales::a`](crate::gemm::Scales::a) takes them.
    Columns128,
}

impl ScaleBlocks {
    /// Returns the number of scales of a row.
    fn of_row(self, columns: usize) -> usize {
        match self {
            Self::Row => 1,
            Self::Columns128 => columns.div_ceil(BLOCK),
        }
    }

    /// Returns the least number of threads of a row that passes through shared memory: those of a
    /// block of columns are adjacent, and in one warp.
    pub(super) fn least_width<T: Scalar>(self) -> u32 {
        match self {
            Self::Row => 1,
            Self::Columns128 => (BLOCK * size_of::<T>() / 16) as u32,
        }
    }

    /// Returns the division of rows: the lanes of a block are adjacent, and in one warp.
    pub(super) fn division<T: Scalar>(self, tile: Tile, rows: Rows) -> Division {
        let division = Division::of::<T>(tile, rows);
        match self {
            Self::Row => division,
            Self::Columns128 if tile.wide == 0 => Division::with_width::<T>(tile, rows, 32),
            Self::Columns128 => {
                Division::with_width::<T>(tile, rows, division.width.max(tile.lanes::<T>(BLOCK)))
            }
        }
    }
}

/// The destination of scales.
#[derive(Debug)]
pub struct ScalesMut<'a> {
    /// The elements that share a scale.
    pub blocks: ScaleBlocks,
    /// The scales, with any strides.
    pub scales: TensorViewMut<'a, f32, 2>,
}

impl<'a> ScalesMut<'a> {
    /// Checks the shape for rows × columns.
    pub(super) fn check(&self, shape: [usize; 2]) -> Result<(), ModelError> {
        let [rows, columns] = shape;
        fits("scales", &self.scales.shape(), &[rows, self.blocks.of_row(columns)])
    }

    pub(super) fn strides(&self) -> [usize; 2] {
        self.scales.strides()
    }

    /// Returns the scales from the first to the last one.
    pub(super) fn flat(self) -> Result<TensorViewMut<'a, f32, 1>, Error> {
        let (shape, strides) = (self.scales.shape(), self.scales.strides());
        let last = shape.iter().zip(strides).map(|(extent, stride)| extent.saturating_sub(1) * stride);
        self.scales.with_strides([last.sum::<usize>() + 1], [1])
    }
}

/// Queues the quantisation of rows: `scale = max|x| / 448` and `out = x / scale` as `e4m3`.
///
/// `x` and `out` are rows × columns. Scales are `f32`, and at least 2^-126, so that zeros stay
/// zeros. An element of `out` is that of `x` times the reciprocal of the scale, both rounded to
/// `f32`, and then rounded to `e4m3`. NaNs stay NaN and do not count for the maximum. An infinity
/// makes the scale infinite, its own result NaN, and the others that share the scale 0. A call
/// allocates nothing and does not wait.
///
/// ```
/// use tma_kernels::model::{ScaleBlocks, ScalesMut, quantize};
/// use tma_runtime::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::simulator();
/// let x = device.tensor(&[bf16::from_f32(-7.0); 4 * 256], [4, 256])?;
/// let mut out = device.zeros::<e4m3, 2>([4, 256])?;
/// let mut scales = device.zeros([4, 2])?;
/// let blocks = ScaleBlocks::Columns128;
/// quantize(&device, &x, &mut out, ScalesMut { blocks, scales: scales.view_mut() })?;
/// assert_eq!(scales.to_vec()?, [7.0 / 448.0; 8]);
/// assert!(out.to_vec()?.iter().all(|y| y.to_f32() == -448.0));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// `TMA0575` for shapes that do not match, `TMA0576` for rows whose elements are not adjacent and
/// `TMA0577` for too many rows or columns. Also the errors of
/// [`launch`](tma_runtime::launch::launch).
pub fn quantize<T: ModelElement>(
    on: &impl LaunchOn,
    x: impl MapArg<T, 2>,
    mut out: impl MapArgMut<e4m3, 2>,
    scales: ScalesMut<'_>,
) -> Result<(), ModelError> {
    let (x, out) = (x.view(), out.view_mut());
    let shape = x.shape();
    let rows = Rows::of(&shape)?;
    fits("out", &out.shape(), &shape)?;
    scales.check(shape)?;
    let of_x = Strides::of("x", &shape, &x.strides())?;
    let of_out = Strides::of("out", &shape, &out.strides())?;
    if rows.is_empty() {
        return Ok(());
    }
    let in_blocks = scales.blocks == ScaleBlocks::Columns128;
    let [scales_row, scales_block] = scales.strides();
    // Blocks of columns are as fast from registers: each has a scale of its own to compute and store.
    let staging = Staging::of::<T>(rows, &[of_x, of_out], 1, on.device().multiprocessors());
    if let Some(staging) = staging.filter(|_| !in_blocks) {
        let key = quantise_staged::Key { form: T::FORM, threads: staging.threads };
        quantise_staged::find::<T>(key).ok_or_else(|| without_instance(&shape))?.launch(
            dependent(on),
            Grid::x(staging.blocks),
            flat(x)?,
            flat_mut(out)?,
            scales.flat()?,
            rows.count,
            rows.columns,
            staging.width,
            staging.height,
            staging.run,
            of_x.inner,
            of_out.inner,
            scales_row as u64,
        )?;
        return Ok(());
    }
    let tile = Tile::of_rows::<T>(rows, &[of_x, of_out]);
    let division = scales.blocks.division::<T>(tile, rows);
    if in_blocks {
        division.check(&shape)?;
    }
    let key = quantise::Key { threads: tile.threads, k: tile.vectors, wide: tile.wide };
    quantise::find::<T>(key).ok_or_else(|| without_instance(&shape))?.launch(
        dependent(on),
        Grid::new(division.blocks, if in_blocks { division.parts } else { 1 }, 1),
        flat(x)?,
        flat_mut(out)?,
        scales.flat()?,
        rows.count,
        rows.columns,
        division.width,
        in_blocks,
        of_x.inner,
        of_out.inner,
        scales_row as u64,
        scales_block as u64,
    )?;
    Ok(())
}
