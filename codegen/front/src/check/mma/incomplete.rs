//! Warps at the end of a block that are not a whole warpgroup: they must not reach an operation of
//! a warpgroup.
//!
//! Source: PTX ISA, "wgmma.mma_async" and "setmaxnreg": all warps of a warpgroup execute them, and
//! a warpgroup is four contiguous warps of which the first has a rank that is a multiple of 4. What
//! they do where a block ends within a warpgroup is not defined.
//!
//! Only the first thread of these warps is followed: where the threads of a warpgroup must not
//! diverge, the others take the same path. A condition that is not known when the kernel is
//! compiled may hold.

use tma_model::limits::WARPGROUP_THREADS;

use crate::check::unrolled::{Check, State, follow};
use crate::diag::Sink;
use crate::diag::mistake::{self, Word};
use crate::ir::{Facts, Group, Kernel, LoadedType, Span, Stmt, StmtKind, Team};

/// Reports the first operation of a warpgroup that warps without a whole warpgroup reach.
pub(in crate::check) fn check(kernel: &Kernel, sink: &mut Sink) {
    let warpgroup = u64::from(WARPGROUP_THREADS);
    let block = kernel.launch.thread_count();
    let (whole, rest) = (block / warpgroup, block % warpgroup);
    if rest == 0 {
        return;
    }
    let mut walk = Walk { kernel, found: None };
    follow(&mut walk, kernel, State::of_warpgroup(whole, &kernel.launch));
    if let Some((word, span)) = walk.found {
        let at = kernel.launch.spans.threads;
        sink.error(mistake::Mma::IncompleteWarpgroup { word, block, whole, rest, at }, span);
    }
}

/// Returns the word of an operation that all threads of a warpgroup execute.
fn word_of_warpgroup(kernel: &Kernel, stmt: &Stmt, facts: &Facts<'_>) -> Option<&'static str> {
    // Each thread stores its own elements, and the matrix is that of the whole warpgroup.
    if let StmtKind::StoreMatrix(store) = &stmt.kind {
        return (!super::warp::holds(kernel, store.accumulator)).then_some("store");
    }
    match facts.group? {
        Group::Warpgroup => facts.uniform,
        Group::TeamOf(local) => {
            let team = LoadedType::of(&kernel.local(local).ty).map(LoadedType::team);
            facts.uniform.filter(|_| team == Some(Team::Warpgroup))
        }
        Group::Warp | Group::Named | Group::Block | Group::Cluster | Group::Grid => None,
    }
}

struct Walk<'k> {
    kernel: &'k Kernel,
    /// The first operation of a warpgroup.
    found: Option<(Word, Span)>,
}

impl Check for Walk<'_> {
    fn stmt(&mut self, stmt: &Stmt, facts: &Facts<'_>, _: &State) {
        if self.found.is_none()
            && let Some(word) = word_of_warpgroup(self.kernel, stmt, facts)
        {
            self.found = Some((Word::from(word), stmt.origin.span));
        }
    }
}
