//! The fundamental types of PTX.

use crate::isa::Integer;
use crate::isa::float::FloatType;

/// A type, as an instruction's modifier names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Pred,
    /// `.b8` to `.b64`.
    Bits(u32),
    Integer(Integer),
    Float(FloatType),
    /// `.f16x2`, `.bf16x2`.
    FloatPair(FloatType),
    /// `.u16x2`, `.s16x2`; true if signed.
    IntegerPair(bool),
    Tf32,
    /// The pairs of 8-bit floats such as `.e4m3x2`; true if E4M3.
    Float8Pair(bool),
    B128,
}

impl Type {
    pub(crate) fn named(name: &str) -> Option<Type> {
        let integer = |bits, signed| Type::Integer(Integer { bits, signed });
        Some(match name {
            "pred" => Type::Pred,
            "b8" => Type::Bits(8),
            "b16" => Type::Bits(16),
            "b32" => Type::Bits(32),
            "b64" => Type::Bits(64),
            "b128" => Type::B128,
            "u8" => integer(8, false),
            "u16" => integer(16, false),
            "u32" => integer(32, false),
            "u64" => integer(64, false),
            "s8" => integer(8, true),
            "s16" => integer(16, true),
            "s32" => integer(32, true),
            "s64" => integer(64, true),
            "f16" => Type::Float(FloatType::F16),
            "bf16" => Type::Float(FloatType::Bf16),
            "f32" => Type::Float(FloatType::F32),
            "f64" => Type::Float(FloatType::F64),
            "f16x2" => Type::FloatPair(FloatType::F16),
            "bf16x2" => Type::FloatPair(FloatType::Bf16),
            "u16x2" => Type::IntegerPair(false),
            "s16x2" => Type::IntegerPair(true),
            "tf32" => Type::Tf32,
            "e4m3x2" => Type::Float8Pair(true),
            "e5m2x2" => Type::Float8Pair(false),
            _ => return None,
        })
    }

    /// Returns the bits of a value.
    pub(crate) fn bits(self) -> u32 {
        match self {
            Type::Pred => 1,
            Type::Bits(bits) | Type::Integer(Integer { bits, .. }) => bits,
            Type::Float(FloatType::F16 | FloatType::Bf16) | Type::Float8Pair(_) => 16,
            Type::Float(FloatType::F32) | Type::FloatPair(_) | Type::IntegerPair(_) | Type::Tf32 => 32,
            Type::Float(FloatType::F64) => 64,
            Type::B128 => 128,
        }
    }

    /// Returns the integer type as which instructions without a signedness read the bits: unsigned.
    pub(crate) fn as_integer(self) -> Option<Integer> {
        match self {
            Type::Integer(integer) => Some(integer),
            Type::Bits(bits) => Some(Integer { bits, signed: false }),
            Type::Pred
            | Type::Float(_)
            | Type::FloatPair(_)
            | Type::IntegerPair(_)
            | Type::Tf32
            | Type::Float8Pair(_)
            | Type::B128 => None,
        }
    }

    pub(crate) fn is_signed(self) -> bool {
        matches!(self, Type::Integer(Integer { signed: true, .. }))
    }
}
