//! Floating-point types and operations.

pub(crate) mod convert;
pub(crate) mod format;

use format::{BF16, F16, F32, F64, Format, Round};

/// The type of a floating-point instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FloatType {
    F16,
    Bf16,
    F32,
    F64,
}

impl FloatType {
    pub(crate) fn format(self) -> Format {
        match self {
            FloatType::F16 => F16,
            FloatType::Bf16 => BF16,
            FloatType::F32 => F32,
            FloatType::F64 => F64,
        }
    }
}

/// The modifiers of an arithmetic instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mode {
    pub(crate) round: Round,
    /// `.ftz`: subnormal operands and results are zero.
    pub(crate) flush: bool,
    /// `.sat`: the result is clamped to 0..1, and a NaN becomes 0.
    pub(crate) saturate: bool,
    /// `.relu`: a negative result becomes 0.
    pub(crate) relu: bool,
    /// `.NaN` of `min` and `max`: a NaN operand makes the result a NaN.
    pub(crate) nan: bool,
    /// `.xorsign.abs` of `min` and `max`.
    pub(crate) xor_sign: bool,
}

/// A floating-point operation on up to three operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FloatOp {
    Exact(Exact),
    Approximate(Approximate),
    HighHalf(HighHalf),
    Min,
    Max,
    Abs,
    Neg,
    CopySign,
    /// `testp`: 1 or 0.
    Test(Test),
}

/// An operation that is computed exactly and rounded once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exact {
    Add,
    Sub,
    Mul,
    Fma,
    Div,
    Sqrt,
    Rcp,
}

/// An operation whose error is bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Approximate {
    /// `div.approx`, which returns a zero if the divisor's magnitude is above 2^126 (a NaN if the
    /// dividend is infinite).
    Div,
    Rsqrt,
    Ex2,
    Lg2,
    Sin,
    Cos,
    Tanh,
}

/// An operation on the high half of a double.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HighHalf {
    /// `rcp.approx.ftz.f64`.
    Rcp,
    /// `rsqrt.approx.ftz.f64`.
    Rsqrt,
}

/// The property that `testp` tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Test {
    Finite,
    Infinite,
    Number,
    NotANumber,
    Normal,
    Subnormal,
}

/// Converts a floating-point immediate to the instruction's type, and returns its bits.
pub(crate) fn float_bits(double: u64, bits: u32, bfloat: bool) -> u64 {
    let format = match (bits, bfloat) {
        (16, true) => BF16,
        (16, false) => F16,
        (32, _) => F32,
        _ => return double,
    };
    convert::between(double, F64, format, Round::Nearest, false)
}
