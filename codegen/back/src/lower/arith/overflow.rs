//! Integer arithmetic that stops where Rust's debug builds panic, with Rust's words. Only operators
//! of the source do so, in checked kernels.
//!
//! LLVM's intrinsics tell whether a result is exact. LLVM removes a check if it knows the ranges of
//! the operands, as it does for special registers.

use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicMetadataValueEnum, BasicValueEnum, IntValue, StructValue};
use tma_front::ir::{
    BinaryOp, Expr, ExprKind, MathOp, NEGATION_OVERFLOW, Scalar, Span, Strictness, UnaryOp, visit,
};

use crate::backend::BackendError;
use crate::lower::types::int;
use crate::lower::{Cx, Lower, expr, print};

/// Emits an operation on integers, other than a shift. A sum, a difference or a product stops if it
/// overflows.
pub(super) fn integer<'c>(
    cx: &mut Cx<'c, '_>,
    op: BinaryOp,
    signed: bool,
    a: IntValue<'c>,
    b: IntValue<'c>,
    span: Span,
) -> Lower<IntValue<'c>> {
    let name = match (op, signed) {
        (BinaryOp::Add, false) => "llvm.uadd.with.overflow",
        (BinaryOp::Add, true) => "llvm.sadd.with.overflow",
        (BinaryOp::Sub, false) => "llvm.usub.with.overflow",
        (BinaryOp::Sub, true) => "llvm.ssub.with.overflow",
        (BinaryOp::Mul, false) => "llvm.umul.with.overflow",
        (BinaryOp::Mul, true) => "llvm.smul.with.overflow",
        (
            BinaryOp::Div
            | BinaryOp::Rem
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
            | BinaryOp::Shl
            | BinaryOp::Shr
            | BinaryOp::Eq
            | BinaryOp::Ne
            | BinaryOp::Lt
            | BinaryOp::Le
            | BinaryOp::Gt
            | BinaryOp::Ge,
            _,
        ) => return super::integer(cx, op, signed, a, b),
    };
    let overload: [BasicTypeEnum<'c>; 1] = [a.get_type().into()];
    let args: [BasicMetadataValueEnum<'c>; 2] = [a.into(), b.into()];
    let both = pair(cx.intrinsic_value(name, &overload, &args)?)?;
    let result = cx.builder.build_extract_value(both, 0, "").map_err(Into::into).and_then(int)?;
    let overflows = cx.builder.build_extract_value(both, 1, "").map_err(Into::into).and_then(int)?;
    let fits = cx.builder.build_not(overflows, "")?;
    check(cx, op, fits, span)?;
    Ok(result)
}

/// Checks that the shift amount `b` is below the width of `a`.
pub(super) fn shift<'c>(
    cx: &mut Cx<'c, '_>,
    op: BinaryOp,
    a: IntValue<'c>,
    b: IntValue<'c>,
    span: Span,
) -> Lower<()> {
    let width = b.get_type().const_int(a.get_type().get_bit_width().into(), false);
    // A negative amount is a large one.
    let fits = cx.builder.build_int_compare(IntPredicate::ULT, b, width, "")?;
    check(cx, op, fits, span)
}

/// Checks that a signed integer has an opposite, in a checked kernel.
pub(super) fn negation<'c>(cx: &mut Cx<'c, '_>, a: IntValue<'c>, span: Span) -> Lower<()> {
    if !cx.checked {
        return Ok(());
    }
    let fits = has_opposite(cx, a)?;
    check_for(cx, NEGATION_OVERFLOW, fits, span)
}

/// Compares a signed integer with the least one of its type, the only one without an opposite.
pub(in crate::lower) fn has_opposite<'c>(cx: &Cx<'c, '_>, a: IntValue<'c>) -> Lower<IntValue<'c>> {
    let ty = a.get_type();
    let least = ty.const_int(1 << (ty.get_bit_width() - 1), false);
    Ok(cx.builder.build_int_compare(IntPredicate::NE, a, least, "")?)
}

/// Checks that the result of `op` is one of its type.
pub(in crate::lower) fn check<'c>(
    cx: &mut Cx<'c, '_>,
    op: BinaryOp,
    fits: IntValue<'c>,
    span: Span,
) -> Lower<()> {
    let words = op.overflow();
    let words = words.ok_or_else(|| BackendError::Unchecked(format!("an overflow of `{}`", op.sign())))?;
    check_for(cx, words, fits, span)
}

fn check_for<'c>(cx: &mut Cx<'c, '_>, words: &str, fits: IntValue<'c>, span: Span) -> Lower<()> {
    if fits.get_zero_extended_constant() == Some(1) {
        return Ok(());
    }
    print::assert(cx, fits, words, span)
}

/// Whether an operand may stop a checked kernel. Operands that may stop every kernel, such as
/// indices, are not part of an `&&`.
pub(in crate::lower) fn may_stop(operand: &Expr) -> bool {
    let is_integer = |expr: &Expr| expr.ty.as_scalar().is_some_and(Scalar::is_integer);
    let mut may_stop = false;
    visit::within(operand, &mut |node| {
        if let ExprKind::Binary(op, a, _, Strictness::Strict) = &node.kind {
            may_stop |= op.overflow().is_some() && is_integer(a);
        } else if let ExprKind::Unary(UnaryOp::Neg, a) = &node.kind {
            may_stop |= is_integer(a);
        } else if let ExprKind::Math(op @ (MathOp::Abs | MathOp::Clamp), _) = &node.kind {
            may_stop |= *op == MathOp::Clamp || is_integer(node);
        }
    });
    may_stop
}

/// Emits `a && b` or `a || b`, which evaluates `b` only if `a` does not decide the result.
pub(in crate::lower) fn lazy<'c>(
    cx: &mut Cx<'c, '_>,
    op: BinaryOp,
    a: &Expr,
    b: &Expr,
) -> Lower<BasicValueEnum<'c>> {
    let a = expr::int_value(cx, a)?;
    let (rest, end) = (cx.new_block("right"), cx.new_block("end_condition"));
    let before = block(cx)?;
    match op == BinaryOp::Or {
        true => cx.builder.build_conditional_branch(a, end, rest)?,
        false => cx.builder.build_conditional_branch(a, rest, end)?,
    };
    cx.builder.position_at_end(rest);
    let b = expr::int_value(cx, b)?;
    let after = block(cx)?;
    cx.branch_to(end)?;
    cx.builder.position_at_end(end);
    let result = cx.builder.build_phi(cx.context.bool_type(), "")?;
    result.add_incoming(&[(&a, before), (&b, after)]);
    Ok(result.as_basic_value())
}

fn block<'c>(cx: &Cx<'c, '_>) -> Lower<BasicBlock<'c>> {
    let block = cx.builder.get_insert_block();
    block.ok_or_else(|| BackendError::Unchecked("an expression outside of a block".to_owned()))
}

fn pair(value: BasicValueEnum<'_>) -> Lower<StructValue<'_>> {
    let BasicValueEnum::StructValue(pair) = value else {
        return Err(BackendError::Unchecked("a result without overflow flag".to_owned()));
    };
    Ok(pair)
}
