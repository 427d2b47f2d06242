//! `cvt` between floating-point formats, and between them and integers.

use super::super::Integer;
use super::format::{F32, F64, Finite, Format, Round, TF32, Value, round_to_unit};

/// Converts from one format to another.
pub(crate) fn between(bits: u64, from: Format, to: Format, round: Round, flush: bool) -> u64 {
    // This conversion is the most frequent. The host's keeps the payload of a NaN, as the GPU does.
    if !flush && from == F32 && to == F64 {
        return f64::from(f32::from_bits(bits as u32)).to_bits();
    }
    match from.unpack(bits, flush && from == F32) {
        Value::Nan if from == F64 && to == F32 => single_nan(bits),
        Value::Nan if to == TF32 && round == Round::NearestAway => bits >> TF32.below << TF32.below,
        value @ (Value::Nan | Value::Infinite { .. } | Value::Finite(_)) => {
            to.pack(value, round, flush && to == F32)
        }
    }
}

/// Returns the NaN of a single that keeps as much as possible of a double's payload. This, like the
/// truncation of NaNs by `cvt.rna.tf32`, is documented nowhere; both were observed on an H200 with
/// driver 580.
fn single_nan(double: u64) -> u64 {
    let (sign, fraction) = (double >> 63, double & ((1 << F64.fraction) - 1));
    sign << 31 | 0x7fc0_0000 | fraction >> (F64.fraction - F32.fraction)
}

/// Converts like [`between`], with `.satfinite`.
pub(crate) fn between_finite(bits: u64, from: Format, to: Format, round: Round) -> u64 {
    to.pack_finite_only(from.unpack(bits, false), round, false)
}

/// Rounds to an integral number in the same format or another (`.rni`, `.rzi`, `.rmi`, `.rpi`).
pub(crate) fn to_integral(bits: u64, from: Format, to: Format, round: Round, flush: bool) -> u64 {
    let value = match from.unpack(bits, flush) {
        Value::Finite(finite) if finite.exponent < 0 => Value::Finite(Finite {
            negative: finite.negative,
            mantissa: u128::from(round_to_unit(finite.mantissa, finite.exponent, 0, finite.negative, round)),
            exponent: 0,
        }),
        other @ (Value::Nan | Value::Infinite { .. } | Value::Finite(_)) => other,
    };
    to.pack(value, Round::Nearest, flush)
}

/// Converts an integer to a floating-point format.
pub(crate) fn from_integer(value: i128, to: Format, round: Round) -> u64 {
    let finite = Finite { negative: value < 0, mantissa: value.unsigned_abs(), exponent: 0 };
    to.pack(Value::Finite(finite), round, false)
}

/// Converts a floating-point number to an integer. A value out of range becomes the nearest that is
/// in range, and a NaN what the PTX ISA's section on `cvt` says.
pub(crate) fn to_integer(bits: u64, from: Format, to: Integer, round: Round, flush: bool) -> u64 {
    let value = match from.unpack(bits, flush) {
        Value::Nan if from == F64 || to.bits == 64 => return 1 << (to.bits - 1),
        Value::Nan => return 0,
        Value::Infinite { negative: true } => to.least(),
        Value::Infinite { negative: false } => to.greatest(),
        Value::Finite(Finite { negative, mantissa, exponent }) => {
            // A significand has at most 53 bits, so from this exponent on the number is out of
            // every integer's range.
            let magnitude = if exponent > 64 && mantissa != 0 {
                i128::MAX
            } else if exponent >= 0 {
                (mantissa << exponent) as i128
            } else {
                i128::from(round_to_unit(mantissa, exponent, 0, negative, round))
            };
            let value = if negative { -magnitude } else { magnitude };
            value.clamp(to.least(), to.greatest())
        }
    };
    let unused = 64 - to.bits;
    (value as u64) << unused >> unused
}
