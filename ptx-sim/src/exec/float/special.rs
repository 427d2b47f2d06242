//! Approximate functions. The tables of the hardware are not public. Each function is computed in
//! double precision and rounded once, which is within the error bounds that the PTX ISA states for
//! it ("Floating-Point Instructions", "Half Precision Floating-Point Instructions", the notes of
//! each).

use crate::isa::float::format::{F64, Format, Round};
use crate::isa::float::{Approximate, HighHalf, Mode};

/// Returns `op` of `a` (and, for a quotient, `b`) in `format`.
pub(super) fn approximate(op: Approximate, format: Format, mode: Mode, a: u64, b: u64) -> u64 {
    let wide = |bits| f64::from_bits(F64.pack(format.unpack(bits, mode.flush), Round::Nearest, false));
    let (x, y) = (wide(a), wide(b));
    let result = match op {
        Approximate::Rsqrt => 1.0 / x.sqrt(),
        Approximate::Ex2 => x.exp2(),
        Approximate::Lg2 => x.log2(),
        Approximate::Sin => x.sin(),
        Approximate::Cos => x.cos(),
        Approximate::Tanh => x.tanh(),
        // PTX ISA, "div": for a divisor between 2^126 and 2^128, `div.approx` returns a NaN if the
        // dividend is infinite, and otherwise a zero with the sign of the quotient.
        Approximate::Div if y.abs() > 2_f64.powi(126) && y.is_finite() => x * 0.0 * y.signum(),
        Approximate::Div => x / y,
    };
    format.pack(F64.unpack(result.to_bits(), false), Round::Nearest, mode.flush)
}

/// The double forms of `rcp.approx` and `rsqrt.approx`. The low half of the operand is ignored, the
/// low half of the result is zero, and subnormals are zero.
pub(super) fn high_half(op: HighHalf, bits: u64) -> u64 {
    let high = bits >> 32 << 32;
    let subnormal = high & !F64.sign_bit() < 1 << F64.fraction;
    let x = f64::from_bits(if subnormal { high & F64.sign_bit() } else { high });
    let result = match op {
        HighHalf::Rcp => 1.0 / x,
        HighHalf::Rsqrt => 1.0 / x.sqrt(),
    };
    if result.is_nan() { 0x7fff_ffff_0000_0000 } else { result.to_bits() >> 32 << 32 }
}
