//! Blocks of which one reads what another writes, with nothing that could order the two.
//!
//! Two ways in which blocks communicate are known here. In the first a condition on the block's place
//! sends one to the write and the other to the read. In the second each block writes a part, counts
//! itself, and the last one reads all parts. In both the write must be released, and the read come
//! after an acquire, in scopes that include both threads (PTX ISA, "Memory Consistency Model",
//! "Release and Acquire Patterns"). Where a kernel has no such access or fence on either side, that is
//! certain, whatever the rest of it does.

use super::located::{Guard, GuardKind, Kept, Located};
use super::{are_apart, is_same_place, located};
use crate::diag::Diagnostic;
use crate::diag::mistake::{Lack, Unordered};
use crate::ir::{AtomicAccess, Cluster, Fence, Kernel, MemoryScope, Order, Span, Stmt, StmtKind, Sync};

/// The first read of a kernel that nothing can order behind another block's write.
pub(in crate::check) fn unordered(kernel: &Kernel) -> Option<Diagnostic> {
    let Kept { accesses, orders } = located::all(kernel);
    let plain = |one: &&Located<'_>| {
        !one.touch.is_strong && !one.touch.by_copy && !kernel.is_trusted(one.touch.stmt.origin)
    };
    let reads = accesses.iter().filter(plain).filter(|one| !one.touch.writes);
    let mut reads = reads;
    reads.find_map(|read| {
        let writes = accesses.iter().filter(plain).filter(|one| one.touch.writes);
        let mut writes = writes.filter(|write| write.touch.param == read.touch.param);
        writes.find_map(|write| {
            // Both are made in the same launches, and by all who come there.
            let of_launch = |one: &Located<'_>| -> Vec<Guard> {
                let Located { guards, .. } = one;
                guards.iter().filter(|guard| guard.is_of_launch()).cloned().collect()
            };
            if of_launch(write) != of_launch(read) {
                return None;
            }
            let (lacks, flag) = between_arms(kernel, &orders, write, read)
                .or_else(|| before_the_last(kernel, (&accesses, &orders), write, read))?;
            let name = kernel.param(read.touch.param).name.clone();
            let mistake = Unordered { name, written: write.touch.stmt.origin.span, lacks, flag };
            Some(Diagnostic::new(mistake, read.touch.stmt.origin.span))
        })
    })
}

/// A statement that orders memory, and the conditions that lead to it.
pub(super) struct Ordering<'k> {
    pub(super) stmt: &'k Stmt,
    pub(super) guards: Vec<Guard>,
}

impl Ordering<'_> {
    /// What a statement orders for other blocks: what came before it, what comes after it, and whether
    /// only for some of them.
    fn sides(&self, kernel: &Kernel) -> Sides {
        if let StmtKind::Atomic(atomic) = &self.stmt.kind {
            return Sides {
                releases: matches!(atomic.order, Order::Release | Order::AcqRel),
                acquires: matches!(atomic.order, Order::Acquire | Order::AcqRel),
                is_narrow: is_narrow(kernel, atomic.scope),
            };
        }
        let is_of_device = matches!(
            self.stmt.kind,
            StmtKind::Fence(Fence::Memory) | StmtKind::SyncGrid { .. } | StmtKind::GridDependency(_)
        );
        // Blocks of a cluster may meet, and an mbarrier may be another block's.
        let is_of_cluster = matches!(
            self.stmt.kind,
            StmtKind::Sync(Sync::Cluster | Sync::ClusterArrive | Sync::ClusterWait)
                | StmtKind::Barrier { .. }
        );
        if is_of_device || is_of_cluster && kernel.launch.cluster != Cluster::None {
            Sides { releases: true, acquires: true, is_narrow: false }
        } else {
            Sides::default()
        }
    }

    fn span(&self) -> Span {
        self.stmt.origin.span
    }
}

/// Which sides a statement orders.
#[derive(Clone, Copy, Debug, Default)]
struct Sides {
    releases: bool,
    acquires: bool,
    is_narrow: bool,
}

/// Whether a scope leaves out blocks that the condition of a place may tell apart.
fn is_narrow(kernel: &Kernel, scope: MemoryScope) -> bool {
    match scope {
        MemoryScope::Block => true,
        MemoryScope::Cluster => kernel.launch.cluster == Cluster::None,
        MemoryScope::Device | MemoryScope::System => false,
    }
}

/// What is missing between a write and a read that different blocks come to.
fn between_arms(
    kernel: &Kernel,
    orders: &[Ordering<'_>],
    write: &Located<'_>,
    read: &Located<'_>,
) -> Option<(Lack, Option<Span>)> {
    let (of_write, of_read) = write.guards.iter().find_map(|guard| {
        let other = read.guards.iter().find(|other| guard.excludes(other))?;
        guard.condition.is_of_blocks_alone().then_some((guard, other))
    })?;
    // The same elements: at a place that is the same in all blocks, by the same threads or by all.
    let others = |all: &[Guard], own: &Guard| -> Vec<Guard> {
        all.iter().filter(|guard| *guard != own && guard.kind != GuardKind::Loop).cloned().collect()
    };
    let is_of_thread = write.place.iter().any(|number| number.by_thread);
    let are_alike = others(&write.guards, of_write) == others(&read.guards, of_read);
    if !is_same_place(write, read)
        || write.place.iter().any(|number| number.by_block)
        || is_of_thread && !are_alike
    {
        return None;
    }
    let on_the_way = |arm: &Guard| -> Vec<_> {
        orders.iter().filter(|order| !order.guards.iter().any(|guard| guard.excludes(arm))).collect()
    };
    lacking(kernel, &on_the_way(of_write), &on_the_way(of_read))
}

/// What is missing between the parts that blocks write, and the block that reads them because it has
/// counted itself last.
fn before_the_last(
    kernel: &Kernel,
    (accesses, orders): (&[Located<'_>], &[Ordering<'_>]),
    write: &Located<'_>,
    read: &Located<'_>,
) -> Option<(Lack, Option<Span>)> {
    let counted = |one: &&Located<'_>| {
        let StmtKind::Atomic(atomic) = &one.touch.stmt.kind else { return false };
        matches!(atomic.access, AtomicAccess::Update { .. })
            && one
                .returned
                .is_some_and(|returned| read.guards.iter().any(|guard| guard.is_last_of(returned.id)))
    };
    let count = accesses.iter().find(counted)?;
    let is_part = write.place.iter().any(|number| number.by_block)
        && read.place.iter().all(|number| !number.by_block)
        && read.place.iter().any(|number| number.by_turn)
        && !are_apart(write, read);
    let is_before = write.touch.stmt.id < count.touch.stmt.id && count.touch.stmt.id < read.touch.stmt.id;
    let is_everywhere = !count.place.iter().any(|number| number.by_block);
    if !(is_part && is_before && is_everywhere) {
        return None;
    }
    let all: Vec<_> = orders.iter().collect();
    lacking(kernel, &all, &all)
}

/// What is missing if these are all that orders memory where one block writes, and where another reads.
fn lacking(
    kernel: &Kernel,
    writing: &[&Ordering<'_>],
    reading: &[&Ordering<'_>],
) -> Option<(Lack, Option<Span>)> {
    let releases = |order: &&&Ordering<'_>| order.sides(kernel).releases;
    let acquires = |order: &&&Ordering<'_>| order.sides(kernel).acquires;
    let is_wide = |order: &&&Ordering<'_>| !order.sides(kernel).is_narrow;
    let is_narrow = |order: &&&Ordering<'_>| order.sides(kernel).is_narrow;
    let is_access = |order: &&&Ordering<'_>| matches!(order.stmt.kind, StmtKind::Atomic(_));
    let first = |all: &[&Ordering<'_>]| all.iter().find(is_access).map(|order| order.span());
    match (writing.iter().any(|order| releases(&order)), reading.iter().any(|order| acquires(&order))) {
        (false, false) => Some((Lack::Both, first(reading))),
        (false, true) => Some((Lack::Release, first(writing))),
        (true, false) => Some((Lack::Acquire, first(reading))),
        (true, true) => {
            let is_released = writing.iter().filter(is_wide).any(|order| releases(&order));
            let is_acquired = reading.iter().filter(is_wide).any(|order| acquires(&order));
            let side = if is_released { reading } else { writing };
            let narrow = side.iter().find(is_narrow).map(|order| order.span());
            (!is_released || !is_acquired).then_some((Lack::Scope, narrow))
        }
    }
}
