//! The approximate functions. The hardware's tables are not public: each function here is computed in double
//! precision and rounded once, which is within the error bounds that the PTX ISA gives for it ("Floating-Point Instructions", "Half
//! Precision Floating-Point Instructions", the notes of each).

use crate::isa::float::format::{F64, Format, Round};
use crate::isa::float::{FloatOp, Mode};

/// `op` of `a` (and, for a quotient, `b`) in `format`.
pub(super) fn approximate(op: FloatOp, format: Format, mode: Mode, a: u64, b: u64) -> u64 {
    let wide = |bits| f64::from_bits(F64.pack(format.unpack(bits, mode.flush), Round::Nearest, false));
    let (x, y) = (wide(a), wide(b));
    let result = match op {
        FloatOp::Rsqrt => 1.0 / x.sqrt(),
        FloatOp::Ex2 => x.exp2(),
        FloatOp::Lg2 => x.log2(),
        FloatOp::Sin => x.sin(),
        FloatOp::Cos => x.cos(),
        FloatOp::Tanh => x.tanh(),
        // PTX ISA, "div": above 2^126 and below 2^128, `div.approx` of an infinity is NaN, of all else a zero of the quotient's sign.
        _ if y.abs() > 2_f64.powi(126) && y.is_finite() => x * 0.0 * y.signum(),
        _ => x / y,
    };
    format.pack(F64.unpack(result.to_bits(), false), Round::Nearest, mode.flush)
}

/// The double forms of `rcp.approx` and `rsqrt.approx`: the low half of the operand is not looked at, that of the result
/// is zero, subnormals are zero.
pub(super) fn high_half(op: FloatOp, bits: u64) -> u64 {
    let high = bits >> 32 << 32;
    let subnormal = high & !F64.sign_bit() < 1 << F64.fraction;
    let x = f64::from_bits(if subnormal { high & F64.sign_bit() } else { high });
    let result = if op == FloatOp::RcpHigh { 1.0 / x } else { 1.0 / x.sqrt() };
    if result.is_nan() { 0x7fff_ffff_0000_0000 } else { result.to_bits() >> 32 << 32 }
}
