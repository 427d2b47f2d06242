//! Gradients of biases: sums of columns.

pub mod kernel;

use tma_runtime::Error;
use tma_runtime::launch::{LaunchOn, MapArg, MapArgMut};
use tma_runtime::prelude::*;

use self::kernel::rows::{ROWS, THREADS, add_columns};
use super::rows::{Rows, Strides, Tile, fits, flat, without_instance};
use super::sums::{ColumnGradients, Parts, add_blocks};
use super::{GradientWorkspace, ModelElement, ModelError};
use crate::dependent::dependent;

/// The blocks of a multiprocessor.
const BLOCKS: u32 = 4;

/// The threads of a row of a block at most: a warp.
const MOST_WIDTH: usize = 32;

/// The greatest number of columns of a block: a vector of eight for each thread of a row.
const MOST_COLUMNS: usize = MOST_WIDTH * 8;

/// Options of [`bias_backward`].
#[derive(Debug, Default)]
pub struct BiasBackwardOptions<'a> {
    /// Whether sums are added to what `dbias` has.
    pub accumulate: bool,
    /// Memory for sums. Without it, a call allocates its own, and waits when that is freed.
    pub workspace: Option<&'a mut GradientWorkspace>,
}

impl GradientWorkspace {
    /// Allocates the memory for the gradient of a bias with so many columns, of any number of rows.
    /// A call with more columns lets it grow.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`], [`Error::KernelFault`] and [`Error::Driver`].
    pub fn for_bias(device: &Device, columns: usize) -> Result<Self, Error> {
        // Several slices of rows have one block for each multiprocessor's place at most.
        let blocks = (BLOCKS * device.multiprocessors()) as usize;
        let mut workspace = Self::new(device)?;
        workspace.grow(device, columns.max(blocks * MOST_COLUMNS), 0)?;
        Ok(workspace)
    }
}

/// Queues `dbias[j] = Σ dy[i, j]` over all rows i: the gradient of a bias that is added to each row.
///
/// `dy` is rows × columns, and `dbias`, which may have another type, has a sum for each column. Rows
/// may be apart, but their elements must be adjacent. Without rows, sums are 0.
///
/// Columns are added in `f32`, from 0 on, and each sum is rounded once, after what `dbias` has is
/// added to it if [`accumulate`](BiasBackwardOptions::accumulate) is set. A NaN or an infinity
/// affects the sum of its column only. The order of additions depends on the shape, the alignment of
/// rows and the number of multiprocessors alone, so that a device produces the same bits each time.
/// A call queues two kernels, does not wait, and with a large enough workspace allocates nothing.
///
/// ```
/// use tma_kernels::model::{BiasBackwardOptions, bias_backward};
/// use tma_runtime::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::simulator();
/// let dy = device.tensor(&[bf16::from_f32(0.5); 3 * 64], [3, 64])?;
/// let mut dbias = device.tensor(&[1.0_f32; 64], [64])?;
/// let options = BiasBackwardOptions { accumulate: true, ..Default::default() };
/// bias_backward(&device, &dy, &mut dbias, options)?;
/// assert_eq!(dbias.to_vec()?, [2.5; 64]); // 1 and three rows of 0.5
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// `TMA0575` for shapes that do not match, `TMA0576` for rows whose elements are not adjacent and
/// `TMA0577` for too many rows or columns. Also the errors of
/// [`launch`](tma_runtime::launch::launch).
pub fn bias_backward<T: ModelElement, G: ModelElement>(
    on: &impl LaunchOn,
    dy: impl MapArg<T, 2>,
    mut dbias: impl MapArgMut<G, 1>,
    options: BiasBackwardOptions<'_>,
) -> Result<(), ModelError> {
    let (dy, dbias) = (dy.view(), dbias.view_mut());
    let shape = dy.shape();
    let [_, columns] = shape;
    let rows = Rows::of(&shape)?;
    let of_dy = Strides::of("dy", &shape, &dy.strides())?;
    fits("dbias", &dbias.shape(), &[columns])?;
    Strides::of("dbias", &dbias.shape(), &dbias.strides())?;
    if columns == 0 {
        return Ok(());
    }
    let mut own = None;
    let workspace = match options.workspace {
        Some(given) => given,
        None => own.insert(GradientWorkspace::new(on.device())?),
    };
    let mut slices = 0;
    if !rows.is_empty() {
        let tile = Tile::of_elements::<T>(rows, &[of_dy], 1);
        let division = ColumnDivision::of::<T>(tile, rows, on.device().multiprocessors());
        slices = division.slices;
        workspace.grow(on.device(), (slices as usize).saturating_mul(columns), 0)?;
        add_columns::find::<T>(add_columns::Key { wide: tile.wide })
            .ok_or_else(|| without_instance(&shape))?
            .launch(
                dependent(on),
                Grid::new(division.tiles, slices, 1),
                flat(dy)?,
                &mut workspace.sums,
                rows.count,
                rows.columns,
                division.width,
                of_dy.inner,
            )?;
    }
    let columns = Rows::of(&[1, columns])?.columns;
    let gradients = ColumnGradients { weight: Some(dbias), bias: None, accumulate: options.accumulate };
    add_blocks(on, Parts { sums: &workspace.sums, blocks: slices, columns }, gradients)
}

/// How blocks divide rows and columns.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ColumnDivision {
    /// The threads of a row of a block, a power of two.
    width: u32,
    /// The blocks that share the columns of a row.
    tiles: u32,
    /// The blocks that share the rows of a column.
    slices: u32,
}

impl ColumnDivision {
    /// Returns the division of rows. There are at most as many slices as multiprocessors have blocks
    /// at a time, and none is shorter than what a block loads at a time.
    fn of<T: ModelElement>(tile: Tile, rows: Rows, multiprocessors: u32) -> Self {
        let columns = rows.columns as usize;
        let width = columns.div_ceil(tile.columns::<T>(1)).next_power_of_two().min(MOST_WIDTH) as u32;
        let tiles = columns.div_ceil(tile.columns::<T>(width)) as u32;
        let at_a_time = ROWS * (THREADS / width);
        let most = rows.count.div_ceil(at_a_time);
        Self { width, tiles, slices: (BLOCKS * multiprocessors / tiles).clamp(1, most) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn division(shape: [usize; 2], multiprocessors: u32) -> Result<ColumnDivision, ModelError> {
        let rows = Rows::of(&shape)?;
        let strides = Strides::of("dy", &shape, &[shape[1], 1])?;
        Ok(ColumnDivision::of::<bf16>(Tile::of_elements::<bf16>(rows, &[strides], 1), rows, multiprocessors))
    }

    #[test]
    fn slices_fill_the_multiprocessors_once() -> Result<(), ModelError> {
        assert_eq!(division([16384, 4096], 132)?, ColumnDivision { width: 32, tiles: 16, slices: 33 });
        assert_eq!(division([16384, 64], 132)?, ColumnDivision { width: 8, tiles: 1, slices: 64 });
        assert_eq!(division([1000, 1001], 132)?, ColumnDivision { width: 32, tiles: 32, slices: 16 });
        assert_eq!(division([3, 1 << 20], 132)?, ColumnDivision { width: 32, tiles: 4096, slices: 1 });
        Ok(())
    }
}
