//! The types of operands and accumulators.

use std::fmt;

use crate::scalar::Scalar;

/// The type of the elements of A or B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // each is named as in PTX
pub enum Operand {
    F16,
    Bf16,
    /// TF32 in 32 bits, of which the low 13 are ignored.
    Tf32,
    E4m3,
    E5m2,
    S8,
    U8,
    /// Single bits. A and B are combined with `and`, and the ones are counted.
    B1,
}

/// The type of D, and of the accumulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // each is named as in PTX
pub enum Accumulator {
    F32,
    F16,
    S32,
}

/// Types that can be multiplied with each other, alone or mixed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    F16,
    Bf16,
    Tf32,
    Float8,
    Integer8,
    Bit,
}

impl Operand {
    /// All operand types.
    pub const ALL: [Self; 8] =
        [Self::F16, Self::Bf16, Self::Tf32, Self::E4m3, Self::E5m2, Self::S8, Self::U8, Self::B1];

    /// Returns the name in PTX, without the dot.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::Tf32 => "tf32",
            Self::E4m3 => "e4m3",
            Self::E5m2 => "e5m2",
            Self::S8 => "s8",
            Self::U8 => "u8",
            Self::B1 => "b1",
        }
    }

    /// Returns the operand type of a tile whose elements have this scalar type.
    pub const fn of(scalar: Scalar) -> Option<Self> {
        match scalar {
            Scalar::F16 => Some(Self::F16),
            Scalar::Bf16 => Some(Self::Bf16),
            Scalar::Tf32 => Some(Self::Tf32),
            Scalar::E4m3 => Some(Self::E4m3),
            Scalar::E5m2 => Some(Self::E5m2),
            Scalar::I8 => Some(Self::S8),
            Scalar::U8 => Some(Self::U8),
            Scalar::Bool
            | Scalar::I16
            | Scalar::U16
            | Scalar::I32
            | Scalar::U32
            | Scalar::I64
            | Scalar::U64
            | Scalar::Usize
            | Scalar::F32
            | Scalar::F64 => None,
        }
    }

    /// Returns the size of an element in bits, in shared memory and in registers.
    pub const fn bits(self) -> u32 {
        match self {
            Self::Tf32 => 32,
            Self::F16 | Self::Bf16 => 16,
            Self::E4m3 | Self::E5m2 | Self::S8 | Self::U8 => 8,
            Self::B1 => 1,
        }
    }

    /// Returns the number of elements in a register, or in any other 4 bytes.
    pub const fn per_register(self) -> u32 {
        32 / self.bits()
    }

    /// Returns the number of elements in a 16-byte chunk.
    pub const fn per_chunk(self) -> u32 {
        128 / self.bits()
    }

    const fn family(self) -> Family {
        match self {
            Self::F16 => Family::F16,
            Self::Bf16 => Family::Bf16,
            Self::Tf32 => Family::Tf32,
            Self::E4m3 | Self::E5m2 => Family::Float8,
            Self::S8 | Self::U8 => Family::Integer8,
            Self::B1 => Family::Bit,
        }
    }

    /// Returns whether an A of this type can be multiplied by a B of type `other`. 8-bit floats mix
    /// freely, and so do 8-bit integers. Source: PTX ISA, "wgmma.mma_async", the types of A and B.
    pub fn multiplies(self, other: Self) -> bool {
        self.family() == other.family()
    }

    /// Returns the types in which products of this type can be accumulated. Source: PTX ISA,
    /// "wgmma.mma_async", the types of D.
    pub const fn accumulates(self) -> &'static [Accumulator] {
        match self.family() {
            Family::F16 | Family::Float8 => &[Accumulator::F32, Accumulator::F16],
            Family::Bf16 | Family::Tf32 => &[Accumulator::F32],
            Family::Integer8 | Family::Bit => &[Accumulator::S32],
        }
    }

    /// Returns whether operands in shared memory may be MN-major, which requires the immediates
    /// `imm-trans-a` and `imm-trans-b`. Only 16-bit types have them. Source: PTX ISA,
    /// "wgmma.mma_async".
    pub const fn is_transposable(self) -> bool {
        match self.family() {
            Family::F16 | Family::Bf16 => true,
            Family::Tf32 | Family::Float8 | Family::Integer8 | Family::Bit => false,
        }
    }

    /// Returns whether the immediates `imm-scale-a` and `imm-scale-b`, which negate an operand, are
    /// available. Only floats have them. Source: as above.
    pub const fn is_negatable(self) -> bool {
        match self.family() {
            Family::F16 | Family::Bf16 | Family::Tf32 | Family::Float8 => true,
            Family::Integer8 | Family::Bit => false,
        }
    }

    /// Returns whether `.satfinite` may clamp the sum, as it may for 8-bit integers. Source: as
    /// above.
    pub const fn is_saturable(self) -> bool {
        match self.family() {
            Family::Integer8 => true,
            Family::F16 | Family::Bf16 | Family::Tf32 | Family::Float8 | Family::Bit => false,
        }
    }

    /// Returns whether there are instructions with a sparse A of this type: all types but single
    /// bits have them. Source: PTX ISA, "wgmma.mma_async.sp".
    pub const fn is_sparse(self) -> bool {
        match self.family() {
            Family::F16 | Family::Bf16 | Family::Tf32 | Family::Float8 | Family::Integer8 => true,
            Family::Bit => false,
        }
    }

    /// Returns whether N may be any multiple of 8. Source: PTX ISA, "wgmma.mma_async".
    pub(super) const fn has_every_width(self) -> bool {
        self.is_negatable()
    }
}

impl Accumulator {
    /// All accumulator types.
    pub const ALL: [Self; 3] = [Self::F32, Self::F16, Self::S32];

    /// Returns the accumulator type of this scalar, if there is one.
    pub fn of(scalar: Scalar) -> Option<Self> {
        Self::ALL.into_iter().find(|sums| sums.scalar() == scalar)
    }

    /// Returns the scalar type in a kernel.
    pub const fn scalar(self) -> Scalar {
        match self {
            Self::F32 => Scalar::F32,
            Self::F16 => Scalar::F16,
            Self::S32 => Scalar::I32,
        }
    }

    /// Returns the name in PTX, without the dot.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::S32 => "s32",
        }
    }

    /// Returns the number of elements in a register. A register holds f16 in pairs of columns.
    pub const fn per_register(self) -> u32 {
        match self {
            Self::F32 | Self::S32 => 1,
            Self::F16 => 2,
        }
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Accumulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_eight_bit_types_mix() {
        let mut pairs = Vec::new();
        for a in Operand::ALL {
            pairs.extend(Operand::ALL.into_iter().filter(|&b| a != b && a.multiplies(b)).map(|b| (a, b)));
        }
        let mixed = [
            (Operand::E4m3, Operand::E5m2),
            (Operand::E5m2, Operand::E4m3),
            (Operand::S8, Operand::U8),
            (Operand::U8, Operand::S8),
        ];
        assert_eq!(pairs, mixed);
    }
}
