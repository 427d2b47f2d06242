//! Functions of the bits of an integer, each of which LLVM has an intrinsic for.

use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicMetadataValueEnum, BasicValueEnum, IntValue};

use super::types::int;
use super::{Cx, Lower, expr};
use crate::backend::BackendError;
use crate::ir::{Expr, IntegerOp};

/// `op` of an integer, and of what is beside it.
pub(super) fn apply<'c>(
    cx: &mut Cx<'c, '_>,
    op: IntegerOp,
    operands: &[Expr],
) -> Lower<BasicValueEnum<'c>> {
    let values = expr::values(cx, operands)?;
    let [value, rest @ ..] = &values[..] else {
        return Err(BackendError::Unchecked(format!("`{}` of nothing", op.name())));
    };
    let value = int(*value)?;
    let flipped = || Ok::<_, BackendError>(cx.builder.build_not(value, "")?);
    let found = match op {
        IntegerOp::CountOnes => call(cx, "llvm.ctpop", value, &[])?,
        IntegerOp::CountZeros => call(cx, "llvm.ctpop", flipped()?, &[])?,
        IntegerOp::LeadingZeros => zeros(cx, "llvm.ctlz", value)?,
        IntegerOp::LeadingOnes => zeros(cx, "llvm.ctlz", flipped()?)?,
        IntegerOp::TrailingZeros => zeros(cx, "llvm.cttz", value)?,
        IntegerOp::TrailingOnes => zeros(cx, "llvm.cttz", flipped()?)?,
        IntegerOp::ReverseBits => call(cx, "llvm.bitreverse", value, &[])?,
        // A byte alone has no order.
        IntegerOp::SwapBytes if value.get_type().get_bit_width() == u8::BITS => value,
        IntegerOp::SwapBytes => call(cx, "llvm.bswap", value, &[])?,
        IntegerOp::RotateLeft => rotated(cx, "llvm.fshl", value, rest)?,
        IntegerOp::RotateRight => rotated(cx, "llvm.fshr", value, rest)?,
    };
    if op.counts() {
        let count = cx.builder.build_int_cast_sign_flag(found, cx.context.i32_type(), false, "")?;
        return Ok(count.into());
    }
    Ok(found.into())
}

/// An intrinsic that is overloaded on the type of `value`.
fn call<'c>(
    cx: &Cx<'c, '_>,
    name: &str,
    value: IntValue<'c>,
    rest: &[IntValue<'c>],
) -> Lower<IntValue<'c>> {
    let overload: [BasicTypeEnum<'c>; 1] = [value.get_type().into()];
    let args = [value].into_iter().chain(rest.iter().copied());
    let args: Vec<BasicMetadataValueEnum<'c>> = args.map(Into::into).collect();
    cx.intrinsic_value(name, &overload, &args).and_then(int)
}

/// How many zeros are at an end: of 0, which the last operand says is no poison, as many as there
/// are bits.
fn zeros<'c>(cx: &Cx<'c, '_>, name: &str, value: IntValue<'c>) -> Lower<IntValue<'c>> {
    call(cx, name, value, &[cx.context.bool_type().const_zero()])
}

/// `value` beside itself, shifted by an amount that LLVM takes modulo the width, as Rust does.
fn rotated<'c>(
    cx: &Cx<'c, '_>,
    name: &str,
    value: IntValue<'c>,
    amount: &[BasicValueEnum<'c>],
) -> Lower<IntValue<'c>> {
    let [amount] = amount else {
        return Err(BackendError::Unchecked("a rotation by nothing".to_owned()));
    };
    // Widths are powers of two: what is cut off an amount is a multiple of the width.
    let amount = cx.builder.build_int_cast_sign_flag(int(*amount)?, value.get_type(), false, "")?;
    call(cx, name, value, &[value, amount])
}
