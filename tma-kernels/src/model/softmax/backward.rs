//! The gradient of softmax.

use tma_runtime::launch::{LaunchOn, MapArg, MapArgMut};
use tma_runtime::prelude::*;

use super::SoftmaxOptions;
use super::gradient::rows::softmax_slopes;
use crate::dependent::dependent;
use crate::model::rows::{Division, Rows, Strides, Tile, fits, flat, flat_mut, without_instance};
use crate::model::{ModelElement, ModelError, positive};

/// Queues the gradient of [`softmax`](super::softmax()), from its result `y` and the gradient `dy` of
/// that: `dx = scale · y · (dy - Σ y · dy)` over the last dimension, or for the logarithm of softmax
/// `dx = scale · (dy - exp(y) · Σ dy)`.
///
/// The options are those of the softmax. `dy` and `dx` have the shape of `y`, and rows as for
/// [`softmax`](super::softmax()). Everything is computed in `f32`, and results are rounded once. A row
/// with a NaN in either tensor becomes NaN where a factor is. A call allocates nothing and does not
/// wait.
///
/// ```
/// use tma_kernels::model::{SoftmaxOptions, softmax_backward};
/// use tma_runtime::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::simulator();
/// let y = device.tensor(&[0.25_f32; 4], [1, 4])?;
/// let dy = device.tensor(&[4.0_f32, 0.0, 0.0, 0.0], [1, 4])?;
/// let mut dx = device.zeros::<f32, 2>([1, 4])?;
/// softmax_backward(&device, &y, &dy, &mut dx, SoftmaxOptions::default())?;
/// assert_eq!(dx.to_vec()?, [0.75, -0.25, -0.25, -0.25]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// `TMA0575` for shapes that do not match, `TMA0576` for rows whose elements are not adjacent,
/// `TMA0577` for too many rows or columns and `TMA0578` for a scale that is not above 0 and below
/// 2.3e38. Also the errors of [`launch`](tma_runtime::launch::launch).
pub fn softmax_backward<T: ModelElement, const N: usize>(
    on: &impl LaunchOn,
    y: impl MapArg<T, N>,
    dy: impl MapArg<T, N>,
    mut dx: impl MapArgMut<T, N>,
    options: SoftmaxOptions,
) -> Result<(), ModelError> {
    let (y, dy, dx) = (y.view(), dy.view(), dx.view_mut());
    let shape = y.shape();
    let rows = Rows::of(&shape)?;
    fits("dy", &dy.shape(), &shape)?;
    fits("dx", &dx.shape(), &shape)?;
    let of_y = Strides::of("y", &shape, &y.strides())?;
    let of_dy = Strides::of("dy", &shape, &dy.strides())?;
    let of_dx = Strides::of("dx", &shape, &dx.strides())?;
    let scale = positive("scale", options.scale)?;
    if rows.is_empty() {
        return Ok(());
    }
    let tile = Tile::of_rows::<T>(rows, &[of_y, of_dy, of_dx]);
    let division = Division::of::<T>(tile, rows);
    let key = softmax_slopes::Key { threads: tile.threads, k: tile.vectors, wide: tile.wide };
    softmax_slopes::find::<T>(key).ok_or_else(|| without_instance(&shape))?.launch(
        dependent(on),
        Grid::x(division.blocks),
        flat(y)?,
        flat(dy)?,
        flat_mut(dx)?,
        rows.count,
        rows.inner,
        rows.columns,
        division.width,
        options.log,
        scale,
        of_y.outer,
        of_y.inner,
        of_dy.outer,
        of_dy.inner,
        of_dx.outer,
        of_dx.inner,
    )?;
    Ok(())
}
