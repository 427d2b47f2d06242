//! `cvt`.

use super::super::float;
use crate::isa::float::format::{E4M3, E5M2, F16, F32, Format, Round, TF32};
use crate::isa::float::{FloatType, Mode, convert};
use crate::isa::{Conversion, Integer, Numeric, PairConversion};

/// Converts one number.
pub(super) fn one(conversion: &Conversion, value: u64) -> u64 {
    let Conversion { from, to, round, integral, mode, finite, width } = *conversion;
    match (from, to) {
        (Numeric::Integer(from), Numeric::Integer(to)) => {
            let number = from.read(value);
            let number = if mode.saturate { number.clamp(to.least(), to.greatest()) } else { number };
            in_register(number as u64, to, width)
        }
        (Numeric::Integer(from), to) => {
            let to = format_of(to);
            float::finish(to, mode, convert::from_integer(from.read(value), to, round))
        }
        (from, Numeric::Integer(to)) => {
            let flush = mode.flush && from == Numeric::Float(FloatType::F32);
            let format = format_of(from);
            let bits = value & (u64::MAX >> (64 - format_bits(format)));
            in_register(convert::to_integer(bits, format, to, round, flush), to, width)
        }
        (from, to) => {
            let (from, to) = (format_of(from), format_of(to));
            let bits = value & (u64::MAX >> (64 - format_bits(from)));
            let result = if integral {
                convert::to_integral(bits, from, to, round, mode.flush)
            } else if finite {
                convert::between_finite(bits, from, to, round)
            } else {
                convert::between(bits, from, to, round, mode.flush)
            };
            float::finish(to, mode, result)
        }
    }
}

fn format_bits(format: Format) -> u32 {
    1 + format.exponent + format.fraction + format.below
}

fn format_of(numeric: Numeric) -> Format {
    match numeric {
        Numeric::Float(ty) => ty.format(),
        Numeric::Tf32 | Numeric::Integer(_) => TF32,
    }
}

/// Extends the result of a narrow type to a wider register, as its type says.
fn in_register(value: u64, ty: Integer, width: u32) -> u64 {
    (ty.read(value) as u64) << (64 - width) >> (64 - width)
}

/// Converts two numbers that share a register.
pub(super) fn pair(conversion: PairConversion, a: u64, b: u64) -> u64 {
    let relu = |bits: u64, format: Format, on: bool| {
        let mode = Mode { relu: on, ..Default::default() };
        float::finish(format, mode, bits)
    };
    // The first operand becomes the upper half of the result.
    match conversion {
        PairConversion::ToHalves { to, round, relu: on, finite } => {
            let to = to.format();
            let half = |bits| {
                let bits = if finite {
                    convert::between_finite(bits, F32, to, round)
                } else {
                    convert::between(bits, F32, to, round, false)
                };
                relu(bits, to, on)
            };
            half(a) << 16 | half(b)
        }
        PairConversion::ToEights { e4m3, relu: on } => {
            let to = if e4m3 { E4M3 } else { E5M2 };
            let eight = |bits| relu(convert::between_finite(bits, F32, to, Round::Nearest), to, on);
            eight(a) << 8 | eight(b)
        }
        PairConversion::HalvesToEights { e4m3, relu: on } => {
            let to = if e4m3 { E4M3 } else { E5M2 };
            let eight = |bits| relu(convert::between_finite(bits, F16, to, Round::Nearest), to, on);
            eight(a >> 16 & 0xffff) << 8 | eight(a & 0xffff)
        }
        PairConversion::EightsToHalves { e4m3, relu: on } => {
            let from = if e4m3 { E4M3 } else { E5M2 };
            let half = |bits| relu(convert::between(bits, from, F16, Round::Nearest, false), F16, on);
            half(a >> 8 & 0xff) << 16 | half(a & 0xff)
        }
    }
}
