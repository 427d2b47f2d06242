//! Softmax over rows.

mod backward;
pub mod gradient;
pub mod kernel;
pub mod staged;

use std::f32::consts::LOG2_E;

use tma_runtime::launch::{LaunchOn, MapArg, MapArgMut};
use tma_runtime::prelude::*;

pub use self::backward::softmax_backward;
use self::kernel::rows::softmax as of_rows;
use self::staged::batches::softmax_staged;
use super::rows::{Division, Rows, Staging, Strides, Tile, fits, flat, flat_mut, without_instance};
use super::{ModelElement, ModelError};
use crate::dependent::dependent;

/// Options of [`softmax`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SoftmaxOptions {
    /// The factor of elements, above 0: the reciprocal of a temperature. It is 1 by default.
    pub scale: f32,
    /// Whether the logarithm of the softmax is computed.
    pub log: bool,
}

impl Default for SoftmaxOptions {
    fn default() -> Self {
        Self { scale: 1.0, log: false }
    }
}

/// Queues `out = exp(scale · x) / Σ exp(scale · x)` over the last dimension, or its logarithm.
///
/// `out` has the shape of `x`. Tensors need not be contiguous, but the elements of a row must be
/// adjacent. If there are more than three dimensions, those before the last two must be mergeable
/// to one. Rows that begin at multiples of 16 bytes, and have a multiple of 16 bytes, are faster.
///
/// Exponentials are taken relative to the greatest element, summed in `f32`, and results are
/// rounded once. Those below 2^-126 are 0. The result of -∞ is 0, and its logarithm -∞. A row with
/// a NaN or +∞, or of -∞ alone, becomes NaN. A call allocates nothing and does not wait.
///
/// ```
/// use tma_kernels::model::{SoftmaxOptions, softmax};
/// use tma_runtime::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::simulator();
/// let x = device.tensor(&[3.0_f32; 2 * 8], [2, 8])?;
/// let mut out = device.zeros::<f32, 2>([2, 8])?;
/// softmax(&device, &x, &mut out, SoftmaxOptions::default())?;
/// assert_eq!(out.to_vec()?, [0.125; 16]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// `TMA0575` for shapes that do not match, `TMA0576` for rows whose elements are not adjacent,
/// `TMA0577` for too many rows or columns and `TMA0578` for a scale that is not above 0 and below 2.3e38. Also the
/// errors of [`launch`](tma_runtime::launch::launch).
pub fn softmax<T: ModelElement, const N: usize>(
    on: &impl LaunchOn,
    x: impl MapArg<T, N>,
    mut out: impl MapArgMut<T, N>,
    options: SoftmaxOptions,
) -> Result<(), ModelError> {
    let (x, out) = (x.view(), out.view_mut());
    let shape = x.shape();
    let rows = Rows::of(&shape)?;
    fits("out", &out.shape(), &shape)?;
    let of_x = Strides::of("x", &shape, &x.strides())?;
    let of_out = Strides::of("out", &shape, &out.strides())?;
    let factor = super::positive("scale", options.scale)? * LOG2_E;
    if rows.is_empty() {
        return Ok(());
    }
    if let Some(staging) = Staging::of::<T>(rows, &[of_x, of_out], 1, on.device().multiprocessors()) {
        let key = softmax_staged::Key { form: T::FORM, threads: staging.threads };
        softmax_staged::find::<T>(key).ok_or_else(|| without_instance(&shape))?.launch(
            dependent(on),
            Grid::x(staging.blocks),
            flat(x)?,
            flat_mut(out)?,
            rows.count,
            rows.inner,
            rows.columns,
            staging.width,
            staging.height,
            staging.run,
            options.log,
            factor,
            of_x.outer,
            of_x.inner,
            of_out.outer,
            of_out.inner,
        )?;
        return Ok(());
    }
    let tile = Tile::of_rows::<T>(rows, &[of_x, of_out]);
    let division = Division::of::<T>(tile, rows);
    let key = of_rows::Key { threads: tile.threads, k: tile.vectors, wide: tile.wide };
    of_rows::find::<T>(key).ok_or_else(|| without_instance(&shape))?.launch(
        dependent(on),
        Grid::x(division.blocks),
        flat(x)?,
        flat_mut(out)?,
        rows.count,
        rows.inner,
        rows.columns,
        division.width,
        options.log,
        factor,
        of_x.outer,
        of_x.inner,
        of_out.outer,
        of_out.inner,
    )?;
    Ok(())
}
