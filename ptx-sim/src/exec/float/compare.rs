//! The ordering of floating-point numbers.

use std::cmp::Ordering;

use crate::isa::float::FloatType;
use crate::isa::float::format::{Format, Value};

/// Compares two numbers. Returns `None` if either is a NaN.
pub(crate) fn order(ty: FloatType, flush: bool, a: u64, b: u64) -> Option<Ordering> {
    match ty {
        FloatType::F64 => f64::from_bits(a).partial_cmp(&f64::from_bits(b)),
        FloatType::F32 if !flush => f32::from_bits(a as u32).partial_cmp(&f32::from_bits(b as u32)),
        FloatType::F16 | FloatType::Bf16 | FloatType::F32 => order_of_bits(ty.format(), flush, a, b),
    }
}

fn order_of_bits(format: Format, flush: bool, a: u64, b: u64) -> Option<Ordering> {
    let key = |bits: u64| {
        if format.unpack(bits, false) == Value::Nan {
            return None;
        }
        let magnitude = bits & !format.sign_bit();
        let magnitude = if flush && magnitude < 1 << format.fraction { 0 } else { magnitude };
        let signed = magnitude as i64;
        Some(if bits & format.sign_bit() == 0 { signed } else { -signed })
    };
    Some(key(a)?.cmp(&key(b)?))
}
