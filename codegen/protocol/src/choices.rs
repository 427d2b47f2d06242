//! The policy by which executions are followed, and the decisions that they take.

use tma_front::ir::StmtId;

use super::explore::allowance::Allowance;

/// Numbers of iterations of loops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Iterations {
    pub(super) inner: u32,
    /// Iterations of loops that contain other loops.
    pub(super) outer: u32,
    /// Iterations of loops in which nothing synchronises.
    pub(super) silent: u32,
}

impl Iterations {
    /// The same number for every loop.
    pub(super) fn of_all(iterations: u32) -> Self {
        Self { inner: iterations, outer: iterations, silent: iterations }
    }
}

/// How executions are followed.
#[derive(Debug)]
pub(super) struct Policy {
    /// The free decisions to begin with: for each, whether it deviates from the default.
    pub(super) path: Vec<bool>,
    /// Iterations that each loop with a free end takes by default, once `path` is exhausted.
    pub(super) iterations: Iterations,
    /// Whether a free condition stops the run, so that the caller follows both branches.
    pub(super) forks: bool,
    /// The budget that is left.
    pub(super) budget: Allowance,
    /// The work that will be left when the memory of the state is counted next.
    pub(super) next_count: u64,
    /// The memory that is held beside this state, in bytes.
    pub(super) other_held_bytes: u64,
}

impl Policy {
    /// Returns the policy of a search for mistakes, which takes free decisions by default.
    pub(super) fn search(path: &[bool], iterations: Iterations, budget: Allowance) -> Self {
        let path = path.to_vec();
        Self { path, iterations, forks: false, budget, next_count: 0, other_held_bytes: 0 }
    }

    /// Returns the policy of a proof, which follows both branches of each free condition.
    pub(super) fn proof(budget: Allowance) -> Self {
        Self { forks: true, ..Self::search(&[], Iterations::default(), budget) }
    }
}

/// The free decisions that an execution has taken.
#[derive(Clone, Debug, Default)]
pub(super) struct Decisions {
    /// For each, in order, whether it deviates from the default.
    pub(super) taken: Vec<bool>,
    /// The largest number of iterations at which one was taken.
    pub(super) max_iterations: u32,
    /// The smallest number of iterations at which one ended a loop.
    pub(super) min_iterations: Option<u32>,
    /// Those that depend on loaded data.
    pub(super) data: DataDependence,
}

/// The decisions that depend on loaded data. Only the host knows which loaded numbers occur
/// together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum DataDependence {
    #[default]
    None,
    /// One group decides whether one of its loops continues. For any number of iterations there is
    /// a launch.
    Loop(usize, StmtId),
    /// Several groups decide, or one group decides something else. Not all combinations need occur.
    Several,
}

impl Decisions {
    /// Whether an execution that depends on `data` loaded numbers may not correspond to any launch.
    /// Only the host knows which loaded numbers occur together. If all loops take the same number
    /// of iterations (`is_typical`), their bounds can.
    pub(super) fn may_be_infeasible(&self, data: usize, is_typical: bool) -> bool {
        match self.data {
            DataDependence::None => false,
            DataDependence::Loop(..) => !is_typical,
            DataDependence::Several => !is_typical || data > 1,
        }
    }
}

impl DataDependence {
    /// Adds a decision by a group: whether the loop `of_loop` continues, or something else.
    pub(super) fn and(self, group: usize, of_loop: Option<StmtId>) -> Self {
        match (self, of_loop.map(|of| Self::Loop(group, of))) {
            (Self::None, Some(decision)) => decision,
            (Self::Loop(..), Some(decision)) if self == decision => self,
            (Self::None | Self::Loop(..) | Self::Several, Some(_) | None) => Self::Several,
        }
    }
}
