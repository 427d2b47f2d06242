//! Integer types, and the operations on integers.

/// The width and signedness of an integer type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Integer {
    pub(crate) bits: u32,
    pub(crate) signed: bool,
}

impl Integer {
    /// Interprets the low bits of `value` as a number of this type.
    #[inline]
    pub(crate) fn read(self, value: u64) -> i128 {
        let unused = 64 - self.bits;
        if self.signed {
            i128::from((value << unused) as i64 >> unused)
        } else {
            i128::from(value << unused >> unused)
        }
    }

    pub(crate) fn least(self) -> i128 {
        if self.signed { -(1 << (self.bits - 1)) } else { 0 }
    }

    pub(crate) fn greatest(self) -> i128 {
        if self.signed { (1 << (self.bits - 1)) - 1 } else { (1 << self.bits) - 1 }
    }
}

/// Operations on two integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BinaryOp {
    Add,
    AddSaturated,
    Sub,
    SubSaturated,
    MulLow,
    MulHigh,
    /// The product in twice the width, at most 64 bits.
    MulWide,
    /// The low 32 bits of the 48-bit product of two 24-bit numbers.
    Mul24Low,
    /// The high 32 bits of that product.
    Mul24High,
    Div,
    Rem,
    Min,
    Max,
    /// A negative result becomes 0.
    MinRelu,
    MaxRelu,
}

/// `a · b + c`, and the sum of absolute differences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TernaryOp {
    MadLow,
    MadHigh,
    MadHighSaturated,
    MadWide,
    Mad24Low,
    Mad24High,
    Sad,
}

/// Operations on one integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnaryOp {
    Abs,
    Neg,
    Not,
    /// 1 for zero, 0 for every other value.
    LogicalNot,
    CountOnes,
    LeadingZeros,
    ReverseBits,
    /// The index of the highest bit that differs from the sign; all ones if there is none.
    HighestBit,
    /// The left shift that brings that bit to the top.
    HighestBitShift,
}

/// The way in which `prmt` picks bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permutation {
    /// Each nibble of the selector picks a byte. The top bit of the nibble replicates the sign of
    /// that byte instead.
    Generic,
    Forward4,
    Backward4,
    Replicate8,
    EdgeLeft,
    EdgeRight,
    Replicate16,
}

/// Operations on two pairs of 16-bit integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PackedOp {
    Add,
    Sub,
    Min {
        signed: bool,
    },
    Max {
        signed: bool,
    },
    /// On signed integers: a negative result becomes 0.
    MinRelu,
    MaxRelu,
}
