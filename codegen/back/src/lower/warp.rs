//! Operations across the lanes of a warp. All map to convergent LLVM intrinsics. Every operation
//! names all lanes of the warp.

use inkwell::values::{BasicValueEnum, IntValue};
use tma_front::ir::{
    Expr, LocalId, MatchOp, MathOp, ReduceMethod, Scalar, ShuffleOp, VoteOp, WarpOp, WarpReduceOp,
};
use tma_front::limits::WARP_THREADS;

use super::types::{Class, class, float, int, scalar_of};
use super::{Cx, Lower, arith, bounds, expr, locals};
use crate::backend::BackendError;

/// The mask of all lanes.
const ALL_LANES: u32 = u32::MAX;

/// Lowers `dest = op` over the `value` of every lane.
pub(super) fn operate(cx: &mut Cx<'_, '_>, dest: LocalId, value: &Expr, op: &WarpOp) -> Lower<()> {
    let scalar = scalar_of(&value.ty)?;
    let operand = expr::value(cx, value)?;
    let result = match op {
        WarpOp::Shuffle { op, by } => {
            let lane = expr::int_value(cx, by)?;
            bounds::lane(cx, lane, by.span)?;
            shuffle(cx, *op, operand, scalar, lane)?
        }
        WarpOp::Vote(op) => vote(cx, *op, int(operand)?)?,
        WarpOp::Match(op) => matching(cx, *op, operand, scalar)?,
        WarpOp::Reduce(op) => match op.method(scalar) {
            ReduceMethod::Instruction => by_instruction(cx, *op, int(operand)?, scalar)?.into(),
            ReduceMethod::Shuffles => by_shuffles(cx, *op, operand, scalar)?,
        },
    };
    locals::store(cx, dest, result)
}

/// Emits a shuffle of `operand`, 32 bits at a time.
fn shuffle<'c>(
    cx: &Cx<'c, '_>,
    op: ShuffleOp,
    operand: BasicValueEnum<'c>,
    scalar: Scalar,
    lane: IntValue<'c>,
) -> Lower<BasicValueEnum<'c>> {
    let bits = bits(cx, operand, scalar)?;
    let shuffled = if bits.get_type().get_bit_width() > u32::BITS {
        let halves = halves(cx, bits)?;
        let [low, high] = [shuffle_word(cx, op, halves[0], lane)?, shuffle_word(cx, op, halves[1], lane)?];
        whole(cx, low, high)?
    } else {
        let word = cx.builder.build_int_z_extend(bits, cx.context.i32_type(), "")?;
        let shuffled = shuffle_word(cx, op, word, lane)?;
        cx.builder.build_int_truncate(shuffled, bits.get_type(), "")?
    };
    Ok(cx.builder.build_bit_cast(shuffled, cx.scalar_type(scalar), "")?)
}

fn shuffle_word<'c>(
    cx: &Cx<'c, '_>,
    op: ShuffleOp,
    word: IntValue<'c>,
    lane: IntValue<'c>,
) -> Lower<IntValue<'c>> {
    // The last operand bounds the source lane, from below for `up`, otherwise from above.
    let (name, bound) = match op {
        ShuffleOp::Xor => ("llvm.nvvm.shfl.sync.bfly.i32", WARP_THREADS - 1),
        ShuffleOp::Up => ("llvm.nvvm.shfl.sync.up.i32", 0),
        ShuffleOp::Down => ("llvm.nvvm.shfl.sync.down.i32", WARP_THREADS - 1),
        ShuffleOp::Idx => ("llvm.nvvm.shfl.sync.idx.i32", WARP_THREADS - 1),
    };
    let (all, bound) = (cx.u32_const(ALL_LANES), cx.u32_const(bound));
    cx.intrinsic_value(name, &[], &[all.into(), word.into(), lane.into(), bound.into()]).and_then(int)
}

fn vote<'c>(cx: &Cx<'c, '_>, op: VoteOp, condition: IntValue<'c>) -> Lower<BasicValueEnum<'c>> {
    let name = match op {
        VoteOp::All => "llvm.nvvm.vote.all.sync",
        VoteOp::Any => "llvm.nvvm.vote.any.sync",
        VoteOp::Ballot => "llvm.nvvm.vote.ballot.sync",
    };
    cx.intrinsic_value(name, &[], &[cx.u32_const(ALL_LANES).into(), condition.into()])
}

/// Emits the mask of the lanes whose values have the same bits.
fn matching<'c>(
    cx: &Cx<'c, '_>,
    op: MatchOp,
    operand: BasicValueEnum<'c>,
    scalar: Scalar,
) -> Lower<BasicValueEnum<'c>> {
    let bits = bits(cx, operand, scalar)?;
    let (wide, ty) = match scalar.bytes() {
        8 => ("i64", cx.context.i64_type()),
        _ => ("i32", cx.context.i32_type()),
    };
    let bits = cx.builder.build_int_z_extend_or_bit_cast(bits, ty, "")?;
    let args = [cx.u32_const(ALL_LANES).into(), bits.into()];
    match op {
        MatchOp::Any => cx.intrinsic_value(&format!("llvm.nvvm.match.any.sync.{wide}"), &[], &args),
        MatchOp::All => {
            let both = cx.intrinsic_value(&format!("llvm.nvvm.match.all.sync.{wide}p"), &[], &args)?;
            let BasicValueEnum::StructValue(both) = both else {
                return Err(BackendError::Unchecked("a match without a predicate".to_owned()));
            };
            Ok(cx.builder.build_extract_value(both, 0, "")?)
        }
    }
}

/// Emits a reduction by `redux.sync`, which has 32 bits. Extending a narrower integer keeps its
/// order, and the lowest bits of a sum. 64-bit bitwise operations are split in halves.
fn by_instruction<'c>(
    cx: &Cx<'c, '_>,
    op: WarpReduceOp,
    value: IntValue<'c>,
    scalar: Scalar,
) -> Lower<IntValue<'c>> {
    if scalar.bytes() == 8 {
        let [low, high] = halves(cx, value)?;
        let (low, high) = (redux(cx, op, low, scalar)?, redux(cx, op, high, scalar)?);
        return whole(cx, low, high);
    }
    let word = cx.context.i32_type();
    let extended = cx.builder.build_int_cast_sign_flag(value, word, scalar.is_signed(), "")?;
    let reduced = redux(cx, op, extended, scalar)?;
    Ok(cx.builder.build_int_truncate(reduced, value.get_type(), "")?)
}

fn redux<'c>(cx: &Cx<'c, '_>, op: WarpReduceOp, word: IntValue<'c>, scalar: Scalar) -> Lower<IntValue<'c>> {
    let name = match (op, scalar.is_signed()) {
        (WarpReduceOp::Add, _) => "llvm.nvvm.redux.sync.add",
        (WarpReduceOp::Min, true) => "llvm.nvvm.redux.sync.min",
        (WarpReduceOp::Min, false) => "llvm.nvvm.redux.sync.umin",
        (WarpReduceOp::Max, true) => "llvm.nvvm.redux.sync.max",
        (WarpReduceOp::Max, false) => "llvm.nvvm.redux.sync.umax",
        (WarpReduceOp::And, _) => "llvm.nvvm.redux.sync.and",
        (WarpReduceOp::Or, _) => "llvm.nvvm.redux.sync.or",
        (WarpReduceOp::Xor, _) => "llvm.nvvm.redux.sync.xor",
    };
    cx.intrinsic_value(name, &[], &[word.into(), cx.u32_const(ALL_LANES).into()]).and_then(int)
}

/// Emits a butterfly reduction: each lane combines its value with those of the lanes 16, 8, 4, 2
/// and 1 away. Both lanes of a pair compute the same, so all lanes end with the same bits.
fn by_shuffles<'c>(
    cx: &mut Cx<'c, '_>,
    op: WarpReduceOp,
    operand: BasicValueEnum<'c>,
    scalar: Scalar,
) -> Lower<BasicValueEnum<'c>> {
    let mut reduced = operand;
    let mut mask = WARP_THREADS / 2;
    while mask > 0 {
        reduced = with_lane(cx, op, reduced, scalar, mask)?;
        mask /= 2;
    }
    Ok(reduced)
}

/// Emits `operand`, combined with that of the lane whose index is this lane's XOR `mask`.
pub(super) fn with_lane<'c>(
    cx: &mut Cx<'c, '_>,
    op: WarpReduceOp,
    operand: BasicValueEnum<'c>,
    scalar: Scalar,
    mask: u32,
) -> Lower<BasicValueEnum<'c>> {
    let other = shuffle(cx, ShuffleOp::Xor, operand, scalar, cx.u32_const(mask))?;
    combined(cx, op, operand, other, scalar)
}

pub(super) fn combined<'c>(
    cx: &mut Cx<'c, '_>,
    op: WarpReduceOp,
    a: BasicValueEnum<'c>,
    b: BasicValueEnum<'c>,
    scalar: Scalar,
) -> Lower<BasicValueEnum<'c>> {
    let extreme = match op {
        WarpReduceOp::Add => {
            return Ok(match class(scalar) {
                Class::Float => cx.builder.build_float_add(float(a)?, float(b)?, "")?.into(),
                Class::Int { .. } | Class::Bool | Class::Tf32 | Class::Float8 => {
                    cx.builder.build_int_add(int(a)?, int(b)?, "")?.into()
                }
            });
        }
        WarpReduceOp::Min => MathOp::Min,
        WarpReduceOp::Max => MathOp::Max,
        WarpReduceOp::And | WarpReduceOp::Or | WarpReduceOp::Xor => {
            return Err(BackendError::Unchecked(format!("`{}` by shuffles", op.name())));
        }
    };
    arith::apply(cx, extreme, scalar, &[a, b])
}

/// Emits the bits of a scalar.
fn bits<'c>(cx: &Cx<'c, '_>, operand: BasicValueEnum<'c>, scalar: Scalar) -> Lower<IntValue<'c>> {
    match class(scalar) {
        Class::Float => int(cx.builder.build_bit_cast(operand, cx.bits_type(scalar), "")?),
        Class::Bool | Class::Int { .. } | Class::Tf32 | Class::Float8 => int(operand),
    }
}

/// Emits the low and the high half of 64 bits.
fn halves<'c>(cx: &Cx<'c, '_>, bits: IntValue<'c>) -> Lower<[IntValue<'c>; 2]> {
    let (word, amount) = (cx.context.i32_type(), bits.get_type().const_int(u64::from(u32::BITS), false));
    let low = cx.builder.build_int_truncate(bits, word, "")?;
    let high = cx.builder.build_right_shift(bits, amount, false, "")?;
    Ok([low, cx.builder.build_int_truncate(high, word, "")?])
}

/// Emits the 64 bits that consist of these halves.
fn whole<'c>(cx: &Cx<'c, '_>, low: IntValue<'c>, high: IntValue<'c>) -> Lower<IntValue<'c>> {
    let wide = cx.context.i64_type();
    let low = cx.builder.build_int_z_extend(low, wide, "")?;
    let high = cx.builder.build_int_z_extend(high, wide, "")?;
    let high = cx.builder.build_left_shift(high, wide.const_int(u64::from(u32::BITS), false), "")?;
    Ok(cx.builder.build_or(low, high, "")?)
}
