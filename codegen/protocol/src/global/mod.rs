//! Accesses to global memory, and conflicts of accesses by different blocks.
//!
//! `protocol` follows the threads of one block or cluster. Other blocks are only known to execute
//! the same kernel.
//!
//! # Rules
//!
//! * TMA0714: a read that nothing can order after the write of another block is an error
//!   (`unordered`).
//! * A read is ordered if its thread also writes the element: at an equal index, and under no
//!   condition that sends another thread or block to the write. Otherwise a `sync_grid` has to
//!   separate the two, or a barrier of the block if the index shows that the element belongs to the
//!   block. The counter that identifies the last block orders as well (`last_block`). Without any
//!   of these the kernel is undecided.
//! * A counter that hands out tickets is written only by the last block, or behind a `sync_grid`
//!   (`tickets`). Otherwise the kernel is undecided.
//! * Accesses to the memory of another rank are like those of blocks that nothing here orders: a
//!   kernel that writes it, and reads it or its own, is undecided (`peers`).
//! * A plain access beside a strong one leaves the kernel undecided, and so does a strong access
//!   whose scope leaves out blocks.
//!
//! Source: PTX ISA, "Memory Consistency Model", "Conflict and data-races".
//!
//! # Not checked
//!
//! * Whether several threads or blocks write the same element. Each element is assumed to have one
//!   writer, and the report says so. The kernel is undecided only where all threads of a block
//!   certainly write one element, with different values.
//! * Other orders between blocks, such as flags, locks and queues. Reads that need them are
//!   undecided.
//! * Copies of the same block or cluster, and the waits for them, which `protocol` follows.
//!
//! | module | contents |
//! | --- | --- |
//! | `access` | the accesses of a kernel |
//! | `numbers`, `operation` | value numbering, to recognise equal indices |
//! | `block_range` | ranges of values, to recognise parts that belong to a block |
//! | `located` | accesses with the numbers of their indices, and the conditions that lead to them |
//! | `stores` | stores of copies that may write one place several times |
//! | `tickets` | writes to counters that hand out tickets |
//! | `unseparated` | pairs of accesses that may execute with no rendezvous between them |
//! | `peers` | memory that several ranks of a team access |
//! | `last_block` | the block that has counted itself last, and the order that this establishes |
//! | `unordered` | blocks of which one certainly reads what another writes, without an order |

mod access;
mod block_range;
mod last_block;
mod located;
mod numbers;
mod operation;
mod peers;
mod stores;
mod tickets;
mod unordered;
mod unseparated;

use tma_front::diag::Diagnostic;
use tma_front::ir::{Kernel, MemoryScope, ParamId, StmtKind};
use tma_front::quick::QuickMap;

use self::located::{GlobalSummary, Guard, GuardKind, Located};
use self::numbers::ValueNumber;
use self::unseparated::{Level, UnseparatedPairs};
use crate::{Undecided, UndecidedReason};

pub(super) use self::access::{GlobalAccess, assumed_disjoint, reduction};
pub(super) use self::stores::with_repeated_stores;

/// Returns the reasons why accesses to global memory leave a kernel undecided.
///
/// # Errors
///
/// Returns a diagnostic for a read that nothing can order after the write of another block.
pub(super) fn judge(kernel: &Kernel) -> Result<Vec<Undecided>, Box<Diagnostic>> {
    let summary = located::all(kernel);
    match unordered::first(kernel, &summary) {
        Some(diagnostic) => Err(Box::new(diagnostic)),
        None => Ok(undecided_accesses(kernel, &summary)),
    }
}

fn undecided_accesses(kernel: &Kernel, summary: &GlobalSummary<'_>) -> Vec<Undecided> {
    let GlobalSummary { accesses: all, reads_block_index, .. } = summary;
    let mut by_param: QuickMap<ParamId, Vec<&Located<'_>>> = QuickMap::default();
    for one in all.iter().filter(|one| one.access.writes || one.access.is_strong) {
        by_param.entry(one.access.param).or_default().push(one);
    }
    let separation = Separation {
        grid: UnseparatedPairs::of(kernel, summary, Level::Grid),
        block: UnseparatedPairs::of(kernel, summary, Level::Block),
        threads: kernel.launch.thread_count(),
        reads_block_index: *reads_block_index,
    };
    let counts = last_block::counts(kernel, summary);
    let mut found = narrow(kernel, all);
    found.extend(peers::undecided(kernel, all));
    found.extend(tickets::reset_too_early(all, &counts, &separation));
    for one in all.iter().filter(|one| !one.access.is_strong && !kernel.is_trusted(one.access.stmt.origin)) {
        let span = one.access.stmt.origin.span;
        if separation.threads > 1 && by_all_threads(one) {
            found.push(Undecided { reason: UndecidedReason::SameBytes, span });
        }
        let others = by_param.get(&one.access.param).into_iter().flatten();
        let is_ordered = |with: &Located<'_>| {
            !one.access.writes && last_block::orders(&counts, &separation.block, with, one)
        };
        let reasons = others.filter_map(|with| separation.conflict(one, with).filter(|_| !is_ordered(with)));
        if let Some(reason) = reasons.min() {
            found.push(Undecided { reason, span });
        }
    }
    found
}

/// Returns the strong accesses to elements of all blocks whose scope leaves out some of the blocks.
fn narrow(kernel: &Kernel, all: &[Located<'_>]) -> Vec<Undecided> {
    let is_written = |param| all.iter().any(|one| one.access.writes && one.access.param == param);
    let is_narrow = |one: &&Located<'_>| {
        let StmtKind::Atomic(atomic) = &one.access.stmt.kind else { return false };
        atomic.scope < MemoryScope::Device
            && !one.indices.iter().any(|number| number.is_of_block(kernel.launch.thread_count()))
            && is_written(one.access.param)
    };
    let undecided = |one: &Located<'_>| Undecided {
        reason: UndecidedReason::OtherBlocks,
        span: one.access.stmt.origin.span,
    };
    let trusted = |one: &&Located<'_>| kernel.is_trusted(one.access.stmt.origin);
    all.iter().filter(is_narrow).filter(|one| !trusted(one)).map(undecided).collect()
}

/// Whether all threads of a block, or several that a condition on the thread index selects, write
/// different values to one element.
fn by_all_threads(one: &Located<'_>) -> bool {
    let is_of_block = |number: &ValueNumber| !number.by_thread;
    !one.indices.is_empty()
        && one.indices.iter().all(is_of_block)
        && one.guards.iter().all(|guard| is_of_block(&guard.condition) || guard.is_of_threads())
        && !one.is_of_one_thread
        && one.value.is_some_and(|value| value.by_thread)
}

/// The rendezvous of a kernel.
struct Separation {
    grid: UnseparatedPairs,
    block: UnseparatedPairs,
    threads: u64,
    /// Whether the kernel reads the block's index in the grid. Otherwise it may be for a single
    /// block.
    reads_block_index: bool,
}

impl Separation {
    /// Returns why a plain access and another one leave the kernel undecided.
    fn conflict(&self, one: &Located<'_>, with: &Located<'_>) -> Option<UndecidedReason> {
        let pair = (one.access.stmt.id, with.access.stmt.id);
        let writes = one.access.writes || with.access.writes;
        // Accesses by several threads at one statement are judged separately.
        if are_disjoint(one, with) || !writes || pair.0 == pair.1 {
            return None;
        }
        let is_mixed = with.access.is_strong;
        if !is_mixed && !one.access.writes && !is_same_element(one, with) && are_of_own_block(one, with) {
            let is_followed = one.access.by_copy || with.access.by_copy;
            return (!is_followed && self.block.may(pair.0, pair.1)).then_some(UndecidedReason::Global);
        }
        if is_mixed || !one.access.writes && !is_same_element(one, with) {
            return self.grid.may(pair.0, pair.1).then_some(UndecidedReason::OtherBlocks);
        }
        if !is_same_element(one, with) {
            return None;
        }
        // Copies of a block, and waits for them, are followed by `protocol`.
        if one.access.by_copy || with.access.by_copy {
            let is_split = one.indices.iter().any(|number| number.by_block) || !self.reads_block_index;
            return (!is_split && self.grid.may(pair.0, pair.1)).then_some(UndecidedReason::OtherBlocks);
        }
        if self.is_by_the_same(one, with) {
            return None;
        }
        // The element belongs to another thread, of this block or of any.
        let (among, reason) = match one.indices.iter().any(|number| number.is_of_block(self.threads)) {
            true => (&self.block, UndecidedReason::Global),
            false => (&self.grid, UndecidedReason::OtherBlocks),
        };
        among.may(pair.0, pair.1).then_some(reason)
    }

    /// Whether a thread that makes one of the accesses to an element also makes the other, which
    /// writes it. Each element is assumed to have one writer.
    fn is_by_the_same(&self, one: &Located<'_>, with: &Located<'_>) -> bool {
        let any = |is_so: &dyn Fn(&ValueNumber) -> bool| one.indices.iter().any(is_so);
        let [by_thread, by_block, by_iteration] = [
            any(&|number| number.by_thread),
            any(&|number| number.by_block),
            any(&|number| number.by_iteration),
        ];
        if one.access.writes && by_thread {
            return true;
        }
        // The index identifies the thread in the grid, or in any block.
        let is_of_grid = !by_iteration && any(&|number| number.is_of_grid(self.threads));
        let is_of_thread = !by_iteration && any(&|number| number.is_of_thread());
        // In each iteration of a loop, the condition may hold for another thread.
        let varies = |guard: &Guard| {
            guard.kind == GuardKind::Arm && guard.condition.by_thread && guard.condition.by_iteration
        };
        let also_writes = with.guards.iter().all(|guard| {
            one.guards.contains(guard) && (one.is_of_one_thread || !varies(guard))
                || is_of_thread && guard.is_of_threads()
        });
        // At an index that all threads of a block share, or all blocks, one of them makes the
        // access.
        let in_one_block = |located: &Located<'_>| {
            located.guards.iter().any(|guard| guard.condition.by_block) || !self.reads_block_index
        };
        let is_one_thread = by_thread || self.threads == 1 || one.is_of_one_thread && with.is_of_one_thread;
        let is_one_block = by_thread || by_block || in_one_block(one) && in_one_block(with);
        is_of_grid || also_writes && is_one_thread && is_one_block
    }
}

/// Whether two accesses certainly touch different elements, whichever threads make them.
fn are_disjoint(one: &Located<'_>, with: &Located<'_>) -> bool {
    let range = |located: &Located<'_>| {
        let [ValueNumber { int: Some(first), .. }] = located.indices.as_slice() else { return None };
        Some((*first, *first + i128::from(located.access.len?)))
    };
    range(one).zip(range(with)).is_some_and(|((a, end), (b, other_end))| end <= b || other_end <= a)
}

/// Whether two accesses lie in a part of memory that belongs to the block. No other block accesses
/// anything in it.
fn are_of_own_block(one: &Located<'_>, with: &Located<'_>) -> bool {
    let part = |located: &Located<'_>| {
        let [ValueNumber { block_range: Some(span), .. }] = located.indices.as_slice() else { return None };
        Some((*span, located.access.len?))
    };
    part(one).zip(part(with)).is_some_and(|((a, len), (b, other_len))| a.is_of_own_block(len, b, other_len))
}

fn is_same_element(one: &Located<'_>, with: &Located<'_>) -> bool {
    let ids = |located: &Located<'_>| located.indices.iter().map(|number| number.id).collect::<Vec<_>>();
    let is_as_long = one.access.len.is_none_or(|len| with.access.len.is_none_or(|other| len <= other));
    !one.indices.is_empty() && ids(one) == ids(with) && is_as_long
}
