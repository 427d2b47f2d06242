//! Gradients of RMSNorm and LayerNorm.

use tma_runtime::Error;
use tma_runtime::launch::{LaunchOn, MapArg, MapArgMut};
use tma_runtime::prelude::*;

use super::check_epsilon;
use super::gradient::rows::differentiate;
use super::gradient_long::rows::differentiate_long;
use super::gradient_staged::batches::differentiate_staged;
use crate::dependent::dependent;
use crate::model::rows::{Division, Rows, Staging, Strides, Tile, fits, flat, flat_mut, without_instance};
use crate::model::sums::{ColumnGradients, Parts, add_blocks};
use crate::model::{GradientWorkspace, ModelElement, ModelError};

/// The threads of the blocks that a multiprocessor has at a time.
const BLOCKS_THREADS: u32 = 512;

/// Options of [`rms_norm_backward`] and [`layer_norm_backward`].
#[derive(Debug)]
pub struct NormBackwardOptions<'a, T, G> {
    /// The factor of each column.
    pub weight: Option<TensorView<'a, T, 1>>,
    /// Whether 1 is added to the weights.
    pub one_plus_weight: bool,
    /// The number that was added to the mean square or the variance: 10^-6 by default.
    pub epsilon: f32,
    /// Whether the gradient is added to what `dx` has, such as the gradient that flows along the
    /// residual. The sum is rounded once.
    pub accumulate: bool,
    /// The gradient of the weights.
    pub dweight: Option<TensorViewMut<'a, G, 1>>,
    /// The gradient of the biases.
    pub dbias: Option<TensorViewMut<'a, G, 1>>,
    /// Whether gradients are added to what `dweight` and `dbias` have.
    pub accumulate_weights: bool,
    /// Memory for sums of columns. Without it, a call with `dweight` or `dbias` allocates its own,
    /// and waits when that is freed.
    pub workspace: Option<&'a mut GradientWorkspace>,
}

impl<T, G> Default for NormBackwardOptions<'_, T, G> {
    fn default() -> Self {
        Self {
            weight: None,
            one_plus_weight: false,
            epsilon: 1e-6,
            accumulate: false,
            dweight: None,
            dbias: None,
            accumulate_weights: false,
            workspace: None,
        }
    }
}

impl GradientWorkspace {
    /// Allocates the memory for the gradients of a norm of this shape, rows × columns. A call with
    /// more lets it grow.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`], [`Error::KernelFault`] and [`Error::Driver`].
    pub fn for_norm(device: &Device, shape: [usize; 2]) -> Result<Self, Error> {
        let [rows, columns] = shape;
        // No instance has more blocks.
        let blocks = rows.min(2 * device.multiprocessors() as usize);
        let mut workspace = Self::new(device)?;
        workspace.grow(device, blocks.saturating_mul(columns).saturating_mul(2), 0)?;
        Ok(workspace)
    }
}

/// Queues the gradients of [`rms_norm`](super::rms_norm), from the gradient `dy` of its result.
///
/// `x` is what was normalised: with a residual, the sum that the norm left there. With
/// n = x / sqrt(mean(x²) + epsilon) and h = dy · weight,
///
/// * `dx` = (h - n · mean(h · n)) / sqrt(mean(x²) + epsilon),
/// * `dweight` = Σ dy · n over all rows,
/// * `dbias` = Σ dy over all rows.
///
/// A residual and `x` have the same gradient. With [`accumulate`](NormBackwardOptions::accumulate)
/// it is added to `dx`, which has the gradient that reached the sum by other paths.
///
/// `dy` and `dx` have the shape of `x`. Tensors need not be contiguous, but the elements of a row
/// must be adjacent, as for [`rms_norm`](super::rms_norm). Gradients of weights may be `f32`, or
/// have another type than `x`.
///
/// Everything is computed in `f32`, and results are rounded once. The order of sums depends on the
/// shape and the number of multiprocessors alone, so that a device produces the same bits each
/// time. A row with a NaN or an infinity has a `dx` of NaN, and makes `dweight` NaN where
/// the result of the norm or its product with `dy` is. Finite numbers whose squares have a sum
/// beyond `f32` have gradients of 0, as their results are 0, unless products with `dy` have a sum
/// beyond `f32` as well. A call does not wait, and with a large enough workspace allocates nothing.
///
/// ```
/// use tma_kernels::model::{NormBackwardOptions, rms_norm_backward};
/// use tma_runtime::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::simulator();
/// let x = device.tensor(&[bf16::from_f32(4.0); 3 * 64], [3, 64])?;
/// let dy = device.tensor(&[bf16::from_f32(0.5); 3 * 64], [3, 64])?;
/// let weight = device.tensor(&[bf16::ONE; 64], [64])?;
/// let mut dx = device.zeros::<bf16, 2>([3, 64])?;
/// let mut dweight = device.zeros::<f32, 1>([64])?;
/// let options = NormBackwardOptions {
///     weight: Some(weight.view()),
///     dweight: Some(dweight.view_mut()),
///     epsilon: 0.0,
///     ..Default::default()
/// };
/// rms_norm_backward(&device, &x, &dy, &mut dx, options)?;
/// assert!(dx.to_vec()?.iter().all(|x| x.to_f32() == 0.0)); // the norm of equal numbers is constant
/// assert_eq!(dweight.to_vec()?, [1.5; 64]); // three rows of 0.5 · 1
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// `TMA0575` for shapes that do not match, `TMA0576` for rows whose elements are not adjacent,
/// `TMA0577` for too many rows or columns and `TMA0578` for an `epsilon` that is negative or not
/// finite. Also the errors of [`launch`](tma_runtime::launch::launch).
pub fn rms_norm_backward<T: ModelElement, G: ModelElement, const N: usize>(
    on: &impl LaunchOn,
    x: impl MapArg<T, N>,
    dy: impl MapArg<T, N>,
    mut dx: impl MapArgMut<T, N>,
    options: NormBackwardOptions<'_, T, G>,
) -> Result<(), ModelError> {
    queue(on, false, Inputs { x: x.view(), dy: dy.view() }, dx.view_mut(), options)
}

/// Queues the gradients of [`layer_norm`](super::layer_norm), from the gradient `dy` of its result.
///
/// With d = sqrt(variance(x) + epsilon), n = (x - mean(x)) / d and h = dy · weight, `dx` is
/// (h - mean(h) - n · mean(h · n)) / d. Otherwise it is like [`rms_norm_backward`].
///
/// # Errors
///
/// Those of [`rms_norm_backward`].
pub fn layer_norm_backward<T: ModelElement, G: ModelElement, const N: usize>(
    on: &impl LaunchOn,
    x: impl MapArg<T, N>,
    dy: impl MapArg<T, N>,
    mut dx: impl MapArgMut<T, N>,
    options: NormBackwardOptions<'_, T, G>,
) -> Result<(), ModelError> {
    queue(on, true, Inputs { x: x.view(), dy: dy.view() }, dx.view_mut(), options)
}

/// The tensors that gradients are computed from.
struct Inputs<'a, T, const N: usize> {
    x: TensorView<'a, T, N>,
    dy: TensorView<'a, T, N>,
}

/// Queues the kernels. Without rows, the gradients of weights are 0.
fn queue<T: ModelElement, G: ModelElement, const N: usize>(
    on: &impl LaunchOn,
    centred: bool,
    inputs: Inputs<'_, T, N>,
    dx: TensorViewMut<'_, T, N>,
    options: NormBackwardOptions<'_, T, G>,
) -> Result<(), ModelError> {
    let Inputs { x, dy } = inputs;
    let NormBackwardOptions { weight, one_plus_weight, epsilon, accumulate, dweight, dbias, .. } = options;
    let shape = x.shape();
    let rows = Rows::of(&shape)?;
    check_epsilon(epsilon)?;
    fits("dy", &dy.shape(), &shape)?;
    fits("dx", &dx.shape(), &shape)?;
    let of_x = Strides::of("x", &shape, &x.strides())?;
    let of_dy = Strides::of("dy", &shape, &dy.strides())?;
    let of_dx = Strides::of("dx", &shape, &dx.strides())?;
    let columns = shape.last().copied().unwrap_or(1);
    let gradients = ColumnGradients { weight: dweight, bias: dbias, accumulate: options.accumulate_weights };
    for (name, layout) in [
        ("weight", weight.as_ref().map(|weight| (weight.shape(), weight.strides()))),
        ("dweight", gradients.weight.as_ref().map(|weight| (weight.shape(), weight.strides()))),
        ("dbias", gradients.bias.as_ref().map(|bias| (bias.shape(), bias.strides()))),
    ] {
        if let Some((found, strides)) = layout {
            fits(name, &found, &[columns])?;
            Strides::of(name, &found, &strides)?;
        }
    }
    let mut own = None;
    let workspace = match options.workspace {
        Some(given) => given,
        None => own.insert(GradientWorkspace::new(on.device())?),
    };
    let kinds = gradients.kinds();
    if rows.is_empty() {
        return match kinds == 0 || columns == 0 {
            true => Ok(()),
            false => add_blocks(
                on,
                Parts { sums: &workspace.sums, blocks: 0, columns: Rows::of(&[1, columns])?.columns },
                gradients,
            ),
        };
    }
    let multiprocessors = on.device().multiprocessors();
    let all = [of_x, of_dy, of_dx];
    let staging = Staging::of_sums::<T>(rows, &all, kinds, multiprocessors);
    let tile = Tile::of_sums::<T>(rows, &all);
    let division = tile.map(|tile| Division::of::<T>(tile, rows));
    let blocks = match (staging, tile, division) {
        (Some((_, staging)), _, _) => staging.blocks,
        (None, Some(tile), Some(division)) => {
            division.blocks.min(multiprocessors * (BLOCKS_THREADS / tile.threads))
        }
        (None, ..) => rows.count.min(multiprocessors),
    };
    let needed = (blocks as usize).saturating_mul(columns).saturating_mul(kinds as usize);
    workspace.grow(on.device(), needed, 0)?;
    let sums = (kinds > 0).then_some(&mut workspace.sums);
    let (x, dy, dx) = (flat(x)?, flat(dy)?, flat_mut(dx)?);
    if let Some((tile, staging)) = staging {
        let bias = u32::from(tile.vectors < 4);
        let key = differentiate_staged::Key { form: T::FORM, threads: tile.threads, k: tile.vectors, bias };
        differentiate_staged::find::<T>(key).ok_or_else(|| without_instance(&shape))?.launch(
            dependent(on),
            Grid::x(blocks),
            x,
            dy,
            weight,
            dx,
            sums,
            rows.count,
            rows.inner,
            rows.columns,
            staging.width,
            staging.height,
            staging.run,
            centred,
            one_plus_weight,
            kinds == 2,
            accumulate,
            epsilon,
            of_x.outer,
            of_x.inner,
            of_dy.outer,
            of_dy.inner,
            of_dx.outer,
            of_dx.inner,
        )?;
    } else if let (Some(tile), Some(division)) = (tile, division) {
        let key = differentiate::Key { threads: tile.threads, k: tile.vectors, wide: tile.wide };
        differentiate::find::<T>(key).ok_or_else(|| without_instance(&shape))?.launch(
            dependent(on),
            Grid::x(blocks),
            x,
            dy,
            weight,
            dx,
            sums,
            rows.count,
            rows.inner,
            rows.columns,
            division.width,
            centred,
            one_plus_weight,
            kinds == 2,
            accumulate,
            epsilon,
            of_x.outer,
            of_x.inner,
            of_dy.outer,
            of_dy.inner,
            of_dx.outer,
            of_dx.inner,
        )?;
    } else {
        let tile = Tile::of_elements::<T>(rows, &all, 1);
        let key = differentiate_long::Key { k: if tile.wide == 1 { 2 } else { 4 }, wide: tile.wide };
        differentiate_long::find::<T>(key).ok_or_else(|| without_instance(&shape))?.launch(
            dependent(on),
            Grid::x(blocks),
            x,
            dy,
            weight,
            dx,
            sums,
            rows.count,
            rows.inner,
            rows.columns,
            centred,
            one_plus_weight,
            kinds == 2,
            accumulate,
            epsilon,
            of_x.outer,
            of_x.inner,
            of_dy.outer,
            of_dy.inner,
            of_dx.outer,
            of_dx.inner,
        )?;
    }
    match kinds {
        0 => Ok(()),
        _ => add_blocks(on, Parts { sums: &workspace.sums, blocks, columns: rows.columns }, gradients),
    }
}
