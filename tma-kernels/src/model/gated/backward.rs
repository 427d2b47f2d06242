//! Gradients of activations, with and without a gate.

use tma_runtime::launch::{LaunchOn, MapArg, MapArgMut};
use tma_runtime::prelude::*;

use super::Gate;
use super::gradient::rows::slopes;
use super::gradient_staged::batches::slopes_staged;
use crate::dependent::dependent;
use crate::model::rows::{Division, Rows, Staging, Strides, Tile, fits, flat, flat_mut, without_instance};
use crate::model::{ModelElement, ModelError};

/// The vectors that a thread has of each tensor at a time.
const VECTORS: usize = 2;
const GATED_VECTORS: usize = 1;
const ODD_VECTORS: usize = 4;

/// The blocks of a multiprocessor, times the rounds of blocks that hide the last one.
const ENOUGH_BLOCKS: u32 = 3 * 8;

/// The results of [`gated_backward`], in the caller's memory.
#[derive(Debug)]
pub struct GateGradientsMut<'a, T, const N: usize> {
    /// The gradient of the gate.
    pub gate: TensorViewMut<'a, T, N>,
    /// The gradient of what the activated gate was multiplied by.
    pub up: TensorViewMut<'a, T, N>,
}

/// Queues the gradients of [`gated`](super::gated()), from the gradient `dy` of its result:
/// `gradients.gate = dy · activation'(gate) · up` and `gradients.up = dy · activation(gate)`.
///
/// All tensors have one shape, and rows as for [`gated`](super::gated()). Activations and their
/// derivatives are computed in `f32`, and results are rounded once. A derivative has an error below
/// 2^-15 · |derivative| + 2^-19. At -∞ it is 0, at ∞ it is 1, and that of NaN is NaN. A call
/// allocates nothing and does not wait.
///
/// # Errors
///
/// `TMA0575` for shapes that do not match, `TMA0576` for rows whose elements are not adjacent and
/// `TMA0577` for too many rows or columns. Also the errors of
/// [`launch`](tma_runtime::launch::launch).
pub fn gated_backward<T: ModelElement, const N: usize>(
    on: &impl LaunchOn,
    activation: Gate,
    gate: impl MapArg<T, N>,
    up: impl MapArg<T, N>,
    dy: impl MapArg<T, N>,
    gradients: GateGradientsMut<'_, T, N>,
) -> Result<(), ModelError> {
    let (gate, up) = (gate.view(), up.view());
    fits("up", &up.shape(), &gate.shape())?;
    let inputs = Inputs { gate, up: Some(up), dy: dy.view(), up_start: 0 };
    let GateGradientsMut { gate: dgate, up: dup } = gradients;
    queue(on, Function::of(activation), inputs, dgate, Some(dup))
}

/// Queues the same of [`gated_packed`](super::gated_packed): rows of `x` and `dx` are gates and then
/// the other columns.
///
/// `x` and `dx` are rows × 2 · columns, and `dy` is rows × columns, each with any number of
/// dimensions before the last.
///
/// ```
/// use tma_kernels::model::{Gate, gated_packed_backward};
/// use tma_runtime::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::simulator();
/// let row: Vec<bf16> = (0..128).map(|i| bf16::from_f32(if i < 64 { 100.0 } else { 0.5 })).collect();
/// let x = device.tensor(&row, [1, 128])?;
/// let dy = device.tensor(&[bf16::from_f32(2.0); 64], [1, 64])?;
/// let mut dx = device.zeros::<bf16, 2>([1, 128])?;
/// gated_packed_backward(&device, Gate::Silu, &x, &dy, &mut dx)?;
/// let dx: Vec<f32> = dx.to_vec()?.iter().map(|x| x.to_f32()).collect();
/// assert!(dx[..64].iter().all(|x| *x == 1.0)); // 2 · 1 · 0.5: the slope of SiLU at 100 is 1
/// assert!(dx[64..].iter().all(|x| *x == 200.0)); // 2 · 100
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Those of [`gated_backward`].
pub fn gated_packed_backward<T: ModelElement, const N: usize>(
    on: &impl LaunchOn,
    activation: Gate,
    x: impl MapArg<T, N>,
    dy: impl MapArg<T, N>,
    mut dx: impl MapArgMut<T, N>,
) -> Result<(), ModelError> {
    let (x, dy) = (x.view(), dy.view());
    let mut wanted = dy.shape();
    let columns = wanted.last().copied().unwrap_or(0);
    if let Some(last) = wanted.last_mut() {
        *last = columns.saturating_mul(2);
    }
    fits("x", &x.shape(), &wanted)?;
    let inputs = Inputs { gate: x, up: Some(x), dy, up_start: columns };
    queue(on, Function::of(activation), inputs, dx.view_mut(), None)
}

/// A function of single elements.
#[derive(Clone, Copy, Debug)]
pub(in crate::model) struct Function {
    form: u32,
    cap: f32,
}

impl Function {
    pub(in crate::model) fn of(activation: Gate) -> Self {
        Self { form: activation.form(), cap: 1.0 }
    }

    pub(in crate::model) fn soft_cap(cap: f32) -> Self {
        const SOFT_CAP: u32 = 3;
        Self { form: SOFT_CAP, cap }
    }
}

/// The tensors that gradients are computed from.
#[derive(Clone, Copy, Debug)]
pub(in crate::model) struct Inputs<'a, T, const N: usize> {
    pub(in crate::model) gate: TensorView<'a, T, N>,
    pub(in crate::model) up: Option<TensorView<'a, T, N>>,
    pub(in crate::model) dy: TensorView<'a, T, N>,
    /// The column of `up` where rows begin: 0, or the number of columns if rows are packed.
    pub(in crate::model) up_start: usize,
}

/// Queues the kernel, unless there are no elements.
pub(in crate::model) fn queue<T: ModelElement, const N: usize>(
    on: &impl LaunchOn,
    function: Function,
    inputs: Inputs<'_, T, N>,
    dgate: TensorViewMut<'_, T, N>,
    dup: Option<TensorViewMut<'_, T, N>>,
) -> Result<(), ModelError> {
    let Inputs { gate, up, dy, up_start } = inputs;
    let shape = dy.shape();
    let rows = Rows::of(&shape)?;
    let is_packed = up_start > 0;
    if !is_packed {
        fits("dy", &shape, &gate.shape())?;
    }
    let names = match (up.is_some(), is_packed) {
        (true, false) => ["gate", "gradients.gate"],
        (true, true) | (false, _) => ["x", "dx"],
    };
    fits(names[1], &dgate.shape(), &gate.shape())?;
    let of_gate = Strides::of(names[0], &gate.shape(), &gate.strides())?;
    let of_dy = Strides::of("dy", &shape, &dy.strides())?;
    let of_dgate = Strides::of(names[1], &dgate.shape(), &dgate.strides())?;
    let mut all = vec![of_gate, of_dy, of_dgate];
    let of_up = match &up {
        Some(up) => Strides::of("up", &up.shape(), &up.strides())?,
        None => of_gate,
    };
    // The packed `up` begins within a row.
    all.extend([of_up, Strides { inner: up_start as u64, ..of_up }]);
    let mut of_dup = of_dgate;
    if let Some(dup) = &dup {
        fits("gradients.up", &dup.shape(), &shape)?;
        of_dup = Strides::of("gradients.up", &shape, &dup.strides())?;
        all.push(of_dup);
    }
    if rows.is_empty() {
        return Ok(());
    }
    let (gate, dy) = (flat(gate)?, flat(dy)?);
    let up = up.map(|up| flat(up)).transpose()?;
    let dgate = flat_mut(dgate)?;
    let dup = dup.map(|dup| flat_mut(dup)).transpose()?;
    let multiprocessors = on.device().multiprocessors();
    let staging = Staging::of::<T>(rows, &all, 1, multiprocessors).filter(|_| up.is_none());
    if let Some(staging) = staging {
        // Twice as many threads, with half as many vectors.
        let key = slopes_staged::Key { form: T::FORM, threads: 2 * staging.threads };
        slopes_staged::find::<T>(key).ok_or_else(|| without_instance(&shape))?.launch(
            dependent(on),
            Grid::x(staging.blocks),
            gate,
            dy,
            dgate,
            rows.count,
            rows.inner,
            rows.columns,
            2 * staging.width,
            staging.height,
            staging.run,
            function.form,
            function.cap,
            of_gate.outer,
            of_gate.inner,
            of_dy.outer,
            of_dy.inner,
            of_dgate.outer,
            of_dgate.inner,
        )?;
        return Ok(());
    }
    let mut tile = Tile::of_elements::<T>(rows, &all, ODD_VECTORS);
    let gated = usize::from(tile.wide == 0 || up.is_some());
    if tile.wide == 1 {
        tile.vectors = if up.is_some() { GATED_VECTORS } else { VECTORS };
    }
    let division = Division::of::<T>(tile, rows);
    division.check(&shape)?;
    // A block has whole rows, so that a row's parts share what is computed once.
    let parts = if division.blocks >= ENOUGH_BLOCKS * multiprocessors { 1 } else { division.parts };
    let key = slopes::Key { k: tile.vectors, wide: tile.wide, gated };
    slopes::find::<T>(key).ok_or_else(|| without_instance(&shape))?.launch(
        dependent(on),
        Grid::new(division.blocks, parts, 1),
        gate,
        up,
        dy,
        dgate,
        dup,
        rows.count,
        rows.inner,
        rows.columns,
        division.width,
        function.form,
        function.cap,
        is_packed,
        up_start as u64,
        of_gate.outer,
        of_gate.inner,
        of_up.outer,
        of_up.inner,
        of_dy.outer,
        of_dy.inner,
        of_dgate.outer,
        of_dgate.inner,
        of_dup.outer,
        of_dup.inner,
    )?;
    Ok(())
}
