//! Functions on the bits of an integer: LLVM intrinsics, except those that LLVM lowers to branches.

use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicMetadataValueEnum, BasicValueEnum, IntValue};
use tma_front::ir::{Expr, IntegerOp};

use crate::backend::BackendError;
use crate::lower::types::int;
use crate::lower::{Cx, Lower, expr, nvvm};

/// Emits `op` on an integer and its further operands.
pub(in crate::lower) fn apply<'c>(
    cx: &mut Cx<'c, '_>,
    op: IntegerOp,
    operands: &[Expr],
) -> Lower<BasicValueEnum<'c>> {
    let values = expr::values(cx, operands)?;
    let [value, rest @ ..] = &values[..] else {
        return Err(BackendError::Unchecked(format!("`{}` of nothing", op.name())));
    };
    let value = int(*value)?;
    let not = cx.builder.build_not(value, "")?;
    let found = match op {
        IntegerOp::CountOnes => call(cx, "llvm.ctpop", value, &[])?,
        IntegerOp::CountZeros => call(cx, "llvm.ctpop", not, &[])?,
        IntegerOp::LeadingZeros => leading_zeros(cx, value)?,
        IntegerOp::LeadingOnes => leading_zeros(cx, not)?,
        IntegerOp::TrailingZeros => trailing_zeros(cx, value)?,
        IntegerOp::TrailingOnes => trailing_zeros(cx, not)?,
        IntegerOp::ReverseBits => reversed(cx, value)?,
        // The only byte stays in its position.
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

/// Calls an intrinsic that is overloaded on the type of `value`.
fn call<'c>(cx: &Cx<'c, '_>, name: &str, value: IntValue<'c>, rest: &[IntValue<'c>]) -> Lower<IntValue<'c>> {
    let overload: [BasicTypeEnum<'c>; 1] = [value.get_type().into()];
    let args = [value].into_iter().chain(rest.iter().copied());
    let args: Vec<BasicMetadataValueEnum<'c>> = args.map(Into::into).collect();
    cx.intrinsic_value(name, &overload, &args).and_then(int)
}

/// Emits the number of leading zeros. The last operand of the intrinsic defines the result for 0 as
/// the width, instead of poison.
fn leading_zeros<'c>(cx: &Cx<'c, '_>, value: IntValue<'c>) -> Lower<IntValue<'c>> {
    call(cx, "llvm.ctlz", value, &[cx.context.bool_type().const_zero()])
}

/// Emits the number of trailing zeros, as the leading zeros of the reversed bits. For a narrow
/// integer, a bit above its highest one ends the count.
fn trailing_zeros<'c>(cx: &mut Cx<'c, '_>, value: IntValue<'c>) -> Lower<IntValue<'c>> {
    let (width, word) = (value.get_type().get_bit_width(), cx.context.i32_type());
    let (value, reverse) = match width {
        u64::BITS => (value, &nvvm::REVERSE_64),
        u32::BITS => (value, &nvvm::REVERSE_32),
        _ => {
            let wide = cx.builder.build_int_z_extend(value, word, "")?;
            let end = word.const_int(1 << width, false);
            (cx.builder.build_or(wide, end, "")?, &nvvm::REVERSE_32)
        }
    };
    let reversed = nvvm::emit_value(cx, reverse, &[value.into()]).and_then(int)?;
    leading_zeros(cx, reversed)
}

/// Emits the bits in reverse order. For a narrow integer, these are the upper bits of the reversed
/// word.
fn reversed<'c>(cx: &Cx<'c, '_>, value: IntValue<'c>) -> Lower<IntValue<'c>> {
    let (ty, word) = (value.get_type(), cx.context.i32_type());
    let Some(unused @ 1..) = u32::BITS.checked_sub(ty.get_bit_width()) else {
        return call(cx, "llvm.bitreverse", value, &[]);
    };
    let wide = cx.builder.build_int_z_extend(value, word, "")?;
    let reversed = call(cx, "llvm.bitreverse", wide, &[])?;
    let low = cx.builder.build_right_shift(reversed, word.const_int(unused.into(), false), false, "")?;
    Ok(cx.builder.build_int_truncate(low, ty, "")?)
}

/// Emits a rotation, as a funnel shift of `value` with itself. LLVM takes the amount modulo the
/// width, as Rust does.
fn rotated<'c>(
    cx: &Cx<'c, '_>,
    name: &str,
    value: IntValue<'c>,
    amount: &[BasicValueEnum<'c>],
) -> Lower<IntValue<'c>> {
    let [amount] = amount else {
        return Err(BackendError::Unchecked("a rotation by nothing".to_owned()));
    };
    // Widths are powers of two: the truncated part of the amount is a multiple of the width.
    let amount = cx.builder.build_int_cast_sign_flag(int(*amount)?, value.get_type(), false, "")?;
    call(cx, name, value, &[value, amount])
}
