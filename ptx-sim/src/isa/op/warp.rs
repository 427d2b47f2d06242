//! What the lanes of a warp do together.

use tma_model::mma::{DoubleForm, WarpForm};

use crate::isa::{Address, Guard, Reg, Space};

/// An operation of the lanes that `mask` names.
#[derive(Clone, Debug)]
pub(crate) struct WarpOp {
    pub(crate) mask: Reg,
    pub(crate) what: Collective,
}

/// What the lanes of a mask do together.
#[derive(Clone, Debug)]
pub(crate) enum Collective {
    /// `bar.warp.sync`.
    Barrier,
    Shuffle {
        how: Shuffle,
        d: Reg,
        valid: Reg,
        a: Reg,
        b: Reg,
        clamp: Reg,
    },
    Vote {
        how: Vote,
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
        how: Redux,
        d: Reg,
        a: Reg,
    },
    Elect {
        leader: Reg,
        d: Reg,
    },
    /// Of all lanes.
    Matrix(Box<MatrixCode>),
    /// `mma.sync`, of all lanes.
    Product(Box<ProductCode>),
    /// `mma.sync` of f64, of all lanes.
    DoubleProduct(Box<DoubleCode>),
}

impl Collective {
    /// Whether it is `bar.warp.sync`, to which lanes may come from different places in the code.
    pub(crate) fn is_barrier(&self) -> bool {
        match self {
            Self::Barrier => true,
            Self::Shuffle { .. }
            | Self::Vote { .. }
            | Self::Match { .. }
            | Self::Redux { .. }
            | Self::Elect { .. }
            | Self::Matrix(_)
            | Self::Product(_)
            | Self::DoubleProduct(_) => false,
        }
    }
}

/// `shfl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shuffle {
    Up,
    Down,
    Butterfly,
    Index,
}

/// `vote`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vote {
    All,
    Any,
    Uniform,
    Ballot,
}

/// `redux`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Redux {
    Add,
    Min(bool),
    Max(bool),
    And,
    Or,
    Xor,
}

/// Matrices of 8 by 8 numbers of 16 bits that a warp moves.
#[derive(Clone, Debug)]
pub(crate) enum MatrixCode {
    /// `ldmatrix`, of as many matrices as there are registers.
    Load { space: Space, address: Address, registers: Vec<Reg>, transpose: bool },
    /// `stmatrix`.
    Store { space: Space, address: Address, registers: Vec<Reg>, transpose: bool },
    /// `movmatrix`, which transposes.
    Move { d: Reg, a: Reg },
}

/// `mma.sync` of f64.
#[derive(Clone, Debug)]
pub(crate) struct DoubleCode {
    pub(crate) form: DoubleForm,
    pub(crate) d: Vec<Reg>,
    pub(crate) a: Vec<Reg>,
    pub(crate) b: Vec<Reg>,
    pub(crate) c: Vec<Reg>,
}

/// `mma.sync`.
#[derive(Clone, Debug)]
pub(crate) struct ProductCode {
    pub(crate) form: WarpForm,
    /// Whether sums of integers are clamped.
    pub(crate) saturates: bool,
    /// Of single bits: whether those are counted that differ, and not those in common.
    pub(crate) differs: bool,
    pub(crate) d: Vec<Reg>,
    pub(crate) a: Vec<Reg>,
    pub(crate) b: Vec<Reg>,
    pub(crate) c: Vec<Reg>,
}
