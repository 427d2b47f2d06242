//! Functions on the bits of an integer.

/// A function on the bits of an integer, with Rust's name and meaning.
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
        }
    }

    /// Whether it counts bits, with a `u32` result. The others return an integer of the operand's
    /// type.
    pub const fn counts(self) -> bool {
        match self {
            Self::CountOnes
            | Self::CountZeros
            | Self::LeadingZeros
            | Self::LeadingOnes
            | Self::TrailingZeros
            | Self::TrailingOnes => true,
            Self::ReverseBits | Self::SwapBytes | Self::RotateLeft | Self::RotateRight => false,
        }
    }
}
