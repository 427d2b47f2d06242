//! Floating-point arithmetic on register bits.
//!
//! Singles and doubles rounded to nearest use the host's arithmetic. Every other format and
//! rounding mode is computed exactly and rounded once. An operation that results in a NaN returns
//! [`Format::nan`]; only doubles keep the NaNs of their operands.

pub(crate) mod compare;
mod soft;
mod special;
#[cfg(test)]
mod tests;

use crate::isa::float::format::{F32, F64, Format, Round, Value};
use crate::isa::float::{Exact, FloatOp, FloatType, Mode, Test};

/// Applies `op`. The operands hold the bits of the format, with zeros above them.
#[inline]
pub(crate) fn apply(op: FloatOp, ty: FloatType, mode: Mode, operands: [u64; 3]) -> u64 {
    if let FloatOp::Exact(op) = op
        && mode == Mode::default()
    {
        match ty {
            FloatType::F32 => return single(op, operands),
            FloatType::F64 => return double(op, operands),
            FloatType::F16 | FloatType::Bf16 => {}
        }
    }
    general(op, ty, mode, operands)
}

/// Applies `op` to two halves in one register.
pub(crate) fn apply_packed(op: FloatOp, ty: FloatType, mode: Mode, operands: [u64; 3]) -> u64 {
    let low = apply(op, ty, mode, operands.map(|operand| operand & 0xffff));
    let high = apply(op, ty, mode, operands.map(|operand| operand >> 16 & 0xffff));
    high << 16 | low
}

fn single(op: Exact, operands: [u64; 3]) -> u64 {
    let [a, b, c] = operands.map(|bits| f32::from_bits(bits as u32));
    let result = match op {
        Exact::Add => a + b,
        Exact::Sub => a - b,
        Exact::Mul => a * b,
        // Computing through doubles would round the sum twice, although the product of two singles
        // is exact there.
        Exact::Fma => a.mul_add(b, c),
        Exact::Div => a / b,
        Exact::Sqrt => a.sqrt(),
        Exact::Rcp => 1.0 / a,
    };
    if result.is_nan() { F32.nan } else { u64::from(result.to_bits()) }
}

fn double(op: Exact, operands: [u64; 3]) -> u64 {
    let [a, b, c] = operands.map(f64::from_bits);
    let result = match op {
        Exact::Add => a + b,
        Exact::Sub => a - b,
        Exact::Mul => a * b,
        Exact::Fma => a.mul_add(b, c),
        Exact::Div => a / b,
        Exact::Sqrt => a.sqrt(),
        Exact::Rcp => 1.0 / a,
    };
    // Hosts do not agree on the resulting NaN.
    if result.is_nan() { nan_of(F64, nan_order(op, operands)) } else { result.to_bits() }
}

fn general(op: FloatOp, ty: FloatType, mode: Mode, operands: [u64; 3]) -> u64 {
    let format = ty.format();
    let [a, b, _] = operands;
    let bits = match op {
        FloatOp::Exact(op) => match exact(op, format, mode, operands) {
            Value::Nan => nan_of(format, nan_order(op, operands)),
            value @ (Value::Infinite { .. } | Value::Finite(_)) => format.pack(value, mode.round, mode.flush),
        },
        // "NaN inputs yield an unspecified NaN": PTX ISA, "abs" and "neg".
        FloatOp::Abs | FloatOp::Neg if is_nan(format, a) => nan_of(format, [a; 3]),
        FloatOp::Abs => flushed(format, mode, a) & !format.sign_bit(),
        FloatOp::Neg => flushed(format, mode, a) ^ format.sign_bit(),
        // "copysign.f32 d, a, b": the sign of a, the magnitude of b.
        FloatOp::CopySign => b & !format.sign_bit() | a & format.sign_bit(),
        FloatOp::Min => least_or_greatest(false, format, mode, operands),
        FloatOp::Max => least_or_greatest(true, format, mode, operands),
        FloatOp::Test(test) => u64::from(has_property(test, format, a)),
        FloatOp::HighHalf(op) => special::high_half(op, a),
        FloatOp::Approximate(op) => special::approximate(op, format, mode, a, b),
    };
    finish(format, mode, bits)
}

fn exact(op: Exact, format: Format, mode: Mode, operands: [u64; 3]) -> Value {
    let [a, b, c] = operands.map(|bits| format.unpack(bits, mode.flush));
    let down = mode.round == Round::Down;
    match op {
        Exact::Add => soft::add(a, b, down),
        Exact::Sub => soft::add(a, soft::negate(b), down),
        Exact::Mul => soft::multiply(a, b),
        Exact::Fma => soft::add(soft::multiply(a, b), c, down),
        Exact::Div => soft::divide(a, b),
        Exact::Rcp => soft::divide(format.unpack(one(format), false), a),
        Exact::Sqrt => soft::square_root(a),
    }
}

/// Returns the bits of 1.
fn one(format: Format) -> u64 {
    let bias = (1_u64 << (format.exponent - 1)) - 1;
    bias << format.fraction << format.below
}

/// Applies `.sat` and `.relu`.
pub(crate) fn finish(format: Format, mode: Mode, bits: u64) -> u64 {
    if !mode.saturate && !mode.relu {
        return bits;
    }
    let value = format.unpack(bits, false);
    let negative = bits & format.sign_bit() != 0;
    match value {
        Value::Nan if mode.saturate => 0,
        Value::Nan => format.nan,
        Value::Infinite { .. } | Value::Finite(_) if negative => 0,
        Value::Infinite { .. } | Value::Finite(_) if mode.saturate => bits.min(one(format)),
        Value::Infinite { .. } | Value::Finite(_) => bits,
    }
}

fn is_nan(format: Format, bits: u64) -> bool {
    format.unpack(bits, false) == Value::Nan
}

/// Returns the NaN that results from these operands: the first operand NaN that is kept. Which of
/// several NaNs doubles keep is not documented. On an H200 with driver 580 the order is this one,
/// and a kept NaN only becomes quiet.
fn nan_of(format: Format, operands: [u64; 3]) -> u64 {
    let kept = operands.into_iter().find(|bits| format == F64 && is_nan(format, *bits));
    kept.map_or(format.nan, |bits| bits | 1 << (F64.fraction - 1))
}

/// Returns the operands in the order of precedence of their NaNs.
fn nan_order(op: Exact, operands: [u64; 3]) -> [u64; 3] {
    let [a, b, c] = operands;
    match op {
        Exact::Fma => [b, c, a],
        Exact::Add | Exact::Sub | Exact::Mul => [b, a, a],
        Exact::Div => [a, b, b],
        Exact::Sqrt | Exact::Rcp => [a; 3],
    }
}

fn flushed(format: Format, mode: Mode, bits: u64) -> u64 {
    let subnormal = bits & !format.sign_bit() < 1 << format.fraction;
    if mode.flush && subnormal { bits & format.sign_bit() } else { bits }
}

fn least_or_greatest(greatest: bool, format: Format, mode: Mode, operands: [u64; 3]) -> u64 {
    let [a, b, _] = operands.map(|bits| flushed(format, mode, bits));
    let sign = (a ^ b) & format.sign_bit();
    let (a, b) = if mode.xor_sign { (a & !format.sign_bit(), b & !format.sign_bit()) } else { (a, b) };
    let chosen = match (is_nan(format, a), is_nan(format, b)) {
        (true, true) => return nan_of(format, [operands[1], operands[0], operands[0]]),
        (true, false) | (false, true) if mode.nan => return format.nan,
        (true, false) => b,
        (false, true) => a,
        // The order of two's complement, in which -0 is below +0.
        (false, false) => {
            let a_first = rank(format, a) < rank(format, b);
            if a_first != greatest { a } else { b }
        }
    };
    if mode.xor_sign { chosen | sign } else { chosen }
}

/// Returns an integer that orders the numbers of a format.
fn rank(format: Format, bits: u64) -> i64 {
    let magnitude = (bits & !format.sign_bit()) as i64;
    if bits & format.sign_bit() == 0 { magnitude } else { -magnitude - 1 }
}

fn has_property(test: Test, format: Format, bits: u64) -> bool {
    let subnormal = bits & !format.sign_bit() < 1 << format.fraction;
    match format.unpack(bits, false) {
        Value::Nan => test == Test::NotANumber,
        Value::Infinite { .. } => matches!(test, Test::Infinite | Test::Number),
        Value::Finite(finite) => match test {
            Test::Finite | Test::Number => true,
            Test::Infinite | Test::NotANumber => false,
            // "As a special case, positive and negative zero are considered normal numbers."
            Test::Normal => !subnormal || finite.mantissa == 0,
            Test::Subnormal => subnormal && finite.mantissa != 0,
        },
    }
}
