//! Conversions between scalars by value.

use inkwell::values::{BasicValueEnum, FloatValue, IntValue};
use inkwell::{FloatPredicate, IntPredicate};
use tma_front::ir::Scalar;

use crate::lower::nvvm::{self, Instruction};
use crate::lower::types::{Class, class, float, float_type, int, int_const};
use crate::lower::{Cx, Lower};

/// Converts `value` to the scalar `to`. Integers are truncated, or extended by the signedness of
/// `from`. Floats are rounded to nearest, ties to even. A conversion from float to integer
/// saturates, and takes NaN to 0. A conversion to an 8-bit float saturates at its greatest number.
pub(in crate::lower) fn cast<'c>(
    cx: &mut Cx<'c, '_>,
    value: BasicValueEnum<'c>,
    from: Scalar,
    to: Scalar,
) -> Lower<BasicValueEnum<'c>> {
    if from == to {
        return Ok(value);
    }
    let ty = cx.scalar_type(to);
    match (class(from), class(to)) {
        // A tf32 is an f32, and is made by rounding one.
        (Class::Tf32, _) => {
            let wide = cx.builder.build_bit_cast(value, cx.context.f32_type(), "")?;
            cast(cx, wide, Scalar::F32, to)
        }
        (_, Class::Tf32) => {
            let wide = to_single(cx, value, from)?;
            to_tf32(cx, float(wide)?).map(Into::into)
        }
        // 8-bit floats are converted from f32, and to f16, which represents them exactly.
        (Class::Float8, _) => {
            let wide = from_float8(cx, value, from)?;
            cast(cx, wide, Scalar::F16, to)
        }
        (_, Class::Float8) => {
            let wide = to_single(cx, value, from)?;
            to_float8(cx, wide, to)
        }
        (Class::Bool | Class::Int { .. }, Class::Bool) => {
            let value = int(value)?;
            let zero = value.get_type().const_zero();
            Ok(cx.builder.build_int_compare(IntPredicate::NE, value, zero, "")?.into())
        }
        (Class::Bool | Class::Int { .. }, Class::Int { .. }) => {
            let ty = cx.bits_type(to);
            Ok(cx.builder.build_int_cast_sign_flag(int(value)?, ty, from.is_signed(), "")?.into())
        }
        (Class::Bool | Class::Int { .. }, Class::Float) => {
            let (value, ty) = (int(value)?, float_type(ty)?);
            Ok(if from.is_signed() {
                cx.builder.build_signed_int_to_float(value, ty, "")?.into()
            } else {
                cx.builder.build_unsigned_int_to_float(value, ty, "")?.into()
            })
        }
        (Class::Float, Class::Bool) => {
            let value = float(value)?;
            let zero = value.get_type().const_zero();
            Ok(cx.builder.build_float_compare(FloatPredicate::UNE, value, zero, "")?.into())
        }
        (Class::Float, Class::Int { signed }) => {
            to_integer(cx, float(value)?, from, to, signed).map(Into::into)
        }
        (Class::Float, Class::Float) => between_floats(cx, float(value)?, from, to).map(Into::into),
    }
}

/// Converts a float to an integer, with the hardware's own saturation. Source: PTX ISA, "cvt": out
/// of range is clamped, and NaN is 0 unless one side has 64 bits. LLVM's `fptosi.sat` would emit
/// comparisons for what the instruction already does.
fn to_integer<'c>(
    cx: &mut Cx<'c, '_>,
    value: FloatValue<'c>,
    from: Scalar,
    to: Scalar,
    signed: bool,
) -> Lower<IntValue<'c>> {
    let double = from == Scalar::F64;
    let value = if double { value } else { between_floats(cx, value, from, Scalar::F32)? };
    let wide = to.bytes() == 8;
    let name = match (double, wide, signed) {
        (false, false, true) => "llvm.nvvm.f2i.rz",
        (false, false, false) => "llvm.nvvm.f2ui.rz",
        (false, true, true) => "llvm.nvvm.f2ll.rz",
        (false, true, false) => "llvm.nvvm.f2ull.rz",
        (true, false, true) => "llvm.nvvm.d2i.rz",
        (true, false, false) => "llvm.nvvm.d2ui.rz",
        (true, true, true) => "llvm.nvvm.d2ll.rz",
        (true, true, false) => "llvm.nvvm.d2ull.rz",
    };
    let mut integer = int(cx.intrinsic_value(name, &[], &[value.into()])?)?;
    if double || wide {
        let nan = cx.builder.build_float_compare(FloatPredicate::UNO, value, value, "")?;
        let zero = integer.get_type().const_zero();
        integer = int(cx.builder.build_select(nan, zero, integer, "")?)?;
    }
    if to.bytes() >= 4 {
        return Ok(integer);
    }
    clamped(cx, integer, to, signed)
}

/// Converts a 32-bit integer to a narrower one with saturation.
fn clamped<'c>(cx: &Cx<'c, '_>, integer: IntValue<'c>, to: Scalar, signed: bool) -> Lower<IntValue<'c>> {
    let ty = integer.get_type();
    let (least, most) = to.integer_range().unwrap_or_default();
    let (max, min) = if signed { ("llvm.smax", "llvm.smin") } else { ("llvm.umax", "llvm.umin") };
    let above = cx.intrinsic_value(max, &[ty.into()], &[integer.into(), int_const(ty, least).into()])?;
    let within = cx.intrinsic_value(min, &[ty.into()], &[above.into(), int_const(ty, most).into()])?;
    Ok(cx.builder.build_int_truncate(int(within)?, cx.bits_type(to), "")?)
}

fn between_floats<'c>(
    cx: &mut Cx<'c, '_>,
    value: FloatValue<'c>,
    from: Scalar,
    to: Scalar,
) -> Lower<FloatValue<'c>> {
    let ty = float_type(cx.scalar_type(to))?;
    if from == to {
        return Ok(value);
    }
    // f16 and bf16 have the same size but different values. f32 represents both.
    let (value, from) = match (from, to) {
        (Scalar::Bf16, _) => (single_of_bf16(cx, value)?, Scalar::F32),
        (Scalar::F16, Scalar::Bf16) => {
            (cx.builder.build_float_ext(value, cx.context.f32_type(), "")?, Scalar::F32)
        }
        _ => (value, from),
    };
    if from == to {
        Ok(value)
    } else if from.bytes() < to.bytes() {
        Ok(cx.builder.build_float_ext(value, ty, "")?)
    } else {
        Ok(cx.builder.build_float_trunc(value, ty, "")?)
    }
}

/// Converts a bf16 to f32, of which it is the upper half. LLVM's `fpext` is not used: if the result
/// of an operation on such values is rounded to f16, and the fractions of the operands fit in f16,
/// LLVM 22 performs the whole operation in f16, ignoring that a bf16 has exponents that f16 lacks
/// (`visitFPTrunc` of InstCombine).
fn single_of_bf16<'c>(cx: &Cx<'c, '_>, value: FloatValue<'c>) -> Lower<FloatValue<'c>> {
    let (i16_type, i32_type) = (cx.context.i16_type(), cx.context.i32_type());
    let bits = int(cx.builder.build_bit_cast(value, i16_type, "")?)?;
    let wide = cx.builder.build_int_z_extend(bits, i32_type, "")?;
    let upper = cx.builder.build_left_shift(wide, i32_type.const_int(16, false), "")?;
    float(cx.builder.build_bit_cast(upper, cx.context.f32_type(), "")?)
}

/// Converts to an f32 from which a narrower float of at most 22 bits is made, with the same result
/// as rounding `value` directly. If the f32 is not exact, it is *rounded to odd*: truncated, with
/// its last bit set to record that bits were lost. Source: S. Boldo and G. Melquiond, "When double
/// rounding is odd", 2005.
fn to_single<'c>(cx: &mut Cx<'c, '_>, value: BasicValueEnum<'c>, from: Scalar) -> Lower<BasicValueEnum<'c>> {
    match from {
        Scalar::F64 => {
            let value = float(value)?;
            let cut = float(cx.intrinsic_value("llvm.nvvm.d2f.rz", &[], &[value.into()])?)?;
            let back = cx.builder.build_float_ext(cut, cx.context.f64_type(), "")?;
            let inexact = cx.builder.build_float_compare(FloatPredicate::ONE, back, value, "")?;
            odd_if(cx, cut, inexact)
        }
        Scalar::I32 | Scalar::U32 | Scalar::I64 | Scalar::U64 | Scalar::Usize => {
            let value = int(value)?;
            let (ty, signed) = (value.get_type(), from.is_signed());
            let name = match (from.bytes() == 8, signed) {
                (false, true) => "llvm.nvvm.i2f.rz",
                (false, false) => "llvm.nvvm.ui2f.rz",
                (true, true) => "llvm.nvvm.ll2f.rz",
                (true, false) => "llvm.nvvm.ull2f.rz",
            };
            let cut = float(cx.intrinsic_value(name, &[], &[value.into()])?)?;
            // A value truncated towards zero is within the range of the type.
            let back = if signed {
                cx.builder.build_float_to_signed_int(cut, ty, "")?
            } else {
                cx.builder.build_float_to_unsigned_int(cut, ty, "")?
            };
            let inexact = cx.builder.build_int_compare(IntPredicate::NE, back, value, "")?;
            odd_if(cx, cut, inexact)
        }
        Scalar::Bool
        | Scalar::I8
        | Scalar::U8
        | Scalar::I16
        | Scalar::U16
        | Scalar::F16
        | Scalar::Bf16
        | Scalar::F32
        | Scalar::Tf32
        | Scalar::E4m3
        | Scalar::E5m2 => cast(cx, value, from, Scalar::F32),
    }
}

/// Emits `cut` with its last bit set if it is `inexact`.
fn odd_if<'c>(cx: &Cx<'c, '_>, cut: FloatValue<'c>, inexact: IntValue<'c>) -> Lower<BasicValueEnum<'c>> {
    let i32_type = cx.context.i32_type();
    let sticky = cx.builder.build_int_z_extend(inexact, i32_type, "")?;
    let bits = int(cx.builder.build_bit_cast(cut, i32_type, "")?)?;
    let odd = cx.builder.build_or(bits, sticky, "")?;
    Ok(cx.builder.build_bit_cast(odd, cx.context.f32_type(), "")?)
}

/// Converts an f32 to tf32.
fn to_tf32<'c>(cx: &mut Cx<'c, '_>, value: FloatValue<'c>) -> Lower<IntValue<'c>> {
    let rounded = int(nvvm::emit_value(cx, &nvvm::F32_TO_TF32, &[value.into()])?)?;
    // The unused bits are not documented.
    let kept = cx.builder.build_and(rounded, cx.u32_const(!0x1fff), "")?;
    // An H200 keeps the payload of a NaN. If all of it is in the unused bits, masking without
    // setting the quiet bit would leave infinity.
    let nan = cx.builder.build_float_compare(FloatPredicate::UNO, value, value, "")?;
    let quiet = cx.builder.build_or(kept, cx.u32_const(1 << 22), "")?;
    int(cx.builder.build_select(nan, quiet, kept, "")?)
}

/// Converts an 8-bit float to f16.
fn from_float8<'c>(
    cx: &mut Cx<'c, '_>,
    value: BasicValueEnum<'c>,
    from: Scalar,
) -> Lower<BasicValueEnum<'c>> {
    let instruction: &Instruction =
        if from == Scalar::E4m3 { &nvvm::E4M3_TO_F16X2 } else { &nvvm::E5M2_TO_F16X2 };
    let pair = cx.builder.build_int_z_extend(int(value)?, cx.context.i16_type(), "")?;
    let halves = int(nvvm::emit_value(cx, instruction, &[pair.into()])?)?;
    let lower = cx.builder.build_int_truncate(halves, cx.context.i16_type(), "")?;
    Ok(cx.builder.build_bit_cast(lower, cx.context.f16_type(), "")?)
}

/// Converts an f32 to an 8-bit float.
fn to_float8<'c>(cx: &mut Cx<'c, '_>, value: BasicValueEnum<'c>, to: Scalar) -> Lower<BasicValueEnum<'c>> {
    let instruction: &Instruction = if to == Scalar::E4m3 { &nvvm::F32_TO_E4M3 } else { &nvvm::F32_TO_E5M2 };
    let pair = int(nvvm::emit_value(cx, instruction, &[value])?)?;
    Ok(cx.builder.build_int_truncate(pair, cx.context.i8_type(), "")?.into())
}
