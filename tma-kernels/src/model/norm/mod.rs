//! RMSNorm and LayerNorm over rows.

mod backward;
pub mod gradient;
pub mod gradient_long;
pub mod gradient_staged;
pub mod kernel;
pub mod staged;

pub use self::backward::{NormBackwardOptions, layer_norm_backward, rms_norm_backward};

use tma_runtime::launch::{LaunchOn, MapArg, MapArgMut};
use tma_runtime::prelude::*;

use self::kernel::rows::normalise;
use self::staged::batches::normalise_staged;
use super::quantize::{ScaleBlocks, ScalesMut};
use super::rows::{Division, Rows, Staging, Strides, Tile, fits, flat, flat_mut, without_instance};
use super::{ModelElement, ModelError};
use crate::dependent::dependent;

/// Options of [`rms_norm`] and [`layer_norm`].
#[derive(Debug)]
pub struct NormOptions<'a, T, const N: usize> {
    /// The factor of each column.
    pub weight: Option<TensorView<'a, T, 1>>,
    /// Whether no work that is queued before and has not ended writes the weights. A kernel for few
    /// rows then reads them while the previous kernel still runs. If they are written all the same,
    /// results have unspecified elements.
    pub constant_weight: bool,
    /// Whether 1 is added to the weights, as in Gemma.
    pub one_plus_weight: bool,
    /// The term of each column.
    pub bias: Option<TensorView<'a, T, 1>>,
    /// The number that is added to the mean square or the variance: 10^-6 by default.
    pub epsilon: f32,
    /// A tensor of the shape of `x` that is added before. The sum, rounded to `T`, replaces it, and
    /// is what is normalised.
    pub residual: Option<TensorViewMut<'a, T, N>>,
}

impl<T, const N: usize> Default for NormOptions<'_, T, N> {
    fn default() -> Self {
        Self {
            weight: None,
            constant_weight: false,
            one_plus_weight: false,
            bias: None,
            epsilon: 1e-6,
            residual: None,
        }
    }
}

/// Queues `out = x / sqrt(mean(x²) + epsilon) · weight + bias` over the last dimension.
///
/// `out` has the shape of `x`. Tensors need not be contiguous, but the elements of a row must be
/// adjacent: heads of 128 elements within rows of queries, keys and values are a view of tokens ×
/// heads × 128. If `x` has more than three dimensions, those before the last two must be mergeable
/// to one. Rows that begin at multiples of 16 bytes, and have a multiple of 16 bytes, are faster.
///
/// Sums and products are computed in `f32`, and results are rounded once. A NaN makes its row NaN.
/// An infinity makes its own result NaN, and the others of its row 0 before weight and bias. So are
/// all of a row whose sum of squares is beyond `f32`. A call allocates nothing and does not wait.
///
/// ```
/// use tma_kernels::model::{NormOptions, rms_norm};
/// use tma_runtime::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::simulator();
/// let x = device.tensor(&[bf16::from_f32(-2.0); 3 * 64], [3, 64])?;
/// let mut residual = device.tensor(&[bf16::from_f32(6.0); 3 * 64], [3, 64])?;
/// let weight = device.tensor(&[bf16::from_f32(0.5); 64], [64])?;
/// let mut out = device.zeros::<bf16, 2>([3, 64])?;
/// let options = NormOptions {
///     weight: Some(weight.view()),
///     residual: Some(residual.view_mut()),
///     ..Default::default()
/// };
/// rms_norm(&device, &x, &mut out, options)?;
/// assert!(out.to_vec()?.iter().all(|y| y.to_f32() == 0.5));
/// assert!(residual.to_vec()?.iter().all(|sum| sum.to_f32() == 4.0));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// `TMA0575` for shapes that do not match, `TMA0576` for rows whose elements are not adjacent,
/// `TMA0577` for too many rows or columns and `TMA0578` for an `epsilon` that is negative or not
/// finite. Also the errors of [`launch`](tma_runtime::launch::launch).
pub fn rms_norm<T: ModelElement, const N: usize>(
    on: &impl LaunchOn,
    x: impl MapArg<T, N>,
    mut out: impl MapArgMut<T, N>,
    options: NormOptions<'_, T, N>,
) -> Result<(), ModelError> {
    queue(on, false, x.view(), Output::Same(out.view_mut()), options)
}

/// Queues `out = (x - mean(x)) / sqrt(variance(x) + epsilon) · weight + bias` over the last
/// dimension.
///
/// The variance is the mean of squared distances from the mean. Otherwise it is like [`rms_norm`],
/// except that an infinity makes its row NaN.
///
/// # Errors
///
/// Those of [`rms_norm`].
pub fn layer_norm<T: ModelElement, const N: usize>(
    on: &impl LaunchOn,
    x: impl MapArg<T, N>,
    mut out: impl MapArgMut<T, N>,
    options: NormOptions<'_, T, N>,
) -> Result<(), ModelError> {
    queue(on, true, x.view(), Output::Same(out.view_mut()), options)
}

/// Queues [`rms_norm`], rounds the results to `T`, and quantises them as
/// [`quantize`](super::quantize()) does. The bits are those of the two calls, unless squares are added
/// in another order: with a scale for each 128 of at most 256 columns, or if rows of `out` are aligned
/// otherwise.
///
/// # Errors
///
/// Those of [`rms_norm`], and `TMA0577` for rows of more than 32768 bytes. If rows do not begin and
/// end at multiples of 16 bytes, they have at most 1024 elements, or 128 with a scale for each 128.
pub fn rms_norm_quantized<T: ModelElement>(
    on: &impl LaunchOn,
    x: impl MapArg<T, 2>,
    mut out: impl MapArgMut<e4m3, 2>,
    scales: ScalesMut<'_>,
    options: NormOptions<'_, T, 2>,
) -> Result<(), ModelError> {
    queue(on, false, x.view(), Output::Quantised(out.view_mut(), scales), options)
}

/// Checks the number that is added to a mean square or a variance.
fn check_epsilon(epsilon: f32) -> Result<(), ModelError> {
    match epsilon >= 0.0 && epsilon.is_finite() {
        true => Ok(()),
        false => {
            Err(ModelError::Number { option: "epsilon", number: epsilon, wanted: "finite and not negative" })
        }
    }
}

/// The destination of results.
enum Output<'a, T, const N: usize> {
    Same(TensorViewMut<'a, T, N>),
    Quantised(TensorViewMut<'a, e4m3, N>, ScalesMut<'a>),
}

/// Queues the kernel, unless there are no elements.
fn queue<T: ModelElement, const N: usize>(
    on: &impl LaunchOn,
    centred: bool,
    x: TensorView<'_, T, N>,
    out: Output<'_, T, N>,
    options: NormOptions<'_, T, N>,
) -> Result<(), ModelError> {
    let NormOptions { weight, constant_weight, one_plus_weight, bias, epsilon, residual } = options;
    let shape = x.shape();
    let rows = Rows::of(&shape)?;
    check_epsilon(epsilon)?;
    let columns = shape.last().copied().unwrap_or(1);
    let of_x = Strides::of("x", &shape, &x.strides())?;
    let (out, quantised) = match out {
        Output::Same(out) => (Some(out), None),
        Output::Quantised(out, scales) => (None, Some((out, scales))),
    };
    let (of_out_shape, of_out_strides) = match (&out, &quantised) {
        (Some(out), _) => (out.shape(), out.strides()),
        (None, Some((out, _))) => (out.shape(), out.strides()),
        (None, None) => (shape, x.strides()),
    };
    fits("out", &of_out_shape, &shape)?;
    let of_out = Strides::of("out", &of_out_shape, &of_out_strides)?;
    let mut all = vec![of_x, of_out];
    if let Some(residual) = &residual {
        fits("residual", &residual.shape(), &shape)?;
        all.push(Strides::of("residual", &shape, &residual.strides())?);
    }
    let of_residual = all.get(2).copied().unwrap_or(of_x);
    for (name, tensor) in [("weight", &weight), ("bias", &bias)] {
        if let Some(tensor) = tensor {
            fits(name, &tensor.shape(), &[columns])?;
            Strides::of(name, &tensor.shape(), &tensor.strides())?;
        }
    }
    let blocks = quantised.as_ref().map(|(_, scales)| scales.blocks);
    if let Some((_, scales)) = &quantised {
        scales.check([shape.iter().rev().skip(1).product(), columns])?;
    }
    if rows.is_empty() {
        return Ok(());
    }
    let in_blocks = blocks == Some(ScaleBlocks::Columns128);
    let scale_strides = quantised.as_ref().map_or([0; 2], |(_, scales)| scales.strides());
    let least = blocks.map_or(1, ScaleBlocks::least_width::<T>);
    if let Some(staging) = Staging::of::<T>(rows, &all, least, on.device().multiprocessors()) {
        let (quantised, scales) = quantised.unzip();
        let key = normalise_staged::Key { form: T::FORM, threads: staging.threads };
        normalise_staged::find::<T>(key).ok_or_else(|| without_instance(&shape))?.launch(
            dependent(on),
            Grid::x(staging.blocks),
            flat(x)?,
            out.map(|out| flat_mut(out)).transpose()?,
            residual.map(|residual| flat_mut(residual)).transpose()?,
            weight,
            bias,
            quantised.map(|out| flat_mut(out)).transpose()?,
            scales.map(ScalesMut::flat).transpose()?,
            rows.count,
            rows.inner,
            rows.columns,
            staging.width,
            staging.height,
            staging.run,
            centred,
            in_blocks,
            one_plus_weight,
            epsilon,
            of_x.outer,
            of_x.inner,
            of_out.outer,
            of_out.inner,
            of_residual.outer,
            of_residual.inner,
            scale_strides[0] as u64,
            scale_strides[1] as u64,
        )?;
        return Ok(());
    }
    let tile = Tile::of_norm::<T>(rows, &all);
    let mut division = Division::of::<T>(tile, rows);
    if let Some(blocks) = blocks {
        division = blocks.division::<T>(tile, rows);
        if division.parts > 1 {
            let most = match (tile.wide, blocks) {
                (0, ScaleBlocks::Columns128) => 128,
                (0, ScaleBlocks::Row) => 1024,
                _ => 32768 / size_of::<T>(),
            };
            return Err(ModelError::TooLong { shape: shape.into(), most, aligned: tile.wide == 1 });
        }
    }
    let (quantised, scales) = quantised.unzip();
    let key = normalise::Key { threads: tile.threads, k: tile.vectors, wide: tile.wide };
    normalise::find::<T>(key).ok_or_else(|| without_instance(&shape))?.launch(
        dependent(on),
        Grid::x(division.blocks),
        flat(x)?,
        out.map(|out| flat_mut(out)).transpose()?,
        residual.map(|residual| flat_mut(residual)).transpose()?,
        weight,
        bias,
        quantised.map(|out| flat_mut(out)).transpose()?,
        scales.map(ScalesMut::flat).transpose()?,
        rows.count,
        rows.inner,
        rows.columns,
        division.width,
        centred,
        in_blocks,
        epsilon,
        one_plus_weight,
        of_x.outer,
        of_x.inner,
        of_out.outer,
        of_out.inner,
        of_residual.outer,
        of_residual.inner,
        scale_strides[0] as u64,
        scale_strides[1] as u64,
        constant_weight,
    )?;
    Ok(())
}
