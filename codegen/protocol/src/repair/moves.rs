//! Moves of existing synchronisation steps.

use tma_front::diag::mistake::{Destination, Movable, Repair, SourceLocation};
use tma_front::ir::{BarrierOp, Block, Kernel, Stmt, StmtId, StmtKind, visit};

use super::candidates::Candidate;
use super::edit::{Edit, Gap, copies};
use super::openings::is_alone;

/// Returns the candidates that move a synchronisation step one statement earlier or later, or after
/// the statement that contains it. Steps that take part in the violation come first.
pub(super) fn moves(kernel: &Kernel, parties: &[StmtId]) -> Vec<Candidate> {
    let mut all = vec![];
    moves_in(kernel, &kernel.body, None, &mut all);
    all.sort_by_key(|(stmt, _)| !parties.contains(stmt));
    all.into_iter().map(|(_, candidate)| candidate).collect()
}

fn moves_in(kernel: &Kernel, block: &Block, around: Option<&Stmt>, all: &mut Vec<(StmtId, Candidate)>) {
    // Parts of a pipeline's methods are not written in the source.
    let is_written = |stmt: &&Stmt| kernel.pipeline_call(stmt.origin).is_none();
    for (index, stmt) in block.stmts.iter().enumerate() {
        // If a function is called more than once, one of its copies cannot be moved alone in the
        // source.
        if let Some(step) = movable(&stmt.kind).filter(|_| is_written(&stmt))
            && copies(&kernel.body, stmt.id).len() == 1
        {
            // Moving a statement out of a function would put it into the caller.
            let around = around.filter(|around| around.origin.call == stmt.origin.call);
            let neighbours = [index.checked_sub(1), Some(index + 1)];
            let [before, after] =
                neighbours.map(|at| at.and_then(|at| block.stmts.get(at)).filter(is_written));
            let to = [
                (around, Destination::AfterBlock),
                (before, Destination::Earlier),
                (after, Destination::Later),
            ];
            for (other, to) in to {
                all.extend(other.map(|other| (stmt.id, moved(kernel, stmt, step, other, to))));
            }
        }
        for inner in visit::blocks(&stmt.kind) {
            moves_in(kernel, inner, Some(stmt), all);
        }
    }
}

/// Returns the candidate that moves a step before or after another statement. The repair refers to
/// their lines if these contain nothing else.
fn moved(kernel: &Kernel, stmt: &Stmt, step: Movable, other: &Stmt, to: Destination) -> Candidate {
    let (from, at) = (stmt.origin.span, other.origin.span);
    let (gap, location) = match to {
        Destination::Earlier => (Gap::Before(other.id), SourceLocation::Before(at)),
        Destination::Later | Destination::AfterBlock => (Gap::After(other.id), SourceLocation::After(at)),
    };
    // Lines that are moved next to themselves say nothing.
    let differ = from.first_line() != at.first_line();
    let is_whole = differ && is_alone(kernel, stmt) && is_alone(kernel, other);
    let repair =
        if is_whole { Repair::Move { from, to: location } } else { Repair::MoveOne { step, from, to } };
    Candidate { edit: Edit::Move(stmt.id, gap), repair }
}

/// Returns the kind of a statement that orders others.
fn movable(kind: &StmtKind) -> Option<Movable> {
    if let StmtKind::Fence(fence) = kind {
        Some(Movable::Fence(*fence))
    } else if let StmtKind::Sync(sync) = kind {
        Some(Movable::Barrier(*sync))
    } else if let StmtKind::BulkCommitGroup = kind {
        Some(Movable::CommitGroup)
    } else if let StmtKind::BulkWaitGroup { read_only, .. } = kind {
        Some(Movable::WaitForGroup { read_only: *read_only })
    } else if let StmtKind::Barrier { op, .. } = kind {
        match op {
            BarrierOp::Wait { .. } => Some(Movable::Wait),
            BarrierOp::Arrive => Some(Movable::Arrive),
            BarrierOp::ArriveExpectTx { .. } => Some(Movable::AnnounceAndArrive),
            BarrierOp::Init { .. }
            | BarrierOp::Invalidate
            | BarrierOp::ArriveMany { .. }
            | BarrierOp::ArriveToken { .. }
            | BarrierOp::ArriveDrop
            | BarrierOp::ExpectTx { .. }
            | BarrierOp::WaitToken { .. }
            | BarrierOp::TestWait { .. }
            | BarrierOp::TryWait { .. }
            | BarrierOp::TryWaitFor { .. } => None,
        }
    } else {
        None
    }
}
