//! Reductions and atomics, and the types that each takes.

use crate::Scalar;

/// Makes an enum of the operations in a list, with the list itself and their names.
macro_rules! operations {
    ($(
        $(#[$doc:meta])*
        pub enum $Op:ident {
            $($(#[$variant_doc:meta])* $Variant:ident = $name:literal,)+
        }
    )+) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $Op {
            $($(#[$variant_doc])* $Variant,)+
        }

        impl $Op {
            /// Every operation, in the order of declaration.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$Variant),+];

            /// Its name: in PTX, and at the end of a kernel's method.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$Variant => $name),+ }
            }
        }
    )+ };
}

operations! {
    /// What a reduction by the copy engine puts in the place of each element; a kernel's method is
    /// `reduce_` and its name. Source: PTX ISA, "cp.reduce.async.bulk.tensor".
    pub enum ReduceOp {
        /// The sum; integers wrap.
        Add = "add",
        /// The lesser.
        Min = "min",
        /// The greater.
        Max = "max",
        /// One more, or 0 where it was the tile's element or above.
        Inc = "inc",
        /// One less, or the tile's element where it was 0 or above the tile's element.
        Dec = "dec",
        /// Bitwise AND.
        And = "and",
        /// Bitwise OR.
        Or = "or",
        /// Bitwise XOR.
        Xor = "xor",
    }

    /// What an atomic operation puts in the place of what was there; a kernel's method is `atomic_`
    /// and its name. Source: PTX ISA, "atom".
    pub enum AtomicOp {
        /// The sum; integers wrap. Also of floats.
        Add = "add",
        /// The lesser.
        Min = "min",
        /// The greater.
        Max = "max",
        /// Bitwise AND.
        And = "and",
        /// Bitwise OR.
        Or = "or",
        /// Bitwise XOR.
        Xor = "xor",
        /// The operand.
        Exchange = "exchange",
    }
}

/// Reductions of the same element types. Source: PTX ISA, "cp.reduce.async.bulk", the table of
/// operations and types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReduceFamily {
    /// Results are computed, and those of floats rounded: sums.
    Arithmetic,
    /// Elements are compared.
    Order,
    /// Elements count up or down to a bound.
    Count,
    /// Bits are combined.
    Bits,
}

impl ReduceOp {
    /// The family that decides which element types it has.
    pub const fn family(self) -> ReduceFamily {
        match self {
            Self::Add => ReduceFamily::Arithmetic,
            Self::Min | Self::Max => ReduceFamily::Order,
            Self::Inc | Self::Dec => ReduceFamily::Count,
            Self::And | Self::Or | Self::Xor => ReduceFamily::Bits,
        }
    }

    /// Whether the copy engine reduces elements of this type through a tensor map.
    ///
    /// Source: PTX ISA, "cp.reduce.async.bulk.tensor", the table of operations and element types.
    /// Of the bits that it allows (`.b32`, `.b64`) those of integers are meant here; not those of
    /// i64, at which an H200 stops with an illegal instruction.
    pub const fn takes_mapped(self, element: Scalar) -> bool {
        use Scalar::{Bf16, F16, F32, I32, I64, U32, U64};
        match self.family() {
            ReduceFamily::Arithmetic => matches!(element, U32 | I32 | U64 | F16 | Bf16 | F32),
            ReduceFamily::Order => matches!(element, U32 | I32 | U64 | I64 | F16 | Bf16),
            ReduceFamily::Count => matches!(element, U32),
            ReduceFamily::Bits => matches!(element, U32 | I32 | U64),
        }
    }

    /// Whether it reduces elements of this type in global memory without a tensor map.
    ///
    /// Source: PTX ISA, "cp.reduce.async.bulk", the table of operations and types. Bits (`.b32`,
    /// `.b64`) are those of integers here.
    pub const fn takes_bulk(self, element: Scalar) -> bool {
        let element = if matches!(element, Scalar::Usize) { Scalar::U64 } else { element };
        let without_a_map = match self.family() {
            ReduceFamily::Arithmetic => matches!(element, Scalar::F64),
            ReduceFamily::Bits => matches!(element, Scalar::I64),
            ReduceFamily::Order | ReduceFamily::Count => false,
        };
        without_a_map || self.takes_mapped(element)
    }

    /// Whether it reduces elements of this type in another block's shared memory.
    /// Source: PTX ISA, "cp.reduce.async.bulk", the table of operations and types.
    pub const fn takes_remote(self, element: Scalar) -> bool {
        use Scalar::{I32, U32, U64, Usize};
        match self.family() {
            ReduceFamily::Arithmetic => matches!(element, U32 | I32 | U64 | Usize),
            ReduceFamily::Count => matches!(element, U32),
            ReduceFamily::Order | ReduceFamily::Bits => matches!(element, U32 | I32),
        }
    }

    /// Whether PTX wants `.noftz` before this type: results that are rounded to 16 bits keep
    /// subnormal numbers, and the qualifier says so. Source: PTX ISA, "cp.reduce.async.bulk".
    pub const fn wants_noftz(self, element: Scalar) -> bool {
        match self.family() {
            ReduceFamily::Arithmetic => matches!(element, Scalar::F16 | Scalar::Bf16),
            ReduceFamily::Order | ReduceFamily::Count | ReduceFamily::Bits => false,
        }
    }
}

/// An operation that fetches: all but the exchange, which is called `swap` where it has an order. A
/// kernel's method is `fetch_` and its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchOp(AtomicOp);

impl FetchOp {
    /// Every operation, in the order of [`AtomicOp`].
    pub const ALL: [Self; 6] = [
        Self(AtomicOp::Add),
        Self(AtomicOp::Min),
        Self(AtomicOp::Max),
        Self(AtomicOp::And),
        Self(AtomicOp::Or),
        Self(AtomicOp::Xor),
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        self.0.name()
    }
}

impl From<FetchOp> for AtomicOp {
    fn from(FetchOp(op): FetchOp) -> Self {
        op
    }
}

impl AtomicOp {
    /// Whether there is such an operation on `scalar`. Source: PTX ISA, "atom", the table of
    /// operations and types. What is exchanged are bits.
    pub const fn takes(self, scalar: Scalar) -> bool {
        use Scalar::{Bf16, F16, F32, F64, I32, I64, U32, U64, Usize};
        let integer = matches!(scalar, I32 | U32 | I64 | U64 | Usize);
        match self {
            Self::Add => integer || matches!(scalar, F16 | Bf16 | F32 | F64),
            Self::Min | Self::Max | Self::And | Self::Or | Self::Xor => integer,
            Self::Exchange => integer || matches!(scalar, F32 | F64),
        }
    }

    /// Whether elements of this type are added as vectors. Source: PTX ISA, "red", the vector
    /// forms.
    pub const fn adds_vectors(scalar: Scalar) -> bool {
        matches!(scalar, Scalar::F16 | Scalar::Bf16 | Scalar::F32)
    }
}
