//! Functions of single elements, in place.

mod backward;
pub mod kernel;

use tma_runtime::launch::{LaunchOn, MapArgMut};
use tma_runtime::prelude::*;

pub use self::backward::{activate_backward, soft_cap_backward};
use self::kernel::rows::replace;
use super::gated::kernel::rows::VECTORS;
use super::rows::{Division, Rows, Strides, Tile, flat_mut, without_instance};
use super::{Gate, ModelElement, ModelError, positive};
use crate::dependent::dependent;

/// Queues `x = activation(x)` of each element.
///
/// The function is computed in `f32`, and rounded once. [`gated`](super::gated()) gives the errors of
/// the functions. Rows may be apart, but the elements of a row must be adjacent.
///
/// ```
/// use tma_kernels::model::{Gate, activate};
/// use tma_runtime::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::simulator();
/// let mut x = device.tensor(&[bf16::from_f32(64.0); 128], [2, 64])?;
/// activate(&device, Gate::Gelu, &mut x)?;
/// assert!(x.to_vec()?.iter().all(|y| y.to_f32() == 64.0)); // 64 · (1 + erf(64 / √2)) / 2
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// `TMA0576` for rows whose elements are not adjacent, and `TMA0577` for too many rows or columns.
/// Also the errors of [`launch`](tma_runtime::launch::launch).
pub fn activate<T: ModelElement, const N: usize>(
    on: &impl LaunchOn,
    activation: Gate,
    mut x: impl MapArgMut<T, N>,
) -> Result<(), ModelError> {
    queue(on, x.view_mut(), activation.form(), 1.0)
}

/// Queues `x = cap · tanh(x / cap)` of each element, which limits logits as in Gemma.
///
/// The result is computed in `f32` with an error below `cap` · 2^-21, and rounded once. That of ±∞ is
/// ±`cap`, and of NaN is NaN.
///
/// # Errors
///
/// Those of [`activate`], and `TMA0578` for a `cap` that is not positive or above 2.3e38.
pub fn soft_cap<T: ModelElement, const N: usize>(
    on: &impl LaunchOn,
    mut x: impl MapArgMut<T, N>,
    cap: f32,
) -> Result<(), ModelError> {
    const SOFT_CAP: u32 = 3;
    queue(on, x.view_mut(), SOFT_CAP, positive("cap", cap)?)
}

/// Queues the kernel, unless there are no elements.
fn queue<T: ModelElement, const N: usize>(
    on: &impl LaunchOn,
    x: TensorViewMut<'_, T, N>,
    form: u32,
    cap: f32,
) -> Result<(), ModelError> {
    let shape = x.shape();
    let rows = Rows::of(&shape)?;
    let strides = Strides::of("x", &shape, &x.strides())?;
    if rows.is_empty() {
        return Ok(());
    }
    let tile = Tile::of_elements::<T>(rows, &[strides], VECTORS);
    let division = Division::of::<T>(tile, rows);
    division.check(&shape)?;
    replace::find::<T>(replace::Key { wide: tile.wide }).ok_or_else(|| without_instance(&shape))?.launch(
        dependent(on),
        Grid::new(division.blocks, division.parts, 1),
        flat_mut(x)?,
        rows.count,
        rows.inner,
        rows.columns,
        division.width,
        form,
        cap,
        strides.outer,
        strides.inner,
    )?;
    Ok(())
}
