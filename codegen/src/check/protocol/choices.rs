//! The decisions of an execution.

use crate::ir::StmtId;
use crate::quick::QuickSet;

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

/// The decisions of an execution, in order.
#[derive(Debug, Default)]
pub(super) struct Choices {
    /// The decisions to begin with: for each, whether it deviates from the default.
    pub(super) path: Vec<bool>,
    pub(super) taken: Vec<bool>,
    /// Iterations that each loop with a free end takes by default, once `path` is exhausted.
    pub(super) iterations: Iterations,
    /// The largest number of iterations at which a free decision was taken.
    pub(super) max_iterations: u32,
    /// The smallest number of iterations at which a free decision ended a loop.
    pub(super) min_iterations: Option<u32>,
    /// The decisions that depend on loaded data.
    pub(super) data: DataDependence,
    /// Whether a free condition stops the run, so that the caller follows both branches.
    pub(super) forks: bool,
    /// In that mode, the loops whose ends depend on the launch or on data.
    pub(super) free: QuickSet<StmtId>,
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

impl Choices {
    /// Whether an execution that depends on `data` loaded numbers may not correspond to any launch.
    /// Only the host knows which loaded numbers occur together.
    pub(super) fn may_be_infeasible(&self, data: usize) -> bool {
        // If all loops take the same number of iterations, their bounds can occur together.
        let is_typical = self.path.is_empty();
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
