//! What is wrong with a kernel, as the checker finds it: a rule, the steps that break it, and who
//! took them.

use super::memory::Site;
pub use crate::diag::Why;
pub(super) use crate::diag::mistake::{Act, ProtocolRule as Rule};
use crate::ir::{ParamId, Span};

/// A step that a finding is about.
#[derive(Clone, Debug)]
pub(super) struct Party {
    pub(super) site: Site,
    pub(super) does: Act,
}

/// What was found in a world.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) rule: Rule,
    /// Where it is reported.
    pub(super) at: Party,
    /// The other steps, the most telling first.
    pub(super) others: Vec<Party>,
    /// What is known besides: counts, and what is missing.
    pub(super) detail: Detail,
}

/// What belongs to a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    /// Nothing more.
    Nothing,
    /// A barrier, by block and address, and what it counts.
    Barrier { block: usize, at: u32, state: BarrierState },
    /// A barrier that lacks bytes, since these blocks do not load their parts of a tile.
    Slices { at: u32, state: BarrierState, missing: Vec<usize> },
    /// Shared memory, by block and address.
    Memory { block: usize, at: u32 },
    /// The global memory of a parameter.
    Global(ParamId),
}

/// What a barrier counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BarrierState {
    pub(super) phase: u32,
    pub(super) pending: u32,
    pub(super) expected: u32,
    pub(super) expected_bytes: u64,
    pub(super) received_bytes: u64,
}

/// A reason, and the place of it.
#[derive(Clone, Copy, Debug)]
pub struct Doubt {
    /// Why.
    pub why: Why,
    /// Where.
    pub span: Span,
}
