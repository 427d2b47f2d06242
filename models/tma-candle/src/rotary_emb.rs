//! Rotary embeddings.

use candle_core::{DType, Tensor, bail};
use tma_kernels::cached::RotaryLayout;
use tma_kernels::model::{RotaryAngles, rotary, rotary_backward};
use tma_runtime::prelude::*;

use crate::attention::AXES;
use crate::backward::Backward;
use crate::by_element;
use crate::error::Result;
use crate::operation::Operation;

/// Rotates column `i` and column `i + depth / 2` of heads, as in Llama.
///
/// `x` is batch × heads × positions × depth of BF16 or F16, with a depth that is a multiple of 16.
/// `cos` and `sin` are positions × depth / 2 or, for other positions in each sequence, batch ×
/// positions × depth / 2. Those in F32 are used as they are, and others converted.
///
/// # Errors
///
/// Tensors that do not match.
pub fn rope(x: &Tensor, cos: &Tensor, sin: &Tensor) -> Result<Tensor> {
    rotated("rope", x, [cos, sin], Axes::heads_first(RotaryLayout::Halves))
}

/// Rotates columns `2 * i` and `2 * i + 1` of heads, as in GPT-J. Otherwise it is like [`rope`],
/// with a depth that is a multiple of 8.
///
/// # Errors
///
/// Tensors that do not match.
pub fn rope_i(x: &Tensor, cos: &Tensor, sin: &Tensor) -> Result<Tensor> {
    rotated("rope-i", x, [cos, sin], Axes::heads_first(RotaryLayout::Pairs))
}

/// Rotates like [`rope`] a tensor of batch × positions × heads × depth.
///
/// # Errors
///
/// Tensors that do not match.
pub fn rope_thd(x: &Tensor, cos: &Tensor, sin: &Tensor) -> Result<Tensor> {
    rotated("rope-thd", x, [cos, sin], Axes::tokens_first(RotaryLayout::Halves))
}

/// The columns that are rotated together, and the dimensions of tokens and heads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axes {
    layout: RotaryLayout,
    tokens: usize,
    heads: usize,
    /// Whether columns are rotated by the opposite angles.
    is_inverse: bool,
}

impl Axes {
    /// Returns those of batch × heads × positions × depth.
    fn heads_first(layout: RotaryLayout) -> Self {
        Self { layout, tokens: 2, heads: 1, is_inverse: false }
    }

    /// Returns those of batch × positions × heads × depth.
    fn tokens_first(layout: RotaryLayout) -> Self {
        Self { layout, tokens: 1, heads: 2, is_inverse: false }
    }
}

/// Returns the gradient of `x` from that of the result: a rotation by the opposite angles.
pub(crate) fn rotated_back(
    name: &'static str,
    dy: &Tensor,
    angles: [&Tensor; 2],
    axes: Axes,
) -> Result<Tensor> {
    rotated(name, dy, angles, Axes { is_inverse: !axes.is_inverse, ..axes })
}

fn rotated(name: &'static str, x: &Tensor, angles: [&Tensor; 2], axes: Axes) -> Result<Tensor> {
    let names = if axes.tokens == 1 { AXES } else { ["batch", "heads", "positions", "depth"] };
    Operation::new(name, &[("x", x)]).check_rank("x", &names)?;
    let shape = x.dims();
    let (batch, tokens, depth) = (shape[0], shape[axes.tokens], shape[3]);
    let [cos, sin] = [angles[0].to_dtype(DType::F32)?, angles[1].to_dtype(DType::F32)?];
    for (of_angles, angles) in [("cos", &cos), ("sin", &sin)] {
        let is_matched = match *angles.dims() {
            [known, columns] => known >= tokens && 2 * columns == depth,
            [sequences, known, columns] => sequences == batch && known >= tokens && 2 * columns == depth,
            _ => false,
        };
        if !is_matched || angles.rank() != cos.rank() {
            bail!(
                "{name}: `{of_angles}` must be {tokens} × {} or {batch} × {tokens} × {0}, like the other: it is {:?}",
                depth / 2,
                angles.dims()
            )
        }
    }
    let inputs = [("x", x), ("cos", &cos), ("sin", &sin)];
    let operation = Operation::new(name, &inputs).with_backward(Backward::Rotary(axes));
    by_element!(name, "x", x, [bf16, f16], T => operation.run::<T>(shape, |call| {
        let order = [0, axes.tokens, axes.heads, 3];
        let x = call.input::<T, 4>("x")?.permute(order)?;
        let mut out = call.output::<T, 4>()?.permute(order)?;
        let (cos, sin) = (call.input::<f32, 3>("cos")?, call.input::<f32, 3>("sin")?);
        let (shape, cuts) = (x.shape(), [x.strides(), out.strides()]);
        // One launch, if sequences are more heads of the same angles, or more tokens of other ones.
        let follow = |angles: TensorView<'_, f32, 3>| angles.strides()[0] == tokens * angles.strides()[1];
        let launches = match cos.shape()[0] {
            1 => joined(shape, cuts, 2).map(|joined| (joined, cos.shape()[1])),
            _ if follow(cos) && follow(sin) => joined(shape, cuts, 1).map(|joined| (joined, batch * tokens)),
            _ => None,
        };
        let (parts, Joined { shape: of_part, strides: [of_x, of_out] }, known) = match launches {
            Some((joined, known)) => (1, joined, known),
            None => (batch, Joined::of_sequence(shape, cuts), cos.shape()[1]),
        };
        let positions = call.queue().counted(of_part[0])?;
        for i in 0..parts {
            let whole = |i: usize, extents: usize| if parts == 1 { 0..extents } else { i..i + 1 };
            let box_of = [whole(i, batch), 0..shape[1], 0..shape[2], 0..shape[3]];
            let (cos, sin) = (of_sequence(cos, i, known)?, of_sequence(sin, i, known)?);
            let angles = RotaryAngles { cos, sin, layout: axes.layout };
            let x = x.slice(box_of.clone())?.with_strides(of_part, of_x)?;
            let positions = positions.view().with_strides([of_part[0]], [1])?;
            let out = out.reborrow().slice(box_of)?.with_strides(of_part, of_out)?;
            match axes.is_inverse {
                false => rotary(call.on(), x, positions, out, angles)?,
                true => rotary_backward(call.on(), x, positions, out, angles)?,
            }
        }
        Ok(())
    }))
}

/// Returns so many rows of angles from those of a sequence on, or from the first on if all
/// sequences have the same.
fn of_sequence(
    angles: TensorView<'_, f32, 3>,
    sequence: usize,
    rows: usize,
) -> Result<TensorView<'_, f32, 2>, Error> {
    let ([sequences, known, columns], [_, row, column]) = (angles.shape(), angles.strides());
    let first = if sequences == 1 { 0 } else { sequence };
    angles.slice([first..sequences, 0..known, 0..columns])?.with_strides([rows, columns], [row, column])
}

/// Sequences as one tensor of tokens × heads × depth, with the strides of `x` and the result.
struct Joined {
    shape: [usize; 3],
    strides: [[usize; 3]; 2],
}

impl Joined {
    /// Returns the tensor of one sequence.
    fn of_sequence(shape: [usize; 4], strides: [[usize; 4]; 2]) -> Self {
        let without_batch = |of_all: [usize; 4]| [of_all[1], of_all[2], of_all[3]];
        Self { shape: without_batch(shape), strides: strides.map(without_batch) }
    }
}

/// Returns batch × tokens × heads × depth with the batch merged into another dimension, 1 or 2, if
/// this is possible in both tensors.
fn joined(shape: [usize; 4], strides: [[usize; 4]; 2], into: usize) -> Option<Joined> {
    let mut joined = Joined::of_sequence(shape, strides);
    joined.shape[into - 1] *= shape[0];
    for (of_tensor, steps) in joined.strides.iter_mut().zip(strides) {
        if shape[into] == 1 {
            of_tensor[into - 1] = steps[0];
        } else if shape[0] > 1 && steps[0] != shape[into] * steps[into] {
            return None;
        }
    }
    Some(joined)
}
