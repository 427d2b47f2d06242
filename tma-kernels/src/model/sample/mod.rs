//! Tokens of rows of logits.

pub mod kernel;

use tma_runtime::Scalar;
use tma_runtime::launch::{LaunchOn, MapArg, MapArgMut};
use tma_runtime::prelude::*;

use self::kernel::rows::{BLOCKS, draw, scan};
use super::rows::{Rows, Strides, Tile, fits, flat, flat_mut, without_instance};
use super::{ModelElement, ModelError};
use crate::dependent::dependent;

/// The rows of logits, and where they are.
struct Logits<'a, T> {
    flat: TensorView<'a, T, 1>,
    rows: Rows,
    strides: Strides,
    wide: usize,
    shape: [usize; 2],
}

impl<'a, T: ModelElement> Logits<'a, T> {
    fn of(x: TensorView<'a, T, 2>) -> Result<Self, ModelError> {
        let shape = x.shape();
        let [count, columns] = shape;
        let rows = Rows::of(&shape)?;
        // A cluster of a row has several blocks, and a row without elements has no token.
        if count >= 1 << 27 || count > 0 && columns == 0 {
            return Err(ModelError::TooLarge {
                shape: shape.into(),
                wanted: "fewer than 2^27 rows of logits, each with at least one column",
            });
        }
        let strides = Strides::of("x", &shape, &x.strides())?;
        let wide = Tile::of_elements::<T>(rows, &[strides], 1).wide;
        Ok(Self { flat: flat(x)?, rows, strides, wide, shape })
    }

    fn grid(&self) -> Grid {
        Grid::x(self.rows.count * BLOCKS)
    }
}

/// Returns a tensor with an element for each row, which must be contiguous.
pub(super) fn per_row<'a, T: Scalar>(
    name: &'static str,
    tensor: TensorView<'a, T, 1>,
    rows: usize,
) -> Result<TensorView<'a, T, 1>, ModelError> {
    fits(name, &tensor.shape(), &[rows])?;
    Strides::of(name, &tensor.shape(), &tensor.strides())?;
    Ok(flat(tensor)?)
}

/// Queues `out[row]` = the index of the greatest element of each row of `x`.
///
/// `x` is rows × columns, and rows may be apart. Of equal elements, the first one counts; 0 and -0
/// are equal. NaN counts as greater than any number. A call allocates nothing and does not wait.
///
/// ```
/// use tma_kernels::model::arg_max;
/// use tma_runtime::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::simulator();
/// let x = device.tensor(&[0.0_f32, 7.0, 7.0, -1.0, 2.0, 0.5, 1.0, 2.0], [2, 4])?;
/// let mut out = device.zeros([2])?;
/// arg_max(&device, &x, &mut out)?;
/// assert_eq!(out.to_vec()?, [1, 0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// `TMA0575` for shapes that do not match, `TMA0576` for rows whose elements are not adjacent and
/// `TMA0577` for too many rows or columns, or rows without columns. Also the errors of
/// [`launch`](tma_runtime::launch::launch).
pub fn arg_max<T: ModelElement>(
    on: &impl LaunchOn,
    x: impl MapArg<T, 2>,
    mut out: impl MapArgMut<u32, 1>,
) -> Result<(), ModelError> {
    let logits = Logits::of(x.view())?;
    let out = out.view_mut();
    fits("out", &out.shape(), &[logits.shape[0]])?;
    Strides::of("out", &out.shape(), &out.strides())?;
    if logits.rows.is_empty() {
        return Ok(());
    }
    scan::find::<T>(scan::Key { wide: logits.wide }).ok_or_else(|| without_instance(&logits.shape))?.launch(
        dependent(on),
        logits.grid(),
        logits.flat,
        Some(flat_mut(out)?),
        None::<TensorView<'_, u32, 1>>,
        None::<TensorViewMut<'_, f32, 1>>,
        logits.rows.columns,
        logits.strides.inner,
    )?;
    Ok(())
}

/// Queues `out[row] = x[row, tokens[row]] - ln(Σ exp(x[row, ..]))`: the logarithm of the token's
/// probability.
///
/// `x` is rows × columns, and rows may be apart. Powers are taken relative to the greatest element
/// and summed in `f32`. The result is NaN if the row has a NaN or +∞, or is -∞ alone. For a token
/// that `x` does not have it is -∞ in any row. A call allocates nothing and does not wait.
///
/// # Errors
///
/// Those of [`arg_max`].
pub fn log_probability<T: ModelElement>(
    on: &impl LaunchOn,
    x: impl MapArg<T, 2>,
    tokens: impl MapArg<u32, 1>,
    mut out: impl MapArgMut<f32, 1>,
) -> Result<(), ModelError> {
    let logits = Logits::of(x.view())?;
    let out = out.view_mut();
    let tokens = per_row("tokens", tokens.view(), logits.shape[0])?;
    fits("out", &out.shape(), &[logits.shape[0]])?;
    Strides::of("out", &out.shape(), &out.strides())?;
    if logits.rows.is_empty() {
        return Ok(());
    }
    scan::find::<T>(scan::Key { wide: logits.wide }).ok_or_else(|| without_instance(&logits.shape))?.launch(
        dependent(on),
        logits.grid(),
        logits.flat,
        None::<TensorViewMut<'_, u32, 1>>,
        Some(tokens),
        Some(flat_mut(out)?),
        logits.rows.columns,
        logits.strides.inner,
    )?;
    Ok(())
}

/// Random numbers and limits for each row. All are read when the kernel runs.
#[derive(Clone, Copy, Debug)]
pub struct SampleOptions<'a> {
    /// The seed of each row.
    pub seeds: TensorView<'a, u64, 1>,
    /// The position of each row's token. The same seed and position produce the same random
    /// numbers.
    pub positions: TensorView<'a, u32, 1>,
    /// The temperature of each row, 1 by default. One of at most 10^-20, or NaN, stands for
    /// [`arg_max`]. With an infinite one, all tokens above -∞ have the same probability.
    pub temperatures: Option<TensorView<'a, f32, 1>>,
    /// The number of tokens that are left for each row: those with fewer than so many greater
    /// logits. 0, the default, stands for all.
    pub top_k: Option<TensorView<'a, u32, 1>>,
    /// The probability that is left for each row: that of the most probable tokens, up to the one
    /// that reaches it. 1, the default, stands for all. The most probable token is always left.
    pub top_p: Option<TensorView<'a, f32, 1>>,
}

impl<'a> SampleOptions<'a> {
    /// Returns the options of the temperature 1 and all tokens.
    pub fn new(seeds: TensorView<'a, u64, 1>, positions: TensorView<'a, u32, 1>) -> Self {
        Self { seeds, positions, temperatures: None, top_k: None, top_p: None }
    }
}

/// Queues the choice of a token of each row by chance: `out[row] = i` with the probability
/// softmax(x / temperature)\[i\], among the tokens that `top_k` and `top_p` leave.
///
/// Both limits apply to the softmax of all tokens, and a token is left if both leave it. Tokens
/// with equal logits are left together. The random numbers are those of Philox4x32-10 with the
/// row's seed as the key, and the counter (i / 4, position, 0, 0): the word i % 4 is that of token
/// i. The chosen token has the greatest `x[i] / temperature - ln(-ln(1 - u))`, where u is
/// (word + 1/2) / 2^32, rounded to an `f32` below 1. The result therefore depends on nothing but the
/// row, its options, and the device's approximations of `ex2` and `lg2`; with `top_p`, also on the
/// alignment of rows, which may change the order of a sum.
///
/// `x` is rows × columns, and rows may be apart. The first NaN of a row is chosen or, without
/// one, the first +∞. A call allocates nothing and does not wait.
///
/// ```
/// use tma_kernels::model::{SampleOptions, sample};
/// use tma_runtime::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::simulator();
/// let x = device.tensor(&[0.0_f32, 3.0, f32::NEG_INFINITY, 3.0], [1, 4])?;
/// let (seeds, positions) = (device.tensor(&[42], [1])?, device.tensor(&[7], [1])?);
/// let top_k = device.tensor(&[2], [1])?;
/// let mut options = SampleOptions::new(seeds.view(), positions.view());
/// options.top_k = Some(top_k.view());
/// let mut out = device.zeros([1])?;
/// sample(&device, &x, &mut out, options)?;
/// assert!([1, 3].contains(&out.to_vec()?[0]));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Those of [`arg_max`].
pub fn sample<T: ModelElement>(
    on: &impl LaunchOn,
    x: impl MapArg<T, 2>,
    mut out: impl MapArgMut<u32, 1>,
    options: SampleOptions<'_>,
) -> Result<(), ModelError> {
    let logits = Logits::of(x.view())?;
    let out = out.view_mut();
    let count = logits.shape[0];
    fits("out", &out.shape(), &[count])?;
    Strides::of("out", &out.shape(), &out.strides())?;
    let SampleOptions { seeds, positions, temperatures, top_k, top_p } = options;
    let seeds = per_row("seeds", seeds, count)?;
    let positions = per_row("positions", positions, count)?;
    let temperatures = temperatures.map(|all| per_row("temperatures", all, count)).transpose()?;
    let top_k = top_k.map(|all| per_row("top_k", all, count)).transpose()?;
    let top_p = top_p.map(|all| per_row("top_p", all, count)).transpose()?;
    if logits.rows.is_empty() {
        return Ok(());
    }
    draw::find::<T>(draw::Key { wide: logits.wide }).ok_or_else(|| without_instance(&logits.shape))?.launch(
        dependent(on),
        logits.grid(),
        logits.flat,
        flat_mut(out)?,
        seeds,
        positions,
        temperatures,
        top_k,
        top_p,
        logits.rows.columns,
        logits.strides.inner,
    )?;
    Ok(())
}
