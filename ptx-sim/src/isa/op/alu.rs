//! Operations on the registers of a lane.

use crate::isa::float::format::Round;
use crate::isa::float::{FloatOp, FloatType, Mode};
use crate::isa::{BinaryOp, Comparison, Guard, Integer, PackedOp, Permutation, Reg, TernaryOp, UnaryOp};

/// Computes registers of a lane from other registers of it.
#[derive(Clone, Debug)]
pub(crate) enum Alu {
    Unary {
        op: Unary,
        d: Reg,
        a: Reg,
    },
    Binary {
        op: Binary,
        d: Reg,
        sources: [Reg; 2],
    },
    Ternary {
        op: Ternary,
        d: Reg,
        sources: [Reg; 3],
    },
    /// `lop3`, with its truth table.
    Lop3 {
        table: u8,
        d: Reg,
        sources: [Reg; 3],
    },
    /// `bfi`.
    Insert {
        bits: u32,
        d: Reg,
        sources: [Reg; 4],
    },
    Float(FloatCode),
    Carry(Carry),
    Compare(Compare),
    ComparePair(ComparePair),
    Convert {
        conversion: Conversion,
        d: Reg,
        a: Reg,
    },
    ConvertPair {
        conversion: PairConversion,
        d: Reg,
        sources: [Reg; 2],
    },
    /// `mov` of a vector into a register. Each part has `bits` bits, and the first is the lowest.
    Pack {
        bits: u32,
        d: Reg,
        parts: Vec<Reg>,
    },
    /// `mov` of a register into a vector: the inverse of `Pack`.
    Unpack {
        bits: u32,
        parts: Vec<Reg>,
        a: Reg,
    },
    /// `%clock` and `%clock64`.
    Clock {
        wide: bool,
        d: Reg,
    },
    /// `activemask`.
    ActiveMask {
        d: Reg,
    },
}

impl Alu {
    /// `mov`.
    pub(crate) const fn copy(d: Reg, a: Reg) -> Self {
        Self::Unary { op: Unary::Copy, d, a }
    }
}

/// An operation on one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unary {
    /// `mov`.
    Copy,
    Integer(UnaryOp, Integer),
}

/// An operation on two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    And,
    Or,
    Xor,
    Shift {
        left: bool,
        ty: Integer,
    },
    /// `bmsk`.
    Mask {
        wrap: bool,
    },
    Integer(BinaryOp, Integer),
    /// Two 16-bit integers in each register.
    Packed(PackedOp),
}

/// An operation on three operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ternary {
    /// `selp`.
    Select,
    /// `slct`, selecting by a signed integer.
    SelectBySign,
    /// `slct`, selecting by a single: `-0` counts as not negative, a NaN as negative.
    SelectBySingle,
    /// `bfe`.
    Extract(Integer),
    /// `shf`.
    Funnel {
        left: bool,
        wrap: bool,
    },
    /// `prmt`.
    Permute(Permutation),
    /// `fns`.
    FindNth,
    /// `dp2a`: whether it takes the high half of `b`, and whether `a` and `b` are signed.
    Dot2 {
        high: bool,
        signed: [bool; 2],
    },
    /// `dp4a`.
    Dot4 {
        signed: [bool; 2],
    },
    /// `vabsdiff4`; `summed` if it has `.add`.
    Differences4 {
        signed: bool,
        summed: bool,
    },
    Integer(TernaryOp, Integer),
}

/// Floating-point arithmetic.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FloatCode {
    pub(crate) op: FloatOp,
    pub(crate) ty: FloatType,
    pub(crate) mode: Mode,
    /// Whether a register holds two numbers.
    pub(crate) pair: bool,
    pub(crate) d: Reg,
    pub(crate) sources: [Reg; 3],
}

/// Additions and multiplications that read or write the carry flag.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carry {
    pub(crate) op: CarryOp,
    pub(crate) bits: u32,
    pub(crate) signed: bool,
    pub(crate) reads: bool,
    pub(crate) writes: bool,
    pub(crate) d: Reg,
    pub(crate) sources: [Reg; 3],
}

/// The operation that reads or writes the carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CarryOp {
    Add,
    Sub,
    MadLow,
    MadHigh,
}

/// The type as which a comparison reads its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compared {
    Integer(Integer),
    Float(FloatType, bool),
}

/// `setp` and `set` of one number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compare {
    pub(crate) compared: Compared,
    pub(crate) comparison: Comparison,
    pub(crate) sources: [Reg; 2],
    pub(crate) combined: Option<Combined>,
    pub(crate) truth: Truth,
    pub(crate) d: Reg,
    /// The predicate that receives the negated result.
    pub(crate) opposite: Reg,
}

/// `setp` and `set` of a pair of halves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ComparePair {
    pub(crate) ty: FloatType,
    pub(crate) flush: bool,
    pub(crate) comparison: Comparison,
    pub(crate) sources: [Reg; 2],
    pub(crate) combined: Option<Combined>,
    pub(crate) truth: Truth,
    pub(crate) d: [Reg; 2],
}

/// The predicate that a comparison's result is combined with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Combined {
    pub(crate) by: Combine,
    pub(crate) with: Guard,
}

/// How a comparison's result is combined with a predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Combine {
    And,
    Or,
    Xor,
}

/// The representation of a true result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Truth {
    /// `setp`: a predicate.
    Predicate,
    /// `set`: these bits.
    Bits(u64),
}

/// An operand type of `cvt`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numeric {
    Integer(Integer),
    Float(FloatType),
    Tf32,
}

/// `cvt` of one number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conversion {
    pub(crate) from: Numeric,
    pub(crate) to: Numeric,
    pub(crate) round: Round,
    /// `.rni` and the like: whether the result is rounded to an integral value.
    pub(crate) integral: bool,
    pub(crate) mode: Mode,
    pub(crate) finite: bool,
    /// Bits of the destination register, which may be wider than the type.
    pub(crate) width: u32,
}

/// `cvt` of two numbers that share a register.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PairConversion {
    /// Two singles to two halves.
    ToHalves { to: FloatType, round: Round, relu: bool, finite: bool },
    /// Two singles to two 8-bit floats.
    ToEights { e4m3: bool, relu: bool },
    /// Two halves in a register to two 8-bit floats.
    HalvesToEights { e4m3: bool, relu: bool },
    /// Two 8-bit floats to two halves.
    EightsToHalves { e4m3: bool, relu: bool },
}
