//! Functions of integers: LLVM intrinsics, except those that LLVM lowers to branches or calls.

use inkwell::IntPredicate;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicMetadataValueEnum, BasicValueEnum, IntValue};
use tma_front::ir::{Expr, IntegerOp};

use crate::backend::BackendError;
use crate::lower::types::{int, scalar_of};
use crate::lower::{Cx, Lower, bounds, expr, nvvm};

/// Emits `op` on an integer and its further operands.
pub(in crate::lower) fn apply<'c>(
    cx: &mut Cx<'c, '_>,
    op: IntegerOp,
    operands: &[Expr],
) -> Lower<BasicValueEnum<'c>> {
    let values = expr::values(cx, operands)?;
    let ([value, rest @ ..], [first, ..]) = (&values[..], operands) else {
        return Err(BackendError::Unchecked(format!("`{}` of nothing", op.name())));
    };
    let signed = scalar_of(&first.ty)?.is_signed();
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
        IntegerOp::SaturatingAdd => {
            call(cx, if signed { "llvm.sadd.sat" } else { "llvm.uadd.sat" }, value, &[second(rest)?])?
        }
        IntegerOp::SaturatingSub => {
            call(cx, if signed { "llvm.ssub.sat" } else { "llvm.usub.sat" }, value, &[second(rest)?])?
        }
        IntegerOp::SaturatingMul => saturated_product(cx, signed, value, second(rest)?)?,
        IntegerOp::MulHi => halves_of_product(cx, signed, value, second(rest)?)?.high,
        // The distance from 0, for which there is an instruction.
        IntegerOp::AbsDiff if signed && second(rest)?.get_sign_extended_constant() == Some(0) => {
            call(cx, "llvm.abs", value, &[cx.context.bool_type().const_zero()])?
        }
        IntegerOp::AbsDiff => {
            let (min, max) = if signed { ("llvm.smin", "llvm.smax") } else { ("llvm.umin", "llvm.umax") };
            let (other, less) = (second(rest)?, call(cx, min, value, &[second(rest)?])?);
            let greater = call(cx, max, value, &[other])?;
            cx.builder.build_int_sub(greater, less, "")?
        }
        IntegerOp::Ilog2 => {
            bounds::positive(cx, signed, value, first.span)?;
            let last = value.get_type().const_int(u64::from(value.get_type().get_bit_width() - 1), false);
            cx.builder.build_int_sub(last, leading_zeros(cx, value)?, "")?
        }
    };
    if op.counts() {
        let count = cx.builder.build_int_cast_sign_flag(found, cx.context.i32_type(), false, "")?;
        return Ok(count.into());
    }
    Ok(found.into())
}

fn second<'c>(rest: &[BasicValueEnum<'c>]) -> Lower<IntValue<'c>> {
    match rest {
        [second] => int(*second),
        _ => Err(BackendError::Unchecked("a function of two integers with other operands".to_owned())),
    }
}

/// The two halves of a product.
struct Product<'c> {
    low: IntValue<'c>,
    high: IntValue<'c>,
}

/// Emits a product of twice the width. Of 32 and 64 bits, LLVM makes `mul.hi` of it.
fn halves_of_product<'c>(
    cx: &Cx<'c, '_>,
    signed: bool,
    a: IntValue<'c>,
    b: IntValue<'c>,
) -> Lower<Product<'c>> {
    let (ty, width) = (a.get_type(), a.get_type().get_bit_width());
    let wide = match width {
        u8::BITS => cx.context.i16_type(),
        u16::BITS => cx.context.i32_type(),
        u32::BITS => cx.context.i64_type(),
        _ => cx.context.i128_type(),
    };
    let a = cx.builder.build_int_cast_sign_flag(a, wide, signed, "")?;
    let b = cx.builder.build_int_cast_sign_flag(b, wide, signed, "")?;
    let product = cx.builder.build_int_mul(a, b, "")?;
    let high = cx.builder.build_right_shift(product, wide.const_int(width.into(), false), false, "")?;
    let [low, high] = [product, high].map(|half| cx.builder.build_int_truncate(half, ty, ""));
    Ok(Product { low: low?, high: high? })
}

/// Emits a product, or the nearest number of its type. The product fits if all bits above it are
/// zero, or copies of its sign.
fn saturated_product<'c>(
    cx: &Cx<'c, '_>,
    signed: bool,
    a: IntValue<'c>,
    b: IntValue<'c>,
) -> Lower<IntValue<'c>> {
    let ty = a.get_type();
    let Product { low, high } = halves_of_product(cx, signed, a, b)?;
    let sign = ty.const_int(u64::from(ty.get_bit_width() - 1), false);
    let (above, nearest) = if signed {
        let above = cx.builder.build_right_shift(low, sign, true, "")?;
        // All bits of the sign of the exact product, of which the highest is inverted.
        let negative = cx.builder.build_right_shift(high, sign, true, "")?;
        let greatest = ty.const_int((1 << (ty.get_bit_width() - 1)) - 1, false);
        (above, cx.builder.build_xor(negative, greatest, "")?)
    } else {
        (ty.const_zero(), ty.const_all_ones())
    };
    let fits = cx.builder.build_int_compare(IntPredicate::EQ, high, above, "")?;
    int(cx.builder.build_select(fits, low, nearest, "")?)
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
