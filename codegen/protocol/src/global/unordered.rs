//! Blocks of which one reads what another writes, with nothing that could order the two.
//!
//! Two patterns of communication between blocks are recognised. In the first, a condition on the
//! block index sends one block to the write and another to the read. In the second, each block
//! writes a part and counts itself, and the last one reads all parts. In both, the write has to be
//! released, and the read has to follow an acquire, in scopes that include both threads (PTX ISA,
//! "Memory Consistency Model", "Release and Acquire Patterns"). If a kernel has no such access or
//! fence on one of the two sides, the error is certain, whatever else the kernel does.

use tma_front::diag::Diagnostic;
use tma_front::diag::mistake::{Lack, Unordered};
use tma_front::ir::{
    AtomicAccess, Cluster, Fence, Kernel, MemoryScope, Order, Span, Stmt, StmtKind, Sync, visit,
};

use super::is_same_element;
use super::located::{GlobalSummary, Guard, Located};
use super::numbers::ValueNumber;

/// Returns the first read of a kernel that nothing can order after the write of another block.
pub(super) fn first(
    kernel: &Kernel,
    GlobalSummary { accesses, orders, .. }: &GlobalSummary<'_>,
) -> Option<Diagnostic> {
    let plain = |one: &&Located<'_>| {
        !one.access.is_strong && !one.access.by_copy && !kernel.is_trusted(one.access.stmt.origin)
    };
    let reads = accesses.iter().filter(plain).filter(|one| !one.access.writes);
    let mut reads = reads;
    reads.find_map(|read| {
        let writes = accesses.iter().filter(plain).filter(|one| one.access.writes);
        let mut writes = writes.filter(|write| write.access.param == read.access.param);
        writes.find_map(|write| {
            // Both accesses occur in the same launches, by all threads that get there.
            let of_launch = |one: &Located<'_>| -> Vec<Guard> {
                let Located { guards, .. } = one;
                guards.iter().filter(|guard| guard.is_of_launch()).cloned().collect()
            };
            if of_launch(write) != of_launch(read) {
                return None;
            }
            let (lacks, flag) = between_arms(kernel, orders, write, read)
                .or_else(|| before_the_last(kernel, accesses, orders, write, read))?;
            let name = kernel.param(read.access.param).name.clone();
            let mistake = Unordered { name, written: write.access.stmt.origin.span, lacks, flag };
            Some(Diagnostic::new(mistake, read.access.stmt.origin.span))
        })
    })
}

/// A statement that orders memory, and the conditions that lead to it.
pub(super) struct Ordering<'k> {
    pub(super) stmt: &'k Stmt,
    pub(super) guards: Vec<Guard>,
}

impl Ordering<'_> {
    /// Returns the order that a statement establishes with other blocks: for accesses before it,
    /// for accesses after it, and whether only for some blocks.
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
        // Blocks of a cluster may synchronise here, and an mbarrier may belong to another block.
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

/// The sides of a statement that it orders.
#[derive(Clone, Copy, Debug, Default)]
struct Sides {
    releases: bool,
    acquires: bool,
    is_narrow: bool,
}

/// Whether a scope leaves out blocks that a condition on the block index may distinguish.
fn is_narrow(kernel: &Kernel, scope: MemoryScope) -> bool {
    match scope {
        MemoryScope::Block => true,
        MemoryScope::Cluster => kernel.launch.cluster == Cluster::None,
        MemoryScope::Device | MemoryScope::System => false,
    }
}

/// Returns the order that is missing between a write and a read that different blocks execute.
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
    // The elements are the same if the index is the same in all blocks and iterations, and if the
    // same threads make both accesses or the index is the same in all threads.
    let is_of_thread = write.indices.iter().any(|number| number.by_thread);
    let others = |all: &[Guard], own: &Guard| -> Vec<Guard> {
        let is_compared = |guard: &&Guard| *guard != own && (is_of_thread || !guard.is_of_threads());
        all.iter().filter(is_compared).cloned().collect()
    };
    if !is_same_element(write, read)
        || write.indices.iter().any(|number| number.by_block)
        || others(&write.guards, of_write) != others(&read.guards, of_read)
        || restricts_launches(kernel)
    {
        return None;
    }
    let leading_to = |arm: &Guard| -> Vec<_> {
        orders.iter().filter(|order| !order.guards.iter().any(|guard| guard.excludes(arm))).collect()
    };
    lacking(kernel, &leading_to(of_write), &leading_to(of_read))
}

/// Returns the order that is missing between the parts that blocks write and the block that reads
/// them because it has counted itself last.
fn before_the_last(
    kernel: &Kernel,
    accesses: &[Located<'_>],
    orders: &[Ordering<'_>],
    write: &Located<'_>,
    read: &Located<'_>,
) -> Option<(Lack, Option<Span>)> {
    let counted = |one: &&Located<'_>| {
        let StmtKind::Atomic(atomic) = &one.access.stmt.kind else { return false };
        matches!(atomic.access, AtomicAccess::Update { .. })
            && one
                .returned
                .is_some_and(|returned| read.guards.iter().any(|guard| guard.is_last_of(returned.id)))
    };
    let count = accesses.iter().find(counted)?;
    // The block goes through all blocks, and reads what each has written at its own index.
    let ids = |indices: &[ValueNumber]| indices.iter().map(|number| number.id).collect::<Vec<_>>();
    let is_part = write.indices.iter().any(|number| number.by_block)
        && ids(&read.index_at_own_block) == ids(&write.indices)
        && [write, read, count]
            .iter()
            .all(|one| one.guards.iter().all(|guard| !guard.condition.is_of_block_only()));
    let is_before = write.access.stmt.id < count.access.stmt.id && count.access.stmt.id < read.access.stmt.id;
    let is_everywhere = !count.indices.iter().any(|number| number.by_block);
    if !(is_part && is_before && is_everywhere) {
        return None;
    }
    let all: Vec<_> = orders.iter().collect();
    lacking(kernel, &all, &all)
}

/// Whether a kernel restricts its launches by assertions. Then two such blocks may not exist.
fn restricts_launches(kernel: &Kernel) -> bool {
    let mut any = false;
    visit::for_each_stmt(&kernel.body, &mut |stmt| any |= matches!(stmt.kind, StmtKind::Assert { .. }));
    any
}

/// Returns the order that is missing if no other statements order memory in the blocks that write
/// and read.
fn lacking(
    kernel: &Kernel,
    writing: &[&Ordering<'_>],
    reading: &[&Ordering<'_>],
) -> Option<(Lack, Option<Span>)> {
    let sides = |all: &[&Ordering<'_>]| -> Vec<(Sides, Span, bool)> {
        let is_access = |order: &Ordering<'_>| matches!(order.stmt.kind, StmtKind::Atomic(_));
        all.iter().map(|order| (order.sides(kernel), order.span(), is_access(order))).collect()
    };
    let (writing, reading) = (sides(writing), sides(reading));
    let releases = |all: &[(Sides, Span, bool)], is_wide: bool| {
        all.iter().any(|(sides, ..)| sides.releases && !(is_wide && sides.is_narrow))
    };
    let acquires = |all: &[(Sides, Span, bool)], is_wide: bool| {
        all.iter().any(|(sides, ..)| sides.acquires && !(is_wide && sides.is_narrow))
    };
    // Alternatively, the block that reads comes first, and the other one waits for it.
    if releases(&writing, true) && acquires(&reading, true)
        || releases(&reading, true) && acquires(&writing, true)
    {
        return None;
    }
    let first =
        |all: &[(Sides, Span, bool)]| all.iter().find(|(.., is_access)| *is_access).map(|(_, span, _)| *span);
    Some(match (releases(&writing, false), acquires(&reading, false)) {
        (false, false) => (Lack::Both, first(&reading)),
        (false, true) => (Lack::Release, first(&writing)),
        (true, false) => (Lack::Acquire, first(&reading)),
        (true, true) => {
            let side = if releases(&writing, true) { &reading } else { &writing };
            (Lack::Scope, side.iter().find(|(sides, ..)| sides.is_narrow).map(|(_, span, _)| *span))
        }
    })
}
