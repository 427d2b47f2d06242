//! Gated activations: SwiGLU and GeGLU.

pub(super) mod backward;
pub mod gradient;
pub mod gradient_staged;
pub mod kernel;

use tma_runtime::launch::{LaunchOn, MapArg, MapArgMut};
use tma_runtime::prelude::*;

pub use self::backward::{GateGradientsMut, gated_backward, gated_packed_backward};
use self::kernel::rows::{VECTORS, multiply};
use super::rows::{Division, Rows, Strides, Tile, fits, flat, flat_mut, without_instance};
use super::{ModelElement, ModelError};
use crate::dependent::dependent;

/// The activation of the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// `x / (1 + e^-x)`: SwiGLU.
    Silu,
    /// `x · (1 + erf(x / √2)) / 2`: GeGLU.
    Gelu,
    /// `x · (1 + tanh(√(2/π) · (x + 0.044715 · x³))) / 2`: the approximation of GeGLU in GPT-2 and
    /// Gemma.
    GeluTanh,
}

impl Gate {
    /// Returns the number that stands for it in the kernel.
    pub(crate) fn form(self) -> u32 {
        match self {
            Self::Silu => 0,
            Self::Gelu => 1,
            Self::GeluTanh => 2,
        }
    }
}

/// Queues `out = activation(gate) · up`, element by element.
///
/// The tensors have one shape. They need not be contiguous, but the elements of a row, the last
/// dimension, must be adjacent. If there are more than three dimensions, those before the last two
/// must be mergeable to one. Rows that begin at multiples of 16 bytes, and have a multiple of 16
/// bytes, are faster.
///
/// Results are computed in `f32` and rounded once. A NaN in either tensor makes the result NaN. The
/// activation of -∞ is 0, which makes the result NaN if `up` is infinite. A call allocates nothing
/// and does not wait.
///
/// # Errors
///
/// `TMA0575` for shapes that do not match, `TMA0576` for rows whose elements are not adjacent and
/// `TMA0577` for too many rows or columns. Also the errors of
/// [`launch`](tma_runtime::launch::launch).
pub fn gated<T: ModelElement, const N: usize>(
    on: &impl LaunchOn,
    activation: Gate,
    gate: impl MapArg<T, N>,
    up: impl MapArg<T, N>,
    mut out: impl MapArgMut<T, N>,
) -> Result<(), ModelError> {
    let (gate, up, out) = (gate.view(), up.view(), out.view_mut());
    fits("up", &up.shape(), &gate.shape())?;
    fits("out", &out.shape(), &gate.shape())?;
    queue(on, activation, Halves { gate, up, up_start: 0 }, out)
}

/// Queues the same of a tensor whose rows are gates and then the other columns, as a product with
/// packed weights leaves them.
///
/// `x` is rows × 2 · columns, and `out` is rows × columns, each with any number of dimensions
/// before the last.
///
/// ```
/// use tma_kernels::model::{Gate, gated_packed};
/// use tma_runtime::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::simulator();
/// let row: Vec<bf16> = (0..128).map(|i| bf16::from_f32(if i < 64 { 100.0 } else { 0.5 })).collect();
/// let x = device.tensor(&row, [1, 128])?;
/// let mut out = device.zeros::<bf16, 2>([1, 64])?;
/// gated_packed(&device, Gate::Silu, &x, &mut out)?;
/// assert!(out.to_vec()?.iter().all(|y| y.to_f32() == 50.0)); // 100 / (1 + e^-100) · 0.5
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Those of [`gated`].
pub fn gated_packed<T: ModelElement, const N: usize>(
    on: &impl LaunchOn,
    activation: Gate,
    x: impl MapArg<T, N>,
    mut out: impl MapArgMut<T, N>,
) -> Result<(), ModelError> {
    let (x, out) = (x.view(), out.view_mut());
    let mut wanted = out.shape();
    let columns = wanted.last().copied().unwrap_or(0);
    if let Some(last) = wanted.last_mut() {
        *last = columns.saturating_mul(2);
    }
    fits("x", &x.shape(), &wanted)?;
    queue(on, activation, Halves { gate: x, up: x, up_start: columns }, out)
}

/// Gates, and what they are multiplied by.
#[derive(Clone, Copy)]
struct Halves<'a, T, const N: usize> {
    gate: TensorView<'a, T, N>,
    up: TensorView<'a, T, N>,
    /// The column of `up` where rows begin.
    up_start: usize,
}

/// Queues the kernel, unless there are no elements.
fn queue<T: ModelElement, const N: usize>(
    on: &impl LaunchOn,
    activation: Gate,
    halves: Halves<'_, T, N>,
    out: TensorViewMut<'_, T, N>,
) -> Result<(), ModelError> {
    let Halves { gate, up, up_start } = halves;
    let shape = out.shape();
    let rows = Rows::of(&shape)?;
    let of_gate = Strides::of("gate", &gate.shape(), &gate.strides())?;
    let of_up = Strides::of("up", &up.shape(), &up.strides())?;
    let of_out = Strides::of("out", &shape, &out.strides())?;
    if rows.is_empty() {
        return Ok(());
    }
    // The packed `up` begins within a row.
    let up_rows = Strides { inner: up_start as u64, ..of_up };
    let tile = Tile::of_elements::<T>(rows, &[of_gate, of_up, up_rows, of_out], VECTORS);
    let mut division = Division::of::<T>(tile, rows);
    let mut vectors = tile.vectors;
    if tile.wide == 1 && division.blocks.saturating_mul(division.parts) < on.device().multiprocessors() {
        // Few elements are spread over more blocks.
        vectors = 1;
        division = Division::of::<T>(Tile { vectors, ..tile }, rows);
    }
    division.check(&shape)?;
    let key = multiply::Key { k: vectors, wide: tile.wide };
    multiply::find::<T>(key).ok_or_else(|| without_instance(&shape))?.launch(
        dependent(on),
        Grid::new(division.blocks, division.parts, 1),
        flat(gate)?,
        flat(up)?,
        flat_mut(out)?,
        rows.count,
        rows.inner,
        rows.columns,
        division.width,
        activation.form(),
        up_start as u64,
        of_gate.outer,
        of_gate.inner,
        of_up.outer,
        of_up.inner,
        of_out.outer,
        of_out.inner,
    )?;
    Ok(())
}
