//! Gradients of functions of single elements.

use tma_runtime::launch::{LaunchOn, MapArg, MapArgMut};

use crate::model::gated::backward::{Function, Inputs, queue};
use crate::model::{Gate, ModelElement, ModelError, positive};

/// Queues `dx = dy · activation'(x)`, the gradient of [`activate`](super::activate()).
///
/// `x` is what was activated. All tensors have one shape, and rows may be apart, but the elements of
/// a row must be adjacent. [`gated_backward`](crate::model::gated_backward) gives the errors of the
/// derivatives.
///
/// ```
/// use tma_kernels::model::{Gate, activate_backward};
/// use tma_runtime::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::simulator();
/// let x = device.tensor(&[0.0_f32; 128], [2, 64])?;
/// let dy = device.tensor(&[3.0_f32; 128], [2, 64])?;
/// let mut dx = device.zeros::<f32, 2>([2, 64])?;
/// activate_backward(&device, Gate::Silu, &x, &dy, &mut dx)?;
/// assert!(dx.to_vec()?.iter().all(|x| (x - 1.5).abs() < 1e-6)); // the slope at 0 is 1/2
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// `TMA0575` for shapes that do not match, `TMA0576` for rows whose elements are not adjacent and
/// `TMA0577` for too many rows or columns. Also the errors of
/// [`launch`](tma_runtime::launch::launch).
pub fn activate_backward<T: ModelElement, const N: usize>(
    on: &impl LaunchOn,
    activation: Gate,
    x: impl MapArg<T, N>,
    dy: impl MapArg<T, N>,
    mut dx: impl MapArgMut<T, N>,
) -> Result<(), ModelError> {
    let inputs = Inputs { gate: x.view(), up: None, dy: dy.view(), up_start: 0 };
    queue(on, Function::of(activation), inputs, dx.view_mut(), None)
}

/// Queues `dx = dy · (1 - tanh²(x / cap))`, the gradient of [`soft_cap`](super::soft_cap).
///
/// `x` is what was limited. The derivative has a relative error below 2^-15 above 2^-100. That of ±∞
/// is 0.
///
/// # Errors
///
/// Those of [`activate_backward`], and `TMA0578` for a `cap` that is not positive or above 2.3e38.
pub fn soft_cap_backward<T: ModelElement, const N: usize>(
    on: &impl LaunchOn,
    x: impl MapArg<T, N>,
    dy: impl MapArg<T, N>,
    mut dx: impl MapArgMut<T, N>,
    cap: f32,
) -> Result<(), ModelError> {
    let inputs = Inputs { gate: x.view(), up: None, dy: dy.view(), up_start: 0 };
    queue(on, Function::soft_cap(positive("cap", cap)?), inputs, dx.view_mut(), None)
}
