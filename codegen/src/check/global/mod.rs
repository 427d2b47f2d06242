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
//! | `touch` | the accesses of a kernel |
//! | `numbers`, `operation` | value numbering, to recognise equal indices |
//! | `span` | ranges of values, to recognise parts that belong to a block |
//! | `located` | accesses with the numbers of their indices, and the conditions that lead to them |
//! | `together` | pairs of accesses that may execute with no rendezvous between them |
//! | `last_block` | the block that has counted itself last, and the order that this establishes |
//! | `unordered` | blocks of which one certainly reads what another writes, without an order |

mod last_block;
mod located;
mod numbers;
mod operation;
mod span;
mod together;
mod touch;
mod unordered;

use self::located::{Guard, GuardKind, Kept, Located};
use self::numbers::Number;
use self::together::{Level, Together};
pub(super) use self::touch::{Touch, reduction, taken_apart};
use crate::check::protocol::{Doubt, Why};
use crate::diag::Diagnostic;
use crate::ir::{Kernel, MemoryScope, ParamId, StmtKind};
use crate::quick::QuickMap;

/// Returns the reasons why accesses to global memory leave a kernel undecided.
///
/// # Errors
///
/// Returns a diagnostic for a read that nothing can order after the write of another block.
pub(super) fn judge(kernel: &Kernel) -> Result<Vec<Doubt>, Box<Diagnostic>> {
    let kept = located::all(kernel);
    match unordered::first(kernel, &kept) {
        Some(diagnostic) => Err(Box::new(diagnostic)),
        None => Ok(doubts(kernel, &kept)),
    }
}

fn doubts(kernel: &Kernel, kept: &Kept<'_>) -> Vec<Doubt> {
    let Kept { accesses: all, asks_for_blocks, .. } = kept;
    let mut by_param: QuickMap<ParamId, Vec<&Located<'_>>> = QuickMap::default();
    for one in all.iter().filter(|one| one.touch.writes || one.touch.is_strong) {
        by_param.entry(one.touch.param).or_default().push(one);
    }
    let meetings = Meetings {
        grid: Together::of(kernel, kept, Level::Grid),
        block: Together::of(kernel, kept, Level::Block),
        threads: kernel.launch.thread_count(),
        asks_for_blocks: *asks_for_blocks,
    };
    let counts = last_block::counts(kernel, kept);
    let mut found = narrow(kernel, all);
    for one in all.iter().filter(|one| !one.touch.is_strong && !kernel.is_trusted(one.touch.stmt.origin)) {
        let span = one.touch.stmt.origin.span;
        if meetings.threads > 1 && by_all_threads(one) {
            found.push(Doubt { why: Why::Together, span });
        }
        let others = by_param.get(&one.touch.param).into_iter().flatten();
        let is_ordered =
            |with: &Located<'_>| !one.touch.writes && last_block::orders(&counts, &meetings.block, with, one);
        let whys = others.filter_map(|with| meetings.conflict(one, with).filter(|_| !is_ordered(with)));
        if let Some(why) = whys.min() {
            found.push(Doubt { why, span });
        }
    }
    found
}

/// Returns the strong accesses to elements of all blocks whose scope leaves out some of the blocks.
fn narrow(kernel: &Kernel, all: &[Located<'_>]) -> Vec<Doubt> {
    let is_written = |param| all.iter().any(|one| one.touch.writes && one.touch.param == param);
    let is_narrow = |one: &&Located<'_>| {
        let StmtKind::Atomic(atomic) = &one.touch.stmt.kind else { return false };
        atomic.scope < MemoryScope::Device
            && !one.place.iter().any(|number| number.is_of_block(kernel.launch.thread_count()))
            && is_written(one.touch.param)
    };
    let doubt = |one: &Located<'_>| Doubt { why: Why::Blocks, span: one.touch.stmt.origin.span };
    let trusted = |one: &&Located<'_>| kernel.is_trusted(one.touch.stmt.origin);
    all.iter().filter(is_narrow).filter(|one| !trusted(one)).map(doubt).collect()
}

/// Whether all threads of a block, or several that a condition on the thread index selects, write
/// different values to one element.
fn by_all_threads(one: &Located<'_>) -> bool {
    let is_of_block = |number: &Number| !number.by_thread;
    !one.place.is_empty()
        && one.place.iter().all(is_of_block)
        && one.guards.iter().all(|guard| is_of_block(&guard.condition) || guard.is_of_threads())
        && !one.is_of_one_thread
        && one.value.is_some_and(|value| value.by_thread)
}

/// The rendezvous of a kernel.
struct Meetings {
    grid: Together,
    block: Together,
    threads: u64,
    /// Whether the kernel reads the block's index in the grid. Otherwise it may be for a single
    /// block.
    asks_for_blocks: bool,
}

impl Meetings {
    /// Returns why a plain access and another one leave the kernel undecided.
    fn conflict(&self, one: &Located<'_>, with: &Located<'_>) -> Option<Why> {
        let pair = (one.touch.stmt.id, with.touch.stmt.id);
        let writes = one.touch.writes || with.touch.writes;
        // Accesses by several threads at one statement are judged separately.
        if are_apart(one, with) || !writes || pair.0 == pair.1 {
            return None;
        }
        let is_mixed = with.touch.is_strong;
        if !is_mixed && !one.touch.writes && !is_same_place(one, with) && are_of_own_block(one, with) {
            let is_followed = one.touch.by_copy || with.touch.by_copy;
            return (!is_followed && self.block.may(pair.0, pair.1)).then_some(Why::Global);
        }
        if is_mixed || !one.touch.writes && !is_same_place(one, with) {
            return self.grid.may(pair.0, pair.1).then_some(Why::Blocks);
        }
        if !is_same_place(one, with) {
            return None;
        }
        // Copies of a block, and waits for them, are followed by `protocol`.
        if one.touch.by_copy || with.touch.by_copy {
            let is_told = one.place.iter().any(|number| number.by_block) || !self.asks_for_blocks;
            return (!is_told && self.grid.may(pair.0, pair.1)).then_some(Why::Blocks);
        }
        if self.is_by_the_same(one, with) {
            return None;
        }
        // The element belongs to another thread, of this block or of any.
        let (among, why) = match one.place.iter().any(|number| number.is_of_block(self.threads)) {
            true => (&self.block, Why::Global),
            false => (&self.grid, Why::Blocks),
        };
        among.may(pair.0, pair.1).then_some(why)
    }

    /// Whether a thread that makes one of the accesses to an element also makes the other, which
    /// writes it. Each element is assumed to have one writer.
    fn is_by_the_same(&self, one: &Located<'_>, with: &Located<'_>) -> bool {
        let any = |is_so: &dyn Fn(&Number) -> bool| one.place.iter().any(is_so);
        let [by_thread, by_block, by_turn] =
            [any(&|number| number.by_thread), any(&|number| number.by_block), any(&|number| number.by_turn)];
        if one.touch.writes && by_thread {
            return true;
        }
        // The index identifies the thread in the grid, or in any block.
        let is_of_grid = !by_turn && any(&|number| number.is_of_grid(self.threads));
        let is_of_thread = !by_turn && any(&|number| number.is_of_thread());
        // In each iteration of a loop, the condition may hold for another thread.
        let varies = |guard: &Guard| {
            guard.kind == GuardKind::Arm && guard.condition.by_thread && guard.condition.by_turn
        };
        let also_writes = with.guards.iter().all(|guard| {
            one.guards.contains(guard) && (one.is_of_one_thread || !varies(guard))
                || is_of_thread && guard.is_of_threads()
        });
        // At an index that all threads of a block share, or all blocks, one of them makes the
        // access.
        let in_one_block = |located: &Located<'_>| {
            located.guards.iter().any(|guard| guard.condition.by_block) || !self.asks_for_blocks
        };
        let is_one_thread = by_thread || self.threads == 1 || one.is_of_one_thread && with.is_of_one_thread;
        let is_one_block = by_thread || by_block || in_one_block(one) && in_one_block(with);
        is_of_grid || also_writes && is_one_thread && is_one_block
    }
}

/// Whether two accesses certainly touch different elements, whichever threads make them.
fn are_apart(one: &Located<'_>, with: &Located<'_>) -> bool {
    let range = |located: &Located<'_>| {
        let [Number { int: Some(first), .. }] = located.place.as_slice() else { return None };
        Some((*first, *first + i128::from(located.touch.len?)))
    };
    range(one).zip(range(with)).is_some_and(|((a, end), (b, other_end))| end <= b || other_end <= a)
}

/// Whether two accesses lie in a part of memory that belongs to the block. No other block accesses
/// anything in it.
fn are_of_own_block(one: &Located<'_>, with: &Located<'_>) -> bool {
    let part = |located: &Located<'_>| {
        let [Number { span: Some(span), .. }] = located.place.as_slice() else { return None };
        Some((*span, located.touch.len?))
    };
    part(one).zip(part(with)).is_some_and(|((a, len), (b, other_len))| a.is_of_own_block(len, b, other_len))
}

fn is_same_place(one: &Located<'_>, with: &Located<'_>) -> bool {
    let ids = |located: &Located<'_>| located.place.iter().map(|number| number.id).collect::<Vec<_>>();
    let is_as_long = one.touch.len.is_none_or(|len| with.touch.len.is_none_or(|other| len <= other));
    !one.place.is_empty() && ids(one) == ids(with) && is_as_long
}
