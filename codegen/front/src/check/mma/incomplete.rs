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

use crate::check::dataflow::{self, Analysis};
use crate::check::unrolled::{self, State, Value};
use crate::diag::Sink;
use crate::diag::mistake::{self, Word};
use crate::ir::{Expr, Facts, For, Group, Kernel, LoadedType, Loop, LoopExit, Span, Stmt, StmtKind, Team};

/// Reports the first operation of a warpgroup that warps without a whole warpgroup reach.
pub(in crate::check) fn check(kernel: &Kernel, sink: &mut Sink) {
    let warpgroup = u64::from(WARPGROUP_THREADS);
    let block = kernel.launch.thread_count();
    let (whole, rest) = (block / warpgroup, block % warpgroup);
    if rest == 0 {
        return;
    }
    let mut walk = Walk { kernel, found: None };
    dataflow::run(&mut walk, &kernel.body, State::of_warpgroup(whole, &kernel.launch));
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

impl Analysis for Walk<'_> {
    type State = State;

    fn join(&mut self, one: State, other: State, _: &Stmt) -> State {
        one.join(other)
    }

    fn evaluate(&mut self, stmt: &Stmt, facts: &Facts<'_>, _: &State) {
        if self.found.is_none()
            && let Some(word) = word_of_warpgroup(self.kernel, stmt, facts)
        {
            self.found = Some((Word::from(word), stmt.origin.span));
        }
    }

    fn transfer(&mut self, stmt: &Stmt, state: &mut State) {
        if let StmtKind::Assign { local, index, value } = &stmt.kind {
            state.assign(*local, index, value);
        }
    }

    fn decide(&self, by: &Expr, state: &State) -> Value {
        state.of(by)
    }

    fn unrolls(&self, inner: &For) -> Option<Vec<i128>> {
        unrolled::iterations(inner)
    }

    fn begin(&mut self, inner: &For, iteration: i128, state: &mut State) {
        state.set(inner.variable, Value::int(iteration));
    }

    fn enter(&mut self, inner: Loop<'_>, state: &mut State) {
        inner.blocks().for_each(|block| state.forget(block));
        if let LoopExit::Counted(range) = inner.exit {
            state.set(range.variable, Value::Unknown);
        }
    }
}
