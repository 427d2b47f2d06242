//! Tickets: numbers that additions to a counter hand out, each of them once. A write to the counter
//! hands some of them out again, unless no thread takes a ticket after it.
//!
//! Work that a ticket selects is assumed to belong to the thread that has it. A kernel that writes
//! the counter is therefore undecided, unless the block that has counted itself last does it, or
//! `sync_grid` separates the write from all tickets.

use tma_front::ir::{AtomicAccess, AtomicOp, StmtKind};

use super::last_block::Count;
use super::located::Located;
use super::{Separation, Undecided, UndecidedReason, are_disjoint};

/// Returns the writes to counters of tickets that other blocks may still take.
pub(super) fn reset_too_early(
    all: &[Located<'_>],
    counts: &[Count<'_, '_>],
    separation: &Separation,
) -> Vec<Undecided> {
    let tickets: Vec<_> = all.iter().filter(|one| one.returned.is_some() && adds(one)).collect();
    let is_early = |ticket: &Located<'_>, write: &Located<'_>| {
        ticket.access.param == write.access.param
            && !are_disjoint(ticket, write)
            && separation.grid.may(ticket.access.stmt.id, write.access.stmt.id)
            && !counts.iter().any(|count| count.separates(&separation.block, ticket, write))
    };
    let writes = all.iter().filter(|one| one.access.writes && !adds(one));
    let early = writes.filter(|write| tickets.iter().any(|ticket| is_early(ticket, write)));
    let undecided = |write: &Located<'_>| Undecided {
        reason: UndecidedReason::OtherBlocks,
        span: write.access.stmt.origin.span,
    };
    early.map(undecided).collect()
}

/// Whether an access adds to an element.
fn adds(one: &Located<'_>) -> bool {
    let StmtKind::Atomic(atomic) = &one.access.stmt.kind else { return false };
    matches!(atomic.access, AtomicAccess::Update { op: AtomicOp::Add, .. })
}
