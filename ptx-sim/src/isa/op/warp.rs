//! Operations across the lanes of a warp.

use tma_model::mma::{DoubleForm, WarpForm};

use crate::isa::{Address, Guard, Reg, Space};

/// A collective operation of the lanes that `mask` names.
#[derive(Clone, Debug)]
pub(crate) struct WarpOp {
    pub(crate) mask: Reg,
    pub(crate) kind: Collective,
}

/// An operation that the lanes of a mask execute collectively.
#[derive(Clone, Debug)]
pub(crate) enum Collective {
    /// `bar.warp.sync`.
    Barrier,
    Shuffle {
        mode: Shuffle,
        d: Reg,
        valid: Reg,
        a: Reg,
        b: Reg,
        clamp: Reg,
    },
    Vote {
        mode: Vote,
        d: Reg,
        a: Guard,
    },
    Match {
        all: bool,
        d: Reg,
        valid: Reg,
        a: Reg,
    },
    Redux {
        mode: Redux,
        d: Reg,
        a: Reg,
    },
    Elect {
        leader: Reg,
        d: Reg,
    },
    /// A matrix operation of all lanes.
    Matrix(Box<MatrixCode>),
    /// `mma.sync`, of all lanes.
    Mma(Box<MmaCode>),
    /// `mma.sync` of f64, of all lanes.
    MmaDouble(Box<MmaDoubleCode>),
}

impl Collective {
    /// Whether the operation is `bar.warp.sync`, which lanes may reach from different instructions.
    pub(crate) fn is_barrier(&self) -> bool {
        match self {
            Self::Barrier => true,
            Self::Shuffle { .. }
            | Self::Vote { .. }
            | Self::Match { .. }
            | Self::Redux { .. }
            | Self::Elect { .. }
            | Self::Matrix(_)
            | Self::Mma(_)
            | Self::MmaDouble(_) => false,
        }
    }
}

/// The modes of `shfl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shuffle {
    Up,
    Down,
    Butterfly,
    Index,
}

/// The modes of `vote`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vote {
    All,
    Any,
    Uniform,
    Ballot,
}

/// The operators of `redux`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Redux {
    Add,
    Min(bool),
    Max(bool),
    And,
    Or,
    Xor,
}

/// Operations that move 8×8 matrices of 16-bit numbers.
#[derive(Clone, Debug)]
pub(crate) enum MatrixCode {
    /// `ldmatrix`, with one matrix for each register.
    Load { space: Space, address: Address, registers: Vec<Reg>, transpose: bool },
    /// `stmatrix`, likewise.
    Store { space: Space, address: Address, registers: Vec<Reg>, transpose: bool },
    /// `movmatrix`, which transposes.
    Move { d: Reg, a: Reg },
}

/// `mma.sync` of f64.
#[derive(Clone, Debug)]
pub(crate) struct MmaDoubleCode {
    pub(crate) form: DoubleForm,
    pub(crate) d: Vec<Reg>,
    pub(crate) a: Vec<Reg>,
    pub(crate) b: Vec<Reg>,
    pub(crate) c: Vec<Reg>,
}

/// `mma.sync` of all types but f64.
#[derive(Clone, Debug)]
pub(crate) struct MmaCode {
    pub(crate) form: WarpForm,
    /// Whether integer sums are clamped.
    pub(crate) saturates: bool,
    /// For single-bit operands, whether differing bits are counted (`.xor`) rather than common ones
    /// (`.and`).
    pub(crate) differs: bool,
    pub(crate) d: Vec<Reg>,
    pub(crate) a: Vec<Reg>,
    pub(crate) b: Vec<Reg>,
    pub(crate) c: Vec<Reg>,
}
