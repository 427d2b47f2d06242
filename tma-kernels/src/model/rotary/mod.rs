//! Rotary embeddings of heads.

pub mod kernel;
mod tables;

use tma_runtime::launch::{LaunchOn, MapArg, MapArgMut};
use tma_runtime::prelude::*;

use self::kernel::rows::{HEADS, THREADS, turn};
pub use self::tables::{RotaryScaling, rotary_tables};
use super::ModelError;
use super::rows::{fits, flat, flat_mut, without_instance};
use crate::cached::{AttentionElement, RotaryLayout};
use crate::dependent::dependent;

/// The elements of a vector.
const VECTOR: usize = 8;

/// The number of vectors, and of other extents, that the kernel does not reach.
const MOST: usize = 1 << 31;

/// The angles of positions, and the columns that they turn.
#[derive(Clone, Copy, Debug)]
pub struct RotaryAngles<'a> {
    /// Cosines: positions × half of the rotated columns.
    pub cos: TensorView<'a, f32, 2>,
    /// Sines, of the same shape.
    pub sin: TensorView<'a, f32, 2>,
    /// The columns that are rotated together.
    pub layout: RotaryLayout,
}

/// Queues the rotary embedding of heads: pairs of columns are rotated by an angle that depends on
/// the position of the token.
///
/// `x` and `out` are tokens × heads × depth, with a depth that is a multiple of 8. `positions` has
/// the position of each token, and is read when the kernel runs. If the angles have fewer columns
/// than half of the depth, only the first columns are rotated, and the others copied. Rows must
/// begin at multiples of 16 bytes, and may be apart: the queries within rows of queries, keys and
/// values are a view. Tokens whose position is beyond the angles are not written.
///
/// Products and sums are computed in `f32`, and results are rounded once. A call allocates nothing
/// and does not wait.
///
/// ```
/// use tma_kernels::cached::RotaryLayout;
/// use tma_kernels::model::{RotaryAngles, RotaryScaling, rotary, rotary_tables};
/// use tma_runtime::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::simulator();
/// let (cos, sin) = rotary_tables(0..64, 32, 10_000.0, RotaryScaling::None);
/// let (cos, sin) = (device.tensor(&cos, [64, 16])?, device.tensor(&sin, [64, 16])?);
/// let angles = RotaryAngles { cos: cos.view(), sin: sin.view(), layout: RotaryLayout::Halves };
/// let x = device.tensor(&[bf16::ONE; 2 * 4 * 32], [2, 4, 32])?;
/// let positions = device.tensor(&[0, 7], [2])?;
/// let mut out = device.zeros::<bf16, 3>([2, 4, 32])?;
/// rotary(&device, &x, &positions, &mut out, angles)?;
/// let found = out.to_vec()?;
/// assert!(found[..4 * 32].iter().all(|y| *y == bf16::ONE)); // position 0 turns nothing
/// assert_eq!(found[4 * 32], bf16::from_f32(7f32.cos() - 7f32.sin()));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// `TMA0575` for shapes that do not match, `TMA0576` for rows that are not adjacent or not aligned,
/// `TMA0577` for too many tokens and `TMA0578` for a number of columns that cannot be rotated. Also
/// the errors of [`launch`](tma_runtime::launch::launch).
pub fn rotary<T: AttentionElement>(
    on: &impl LaunchOn,
    x: impl MapArg<T, 3>,
    positions: impl MapArg<u32, 1>,
    mut out: impl MapArgMut<T, 3>,
    angles: RotaryAngles<'_>,
) -> Result<(), ModelError> {
    let (x, out) = (x.view(), out.view_mut());
    fits("out", &out.shape(), &x.shape())?;
    queue(on, Some(x), positions.view(), out, Turn { angles, inverse: false })
}

/// Queues the same of a tensor that the result replaces.
///
/// # Errors
///
/// Those of [`rotary`].
pub fn rotary_in_place<T: AttentionElement>(
    on: &impl LaunchOn,
    mut x: impl MapArgMut<T, 3>,
    positions: impl MapArg<u32, 1>,
    angles: RotaryAngles<'_>,
) -> Result<(), ModelError> {
    queue(on, None, positions.view(), x.view_mut(), Turn { angles, inverse: false })
}

/// Queues the gradient of [`rotary`], from the gradient `dy` of its result: pairs of columns are
/// rotated by the opposite angle.
///
/// If the tables have a factor, as those of [`RotaryScaling::Yarn`] do, the gradient has it as well.
/// Tokens whose position is beyond the angles are not written. Otherwise it is like [`rotary`].
///
/// ```
/// use tma_kernels::cached::RotaryLayout;
/// use tma_kernels::model::{RotaryAngles, RotaryScaling, rotary_backward, rotary_tables};
/// use tma_runtime::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::simulator();
/// let (cos, sin) = rotary_tables(0..64, 32, 10_000.0, RotaryScaling::None);
/// let (cos, sin) = (device.tensor(&cos, [64, 16])?, device.tensor(&sin, [64, 16])?);
/// let angles = RotaryAngles { cos: cos.view(), sin: sin.view(), layout: RotaryLayout::Halves };
/// let dy = device.tensor(&[bf16::ONE; 4 * 32], [1, 4, 32])?;
/// let positions = device.tensor(&[7], [1])?;
/// let mut dx = device.zeros::<bf16, 3>([1, 4, 32])?;
/// rotary_backward(&device, &dy, &positions, &mut dx, angles)?;
/// assert_eq!(dx.to_vec()?[0], bf16::from_f32(7f32.cos() + 7f32.sin()));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Those of [`rotary`].
pub fn rotary_backward<T: AttentionElement>(
    on: &impl LaunchOn,
    dy: impl MapArg<T, 3>,
    positions: impl MapArg<u32, 1>,
    mut dx: impl MapArgMut<T, 3>,
    angles: RotaryAngles<'_>,
) -> Result<(), ModelError> {
    let (dy, dx) = (dy.view(), dx.view_mut());
    fits("dx", &dx.shape(), &dy.shape())?;
    queue(on, Some(dy), positions.view(), dx, Turn { angles, inverse: true })
}

/// Queues the same of a tensor that the result replaces.
///
/// # Errors
///
/// Those of [`rotary`].
pub fn rotary_backward_in_place<T: AttentionElement>(
    on: &impl LaunchOn,
    mut dy: impl MapArgMut<T, 3>,
    positions: impl MapArg<u32, 1>,
    angles: RotaryAngles<'_>,
) -> Result<(), ModelError> {
    queue(on, None, positions.view(), dy.view_mut(), Turn { angles, inverse: true })
}

/// Angles, and the direction in which columns are rotated.
struct Turn<'a> {
    angles: RotaryAngles<'a>,
    inverse: bool,
}

/// Queues the kernel, unless there are no elements.
fn queue<T: AttentionElement>(
    on: &impl LaunchOn,
    x: Option<TensorView<'_, T, 3>>,
    positions: TensorView<'_, u32, 1>,
    out: TensorViewMut<'_, T, 3>,
    turned: Turn<'_>,
) -> Result<(), ModelError> {
    let Turn { angles: RotaryAngles { cos, sin, layout }, inverse } = turned;
    let shape @ [tokens, heads, depth] = out.shape();
    fits("positions", &positions.shape(), &[tokens])?;
    fits("sin", &sin.shape(), &cos.shape())?;
    let [known, pairs] = cos.shape();
    let rotated = 2 * pairs;
    let (unit, wanted) = match layout {
        RotaryLayout::Halves => (2 * VECTOR, "a multiple of 16, and at most the depth"),
        RotaryLayout::Pairs => (VECTOR, "a multiple of 8, and at most the depth"),
    };
    if !rotated.is_multiple_of(unit) || rotated > depth {
        return Err(ModelError::Number { option: "rotated columns", number: rotated as f32, wanted });
    }
    if !depth.is_multiple_of(VECTOR) {
        return Err(ModelError::Number { option: "depth", number: depth as f32, wanted: "a multiple of 8" });
    }
    let of_out = out.strides();
    let of_x = x.as_ref().map_or(of_out, TensorView::strides);
    check_rows("out", shape, of_out, VECTOR)?;
    check_rows("x", shape, of_x, VECTOR)?;
    let of_cos = cos.strides();
    let of_sin = sin.strides();
    check_rows("cos", [known, pairs], of_cos, VECTOR / 2)?;
    check_rows("sin", [known, pairs], of_sin, VECTOR / 2)?;
    let slots = rotated / unit + (depth - rotated) / VECTOR;
    let groups = heads.div_ceil(HEADS as usize);
    let items = [tokens, groups, slots].iter().try_fold(1_usize, |all, n| all.checked_mul(*n));
    let items = items.filter(|items| *items < MOST && known < MOST);
    let wanted = "fewer than 2^31 vectors of heads, and positions";
    let items = items.ok_or_else(|| ModelError::TooLarge { shape: shape.into(), wanted })?;
    if items == 0 || known == 0 {
        return Ok(());
    }
    let [step] = positions.strides();
    let key = turn::Key { pairs: layout == RotaryLayout::Pairs };
    turn::find::<T>(key).ok_or_else(|| without_instance(&shape))?.launch(
        dependent(on),
        Grid::x((items as u32).div_ceil(THREADS)),
        x.map(flat).transpose()?,
        flat_mut(out)?,
        flat(positions)?,
        flat(cos)?,
        flat(sin)?,
        items as u32,
        slots as u32,
        heads as u32,
        rotated as u32,
        known as u32,
        inverse,
        step as u64,
        of_cos[0] as u64,
        of_sin[0] as u64,
        of_x[0] as u64,
        of_x[1] as u64,
        of_out[0] as u64,
        of_out[1] as u64,
    )?;
    Ok(())
}

/// Checks that threads can read or write rows by vectors of so many elements.
fn check_rows<const N: usize>(
    tensor: &'static str,
    shape: [usize; N],
    strides: [usize; N],
    vector: usize,
) -> Result<(), ModelError> {
    if shape.contains(&0) {
        return Ok(());
    }
    if strides[N - 1] != 1 && shape[N - 1] > 1 {
        return Err(ModelError::Rows { tensor, strides: strides.into() });
    }
    let mut apart = shape.iter().zip(strides).rev().skip(1).filter(|(extent, _)| **extent > 1);
    match apart.all(|(_, stride)| stride.is_multiple_of(vector)) {
        true => Ok(()),
        false => Err(ModelError::Unaligned { tensor, strides: strides.into() }),
    }
}
