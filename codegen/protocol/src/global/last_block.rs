//! Recognition of the last block: each block adds 1 to a counter, and the one that gets the number
//! of blocks in the grid minus 1 reads what all of them wrote.
//!
//! Each block writes, and one of its threads adds 1 to the counter, with release and acquire. The
//! last addition comes after those of all other blocks, and so do the threads that learn its
//! result. The additions are a chain of read-modify-writes, each of which acquires what those
//! before it released (PTX ISA, "Memory Consistency Model", "Release and Acquire Patterns",
//! "Causality order"). The counter is assumed to be zero when the kernel starts.

use tma_front::ir::{
    AtomicAccess, AtomicMemory, AtomicOp, Block, Fence, Kernel, MemoryScope, Order, ParamId, Stmt, StmtId,
    StmtKind, visit,
};

use super::are_disjoint;
use super::located::{GlobalSummary, Guard, Located};
use super::unseparated::UnseparatedPairs;

/// A statement by which each block counts itself once.
pub(super) struct Count<'a, 'k> {
    located: &'a Located<'k>,
    /// The statement at which its thread releases what it knows, and the one at which it has
    /// acquired what others released: fences around the count, or the count itself.
    release: StmtId,
    acquire: StmtId,
}

/// Whether the `write` of every block comes before `read`, which only the last block executes.
pub(super) fn orders(
    counts: &[Count<'_, '_>],
    unseparated: &UnseparatedPairs,
    write: &Located<'_>,
    read: &Located<'_>,
) -> bool {
    let plain = |one: &Located<'_>| !one.access.is_strong && !one.access.by_copy;
    plain(write) && plain(read) && counts.iter().any(|count| count.separates(unseparated, write, read))
}

impl Count<'_, '_> {
    /// Whether `earlier` of every block comes before `later`, which only the last block executes.
    /// `earlier` may be the count itself.
    pub(super) fn separates(
        &self,
        unseparated: &UnseparatedPairs,
        earlier: &Located<'_>,
        later: &Located<'_>,
    ) -> bool {
        let [of_earlier, of_count, of_later] = [earlier, self.located, later].map(|one| one.access.stmt.id);
        let is_by_the_same = earlier.guards.starts_with(&self.located.guards);
        let is_released =
            of_earlier < self.release && (is_by_the_same || !unseparated.may(of_earlier, of_count));
        is_of_the_last(later, self.located)
            && (of_earlier == of_count || is_released)
            && self.acquire < of_later
    }
}

/// Returns the counts of a kernel that each block executes once. Only the last block may access
/// their elements otherwise.
pub(super) fn counts<'a, 'k>(kernel: &'k Kernel, summary: &'a GlobalSummary<'k>) -> Vec<Count<'a, 'k>> {
    if !summary.blocks_in_line {
        return vec![];
    }
    let of_all = summary.accesses.iter().filter(|one| {
        let is_once = one.is_of_one_thread && one.guards.iter().all(Guard::is_of_threads);
        is_once && matches!(one.indices.as_slice(), [index] if index.int.is_some())
    });
    let of_all = of_all.filter(|one| {
        let others = summary.accesses.iter().filter(|other| other.access.stmt.id != one.access.stmt.id);
        let mut others =
            others.filter(|other| other.access.param == one.access.param && !are_disjoint(other, one));
        others.all(|other| is_of_the_last(other, one)) && !counts_grid(kernel, summary, one.access.param)
    });
    let of_all = of_all.filter_map(|located| {
        let (release, acquire) = ordered(kernel, located.access.stmt)?;
        Some(Count { located, release, acquire })
    });
    of_all.collect()
}

/// Whether only the block that such a count has identified as the last makes an access.
fn is_of_the_last(one: &Located<'_>, count: &Located<'_>) -> bool {
    let is_last = |id| one.guards.iter().any(|guard| guard.follows_all_others(id));
    count.returned.is_some_and(|returned| is_last(returned.id))
}

/// Whether a `sync_grid` counts with a parameter.
fn counts_grid(kernel: &Kernel, summary: &GlobalSummary<'_>, param: ParamId) -> bool {
    let counts = |stmt: &Stmt| matches!(stmt.kind, StmtKind::SyncGrid { counter } if kernel.holder_of(counter) == param);
    summary.orders.iter().any(|order| counts(order.stmt))
}

/// Returns the statements at which an addition of 1 releases and has acquired, if it does so for
/// all blocks.
fn ordered(kernel: &Kernel, stmt: &Stmt) -> Option<(StmtId, StmtId)> {
    let StmtKind::Atomic(atomic) = &stmt.kind else { return None };
    let AtomicAccess::Update { op: AtomicOp::Add, value, .. } = &atomic.access else { return None };
    let is_wide = match atomic.scope {
        MemoryScope::Block | MemoryScope::Cluster => false,
        MemoryScope::Device | MemoryScope::System => true,
    };
    if !is_wide || value.as_int() != Some(1) || !matches!(atomic.memory, AtomicMemory::Global(_)) {
        return None;
    }
    match atomic.order {
        Order::AcqRel => Some((stmt.id, stmt.id)),
        Order::Relaxed => fences_around(&kernel.body, stmt.id),
        Order::Weak | Order::Acquire | Order::Release => None,
    }
}

/// Returns the fences before and after a statement, in its own block and without an observable
/// statement in between.
fn fences_around(block: &Block, of: StmtId) -> Option<(StmtId, StmtId)> {
    let Some(at) = block.stmts.iter().position(|stmt| stmt.id == of) else {
        let inner = block.stmts.iter().flat_map(|stmt| visit::blocks(&stmt.kind));
        return inner.into_iter().find_map(|block| fences_around(block, of));
    };
    let is_fence = |stmt: &&Stmt| matches!(stmt.kind, StmtKind::Fence(Fence::Memory));
    let (before, after) = (&block.stmts[..at], &block.stmts[at + 1..]);
    let before = before.iter().rev().take_while(|stmt| is_unobservable(stmt)).find(is_fence)?;
    let after = after.iter().take_while(|stmt| is_unobservable(stmt)).find(is_fence)?;
    Some((before.id, after.id))
}

/// Whether no other thread can learn from a statement how far this thread has got. A fence alone
/// only orders.
fn is_unobservable(stmt: &Stmt) -> bool {
    matches!(
        stmt.kind,
        StmtKind::Assign { .. }
            | StmtKind::SharedGet { .. }
            | StmtKind::SharedSet { .. }
            | StmtKind::GlobalGet { .. }
            | StmtKind::GlobalSet { .. }
            | StmtKind::Fence(Fence::Memory)
    )
}
