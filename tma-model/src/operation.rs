//! Reductions and atomics, and the types that each takes.

use crate::Scalar;

/// What a reduction by the copy engine puts in the place of each element.
/// Source: PTX ISA, "cp.reduce.async.bulk.tensor".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReduceOp {
    /// The sum; integers wrap.
    Add,
    /// The lesser.
    Min,
    /// The greater.
    Max,
    /// One more, or 0 where it was the tile's element or above.
    Inc,
    /// One less, or the tile's element where it was 0 or above the tile's element.
    Dec,
    /// Bitwise AND.
    And,
    /// Bitwise OR.
    Or,
    /// Bitwise XOR.
    Xor,
}

impl ReduceOp {
    /// Every operation, in the order of declaration.
    pub const ALL: [ReduceOp; 8] =
        [Self::Add, Self::Min, Self::Max, Self::Inc, Self::Dec, Self::And, Self::Or, Self::Xor];

    /// Its name in PTX; a kernel's method is `reduce_` and this.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Min => "min",
            Self::Max => "max",
            Self::Inc => "inc",
            Self::Dec => "dec",
            Self::And => "and",
            Self::Or => "or",
            Self::Xor => "xor",
        }
    }

    /// Whether the copy engine reduces elements of this type through a tensor map.
    ///
    /// Source: PTX ISA, "cp.reduce.async.bulk.tensor", the table of operations and element types. Of
    /// the bits that it allows (`.b32`, `.b64`) those of integers are meant here; not those of i64, at
    /// which an H200 stops with an illegal instruction.
    pub const fn takes_mapped(self, element: Scalar) -> bool {
        match self {
            Self::Add => matches!(
                element,
                Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::F16 | Scalar::Bf16 | Scalar::F32
            ),
            Self::Min | Self::Max => matches!(
                element,
                Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 | Scalar::F16 | Scalar::Bf16
            ),
            Self::Inc | Self::Dec => matches!(element, Scalar::U32),
            Self::And | Self::Or | Self::Xor => {
                matches!(element, Scalar::U32 | Scalar::I32 | Scalar::U64)
            }
        }
    }

    /// Whether it reduces elements of this type in global memory without a tensor map.
    ///
    /// Source: PTX ISA, "cp.reduce.async.bulk", the table of operations and types. Bits (`.b32`,
    /// `.b64`) are those of integers here.
    pub const fn takes_bulk(self, element: Scalar) -> bool {
        let element = if matches!(element, Scalar::Usize) { Scalar::U64 } else { element };
        let without_a_map = match self {
            Self::Add => matches!(element, Scalar::F64),
            Self::And | Self::Or | Self::Xor => matches!(element, Scalar::I64),
            Self::Min | Self::Max | Self::Inc | Self::Dec => false,
        };
        without_a_map || self.takes_mapped(element)
    }

    /// Whether it reduces elements of this type in another block's shared memory.
    /// Source: PTX ISA, "cp.reduce.async.bulk", the table of operations and types.
    pub const fn takes_remote(self, element: Scalar) -> bool {
        match self {
            Self::Add => matches!(element, Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::Usize),
            Self::Inc | Self::Dec => matches!(element, Scalar::U32),
            Self::Min | Self::Max | Self::And | Self::Or | Self::Xor => {
                matches!(element, Scalar::U32 | Scalar::I32)
            }
        }
    }
}

/// What an atomic operation puts in the place of what was there. Source: PTX ISA, "atom".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomicOp {
    /// The sum; integers wrap. Also of f32 and f64.
    Add,
    /// The lesser.
    Min,
    /// The greater.
    Max,
    /// Bitwise AND.
    And,
    /// Bitwise OR.
    Or,
    /// Bitwise XOR.
    Xor,
    /// The operand.
    Exchange,
}

impl AtomicOp {
    /// Every operation, in the order of declaration.
    pub const ALL: [AtomicOp; 7] =
        [Self::Add, Self::Min, Self::Max, Self::And, Self::Or, Self::Xor, Self::Exchange];

    /// Its name; a kernel's method is `atomic_` and this.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Min => "min",
            Self::Max => "max",
            Self::And => "and",
            Self::Or => "or",
            Self::Xor => "xor",
            Self::Exchange => "exchange",
        }
    }

    /// Whether there is such an operation on `scalar`.
    pub const fn takes(self, scalar: Scalar) -> bool {
        let integer = matches!(scalar, Scalar::I32 | Scalar::U32 | Scalar::I64 | Scalar::U64 | Scalar::Usize);
        match self {
            Self::Add => integer || matches!(scalar, Scalar::F32 | Scalar::F64),
            Self::Min | Self::Max | Self::And | Self::Or | Self::Xor | Self::Exchange => integer,
        }
    }
}
