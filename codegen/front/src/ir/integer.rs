//! Functions of integers, in addition to the operators.

use super::Scalar;

/// A function of integers, with Rust's name and meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntegerOp {
    /// The number of 1 bits.
    CountOnes,
    /// The number of 0 bits.
    CountZeros,
    /// The number of 0 bits above the highest 1; for 0, the width.
    LeadingZeros,
    /// The number of 1 bits above the highest 0.
    LeadingOnes,
    /// The number of 0 bits below the lowest 1; for 0, the width.
    TrailingZeros,
    /// The number of 1 bits below the lowest 0.
    TrailingOnes,
    /// The bits in reverse order.
    ReverseBits,
    /// The bytes in reverse order.
    SwapBytes,
    /// The bits rotated left by an amount (a `u32`, modulo the width).
    RotateLeft,
    /// The bits rotated right by an amount (a `u32`, modulo the width).
    RotateRight,
    /// The sum, or the nearest number of the type.
    SaturatingAdd,
    /// The difference, or the nearest number of the type.
    SaturatingSub,
    /// The product, or the nearest number of the type.
    SaturatingMul,
    /// The upper half of the product, which has twice as many bits as the operands.
    MulHi,
    /// The distance of two numbers, unsigned.
    AbsDiff,
    /// The logarithm to base 2, rounded down. Unspecified for numbers below 1.
    Ilog2,
}

impl IntegerOp {
    /// Returns the name in a kernel.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CountOnes => "count_ones",
            Self::CountZeros => "count_zeros",
            Self::LeadingZeros => "leading_zeros",
            Self::LeadingOnes => "leading_ones",
            Self::TrailingZeros => "trailing_zeros",
            Self::TrailingOnes => "trailing_ones",
            Self::ReverseBits => "reverse_bits",
            Self::SwapBytes => "swap_bytes",
            Self::RotateLeft => "rotate_left",
            Self::RotateRight => "rotate_right",
            Self::SaturatingAdd => "saturating_add",
            Self::SaturatingSub => "saturating_sub",
            Self::SaturatingMul => "saturating_mul",
            Self::MulHi => "mul_hi",
            Self::AbsDiff => "abs_diff",
            Self::Ilog2 => "ilog2",
        }
    }

    /// Returns the type of the result for operands of type `scalar`.
    pub const fn result(self, scalar: Scalar) -> Scalar {
        if self.counts() {
            Scalar::U32
        } else if matches!(self, Self::AbsDiff) {
            unsigned(scalar)
        } else {
            scalar
        }
    }

    /// Whether it counts bits, with a `u32` result. Except for [`Self::AbsDiff`], the others return
    /// an integer of the operand's type.
    pub const fn counts(self) -> bool {
        match self {
            Self::CountOnes
            | Self::CountZeros
            | Self::LeadingZeros
            | Self::LeadingOnes
            | Self::TrailingZeros
            | Self::TrailingOnes
            | Self::Ilog2 => true,
            Self::ReverseBits
            | Self::SwapBytes
            | Self::RotateLeft
            | Self::RotateRight
            | Self::SaturatingAdd
            | Self::SaturatingSub
            | Self::SaturatingMul
            | Self::MulHi
            | Self::AbsDiff => false,
        }
    }
}

/// Returns the unsigned type of the same width as an integer.
const fn unsigned(integer: Scalar) -> Scalar {
    match integer {
        Scalar::I8 => Scalar::U8,
        Scalar::I16 => Scalar::U16,
        Scalar::I32 => Scalar::U32,
        Scalar::I64 => Scalar::U64,
        Scalar::Bool
        | Scalar::U8
        | Scalar::U16
        | Scalar::U32
        | Scalar::U64
        | Scalar::Usize
        | Scalar::F16
        | Scalar::Bf16
        | Scalar::F32
        | Scalar::Tf32
        | Scalar::F64
        | Scalar::E4m3
        | Scalar::E5m2 => integer,
    }
}
