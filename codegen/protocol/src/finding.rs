//! A violation: the rule, the steps that break it, and the threads that took them.

use tma_front::ir::{ParamId, Span};

use super::memory::Site;

pub use tma_front::diag::UndecidedReason;
pub(crate) use tma_front::diag::mistake::ThreadAct;
pub(super) use tma_model::rule::Rule;

/// A step that takes part in a violation.
#[derive(Clone, Debug)]
pub(super) struct Party {
    pub(super) site: Site,
    pub(super) does: ThreadAct,
}

/// A violation found in an execution.
#[derive(Clone, Debug)]
pub(super) struct Violation {
    pub(super) rule: Rule,
    /// The step at which it is reported.
    pub(super) at: Party,
    /// The other steps, the most relevant first.
    pub(super) others: Vec<Party>,
    /// Further facts, such as counts.
    pub(super) detail: Detail,
}

/// Facts that depend on the rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    /// No further facts.
    Nothing,
    /// A barrier, by block and address, and its counts.
    Barrier { block: usize, at: u32, state: BarrierState },
    /// A barrier that lacks bytes, because the `missing` blocks do not load their parts of a tile.
    Slices { at: u32, state: BarrierState, missing: Vec<usize> },
    /// Shared memory, by block and address.
    Memory { block: usize, at: u32 },
    /// The global memory of a parameter.
    Global(ParamId),
}

/// The counts of a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BarrierState {
    pub(super) phase: u32,
    pub(super) pending: u32,
    pub(super) expected: u32,
    pub(super) expected_bytes: u64,
    pub(super) received_bytes: u64,
}

/// A reason why a kernel is undecided, and its location.
#[derive(Clone, Copy, Debug)]
pub struct Undecided {
    /// The reason.
    pub reason: UndecidedReason,
    /// The location in the source.
    pub span: Span,
}
