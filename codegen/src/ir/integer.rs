//! Functions of the bits of an integer.

/// A function of an integer's bits, with Rust's name and meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntegerOp {
    /// How many bits are 1.
    CountOnes,
    /// How many bits are 0.
    CountZeros,
    /// How many bits above the highest 1 are 0: all of them in 0.
    LeadingZeros,
    /// How many bits above the highest 0 are 1.
    LeadingOnes,
    /// How many bits below the lowest 1 are 0: all of them in 0.
    TrailingZeros,
    /// How many bits below the lowest 0 are 1.
    TrailingOnes,
    /// The bits in the opposite order.
    ReverseBits,
    /// The bytes in the opposite order.
    SwapBytes,
    /// The bits so many places (a `u32`, modulo the width) up, those at the top back at the bottom.
    RotateLeft,
    /// The bits so many places down, those at the bottom back at the top.
    RotateRight,
}

impl IntegerOp {
    /// Its name in a kernel.
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

    /// Whether it counts, and gives a `u32`. The others give an integer of the same type.
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
