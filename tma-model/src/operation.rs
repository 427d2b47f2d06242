//! Reductions and atomics, and the types that each supports.

use crate::Scalar;

/// Defines enums of operations, each with a list of all operations and their names.
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
            /// All operations, in the order of declaration.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$Variant),+];

            /// Returns the operation's name in PTX, which is also the suffix of the kernel's
            /// method.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$Variant => $name),+ }
            }
        }
    )+ };
}

operations! {
    /// A reduction by the copy engine, named by the value that it stores in place of each element.
    /// A kernel's method is `reduce_` and the name. Source: PTX ISA, "cp.reduce.async.bulk.tensor".
    pub enum ReduceOp {
        /// The sum; integers wrap.
        Add = "add",
        /// The smaller value.
        Min = "min",
        /// The larger value.
        Max = "max",
        /// The old element plus one, or 0 if the old element was at least the tile's element.
        Inc = "inc",
        /// The old element minus one, or the tile's element if the old element was 0 or above the
        /// tile's element.
        Dec = "dec",
        /// Bitwise AND.
        And = "and",
        /// Bitwise OR.
        Or = "or",
        /// Bitwise XOR.
        Xor = "xor",
    }

    /// An atomic operation, named by the value that it stores. A kernel's method is `atomic_` and
    /// the name. Source: PTX ISA, "atom".
    pub enum AtomicOp {
        /// The sum; integers wrap. Available for floats too.
        Add = "add",
        /// The smaller value.
        Min = "min",
        /// The larger value.
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

/// Reductions that support the same element types. Source: PTX ISA, "cp.reduce.async.bulk", the
/// table of operations and types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReduceFamily {
    /// Sums. Those of floats are rounded.
    Arithmetic,
    /// Comparisons of elements.
    Order,
    /// Counts up or down to a bound.
    Count,
    /// Bitwise combinations.
    Bits,
}

impl ReduceOp {
    /// Returns the family, which determines the supported element types.
    pub const fn family(self) -> ReduceFamily {
        match self {
            Self::Add => ReduceFamily::Arithmetic,
            Self::Min | Self::Max => ReduceFamily::Order,
            Self::Inc | Self::Dec => ReduceFamily::Count,
            Self::And | Self::Or | Self::Xor => ReduceFamily::Bits,
        }
    }

    /// Returns whether the copy engine reduces elements of this type through a tensor map.
    ///
    /// Source: PTX ISA, "cp.reduce.async.bulk.tensor", the table of operations and element types.
    /// For the untyped bits in that table (`.b32`, `.b64`), integers are accepted here, except i64:
    /// an H200 stops with an illegal instruction.
    pub const fn takes_mapped(self, element: Scalar) -> bool {
        use Scalar::{Bf16, F16, F32, I32, I64, U32, U64};
        match self.family() {
            ReduceFamily::Arithmetic => matches!(element, U32 | I32 | U64 | F16 | Bf16 | F32),
            ReduceFamily::Order => matches!(element, U32 | I32 | U64 | I64 | F16 | Bf16),
            ReduceFamily::Count => matches!(element, U32),
            ReduceFamily::Bits => matches!(element, U32 | I32 | U64),
        }
    }

    /// Returns whether the copy engine reduces elements of this type in global memory without a
    /// tensor map.
    ///
    /// Source: PTX ISA, "cp.reduce.async.bulk", the table of operations and types. The untyped bits
    /// in that table (`.b32`, `.b64`) are integers here.
    pub const fn takes_bulk(self, element: Scalar) -> bool {
        let element = if matches!(element, Scalar::Usize) { Scalar::U64 } else { element };
        let without_a_map = match self.family() {
            ReduceFamily::Arithmetic => matches!(element, Scalar::F64),
            ReduceFamily::Bits => matches!(element, Scalar::I64),
            ReduceFamily::Order | ReduceFamily::Count => false,
        };
        without_a_map || self.takes_mapped(element)
    }

    /// Returns whether the copy engine reduces elements of this type in another block's shared
    /// memory. Source: PTX ISA, "cp.reduce.async.bulk", the table of operations and types.
    pub const fn takes_remote(self, element: Scalar) -> bool {
        use Scalar::{I32, U32, U64, Usize};
        match self.family() {
            ReduceFamily::Arithmetic => matches!(element, U32 | I32 | U64 | Usize),
            ReduceFamily::Count => matches!(element, U32),
            ReduceFamily::Order | ReduceFamily::Bits => matches!(element, U32 | I32),
        }
    }

    /// Returns whether PTX requires `.noftz` before this type. Results that are rounded to 16 bits
    /// keep subnormal numbers, and the qualifier says so. Source: PTX ISA, "cp.reduce.async.bulk".
    pub const fn wants_noftz(self, element: Scalar) -> bool {
        match self.family() {
            ReduceFamily::Arithmetic => matches!(element, Scalar::F16 | Scalar::Bf16),
            ReduceFamily::Order | ReduceFamily::Count | ReduceFamily::Bits => false,
        }
    }
}

/// An atomic operation that fetches the old value. This is every [`AtomicOp`] but the exchange,
/// which is called `swap` if it has a memory order. A kernel's method is `fetch_` and the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchOp(AtomicOp);

impl FetchOp {
    /// All operations, in the order of [`AtomicOp`].
    pub const ALL: [Self; 6] = [
        Self(AtomicOp::Add),
        Self(AtomicOp::Min),
        Self(AtomicOp::Max),
        Self(AtomicOp::And),
        Self(AtomicOp::Or),
        Self(AtomicOp::Xor),
    ];

    /// Returns the operation's name.
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
    /// Returns whether the operation supports `scalar`. The exchange moves untyped bits. Source:
    /// PTX ISA, "atom", the table of operations and types.
    pub const fn takes(self, scalar: Scalar) -> bool {
        use Scalar::{Bf16, F16, F32, F64, I32, I64, U32, U64, Usize};
        let integer = matches!(scalar, I32 | U32 | I64 | U64 | Usize);
        match self {
            Self::Add => integer || matches!(scalar, F16 | Bf16 | F32 | F64),
            Self::Min | Self::Max | Self::And | Self::Or | Self::Xor => integer,
            Self::Exchange => integer || matches!(scalar, F32 | F64),
        }
    }

    /// Returns whether elements of this type can be added as vectors. Source: PTX ISA, "red", the
    /// vector forms.
    pub const fn adds_vectors(scalar: Scalar) -> bool {
        matches!(scalar, Scalar::F16 | Scalar::Bf16 | Scalar::F32)
    }
}
