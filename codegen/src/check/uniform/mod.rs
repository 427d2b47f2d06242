//! Operations of a whole warp or warpgroup: all of its threads must reach them, with the same
//! arguments.
//!
//! The walk tracks among which threads values are the same, and which conditions lead to a
//! statement. A value that is assigned after threads have diverged differs afterwards. Threads that
//! diverge in a branch or loop reconverge after it; those that jump elsewhere reconverge there. Not
//! checked: memory is assumed to be the same for all threads that read one location. Values that
//! differ because they are read before all are written are races, which the simulator finds.

mod facts;

use std::collections::hash_map::Entry;

use crate::diag::Sink;
use crate::diag::mistake::{Difference, Warpgroup, Word};
use crate::ir::{
    BarrierOp, Block, Expr, For, Kernel, Label, LocalId, MapEdit, RowOp, Span, Stmt, StmtId, StmtKind, Sync,
    Team, visit,
};
use crate::quick::{QuickMap, QuickSet};
use facts::{Fact, Facts, Level};

/// Reports operations of a warp or warpgroup whose threads have diverged, or whose arguments
/// differ.
pub(super) fn check(kernel: &Kernel, sink: &mut Sink) {
    let mut is_needed = false;
    visit::for_each_stmt(&kernel.body, &mut |stmt| is_needed |= collective(kernel, &stmt.kind).is_some());
    if !is_needed {
        return;
    }
    Walk { sink: Some(sink), ..Walk::new(kernel) }.block(&kernel.body);
}

/// How threads reach the operations of a whole warp, and the barriers of the grid.
#[derive(Debug, Default)]
pub(super) struct Reach {
    /// Warp operations that some threads of the warp may not reach, or reach at another point.
    diverged: QuickSet<StmtId>,
    /// Whether some threads of a warp may wait where others do not arrive.
    may_wait_diverged: bool,
    /// A location where the lane index of the elected thread makes a difference, or may.
    numbered: Option<Span>,
    /// The `sync_grid`s that some blocks may not reach, and the conditions for that.
    by_block: QuickMap<StmtId, Span>,
}

impl Reach {
    /// Computes which threads reach which statements.
    pub(super) fn of(kernel: &Kernel) -> Self {
        let mut is_needed = false;
        visit::for_each_stmt(&kernel.body, &mut |stmt| {
            is_needed |= is_of_warp(&stmt.kind) || matches!(stmt.kind, StmtKind::SyncGrid { .. });
        });
        if !is_needed {
            return Self::default();
        }
        let mut walk = Walk { reach: Some(Self::default()), ..Walk::new(kernel) };
        walk.block(&kernel.body);
        walk.reach.unwrap_or_default()
    }

    /// Whether all threads of a warp reach a statement together, and none of them waits elsewhere.
    pub(super) fn is_whole_warp(&self, stmt: StmtId) -> bool {
        !self.may_wait_diverged && !self.diverged.contains(&stmt)
    }

    /// Returns a location where the lane index of the elected thread makes a difference, or may.
    pub(super) fn numbered(&self) -> Option<Span> {
        self.numbered
    }

    /// Returns the condition that may bring one block to a `sync_grid` and not others.
    pub(super) fn by_block(&self, stmt: StmtId) -> Option<Span> {
        self.by_block.get(&stmt).copied()
    }
}

/// Returns the name of an operation that threads execute together, and which threads these are.
fn collective(kernel: &Kernel, kind: &StmtKind) -> Option<(&'static str, Level)> {
    Some(match kind {
        StmtKind::Mma(_) => ("mma", Level::Warpgroup),
        StmtKind::MmaWait { .. } => ("wait", Level::Warpgroup),
        StmtKind::StoreAccumulator { .. } => ("store", Level::Warpgroup),
        StmtKind::SetMaxRegisters { increase: true, .. } => ("setmaxnreg_inc", Level::Warpgroup),
        StmtKind::SetMaxRegisters { increase: false, .. } => ("setmaxnreg_dec", Level::Warpgroup),
        StmtKind::Sync(Sync::Warpgroup) => ("sync_warpgroup", Level::Warpgroup),
        StmtKind::LoadFragment(load) => match load.team(kernel) {
            Some(Team::Warpgroup) => ("load", Level::Warpgroup),
            Some(Team::Warp) | None => ("load", Level::Warp),
        },
        StmtKind::MmaSync(mma) => (mma.op.name(), Level::Warp),
        StmtKind::StoreWarp(_) => ("store", Level::Warp),
        StmtKind::ReduceRows { op: RowOp::Max, .. } => ("row_max", Level::Warp),
        StmtKind::ReduceRows { op: RowOp::Sum, .. } => ("row_sum", Level::Warp),
        StmtKind::Assign { .. }
        | StmtKind::If { .. }
        | StmtKind::Match { .. }
        | StmtKind::Loop { .. }
        | StmtKind::While { .. }
        | StmtKind::For(_)
        | StmtKind::Labelled { .. }
        | StmtKind::Break(_)
        | StmtKind::Continue(_)
        | StmtKind::Leave(_)
        | StmtKind::Return
        | StmtKind::TileGet { .. }
        | StmtKind::TileSet { .. }
        | StmtKind::SharedGet { .. }
        | StmtKind::SharedSet { .. }
        | StmtKind::GlobalGet { .. }
        | StmtKind::GlobalSet { .. }
        | StmtKind::Atomic(_)
        | StmtKind::TileCopy(_)
        | StmtKind::BulkCopy(_)
        | StmtKind::RemoteCopy(_)
        | StmtKind::PrefetchMap(_)
        | StmtKind::Barrier { .. }
        | StmtKind::EditMap { .. }
        | StmtKind::AcquireMap { .. }
        | StmtKind::BulkCommitGroup
        | StmtKind::BulkWaitGroup { .. }
        | StmtKind::Pack { .. }
        | StmtKind::CheckMatrix(_)
        // Each thread stores its own elements.
        | StmtKind::StoreMatrix(_)
        | StmtKind::Fence(_)
        | StmtKind::Sync(_)
        | StmtKind::NamedBarrierSync { .. }
        | StmtKind::NamedBarrierArrive { .. }
        | StmtKind::SyncGrid { .. }
        | StmtKind::GridDependency(_)
        | StmtKind::ElectOne { .. }
        | StmtKind::Warp { .. }
        | StmtKind::Trap
        | StmtKind::Assert { .. }
        | StmtKind::Printf { .. }
        | StmtKind::PrintTile { .. } => return None,
    })
}

/// Whether threads may wait at a statement for other threads.
fn waits(kind: &StmtKind) -> bool {
    if let StmtKind::Barrier { op, .. } = kind {
        return matches!(
            op,
            BarrierOp::Wait { .. }
                | BarrierOp::WaitToken { .. }
                | BarrierOp::TestWait { .. }
                | BarrierOp::TryWait { .. }
                | BarrierOp::TryWaitFor { .. }
        );
    }
    is_of_warp(kind)
        || matches!(
            kind,
            StmtKind::Sync(_)
                | StmtKind::NamedBarrierSync { .. }
                | StmtKind::NamedBarrierArrive { .. }
                | StmtKind::SyncGrid { .. }
                | StmtKind::GridDependency(_)
                | StmtKind::Mma(_)
                | StmtKind::MmaWait { .. }
                | StmtKind::StoreAccumulator { .. }
                | StmtKind::SetMaxRegisters { .. }
                | StmtKind::Atomic(_)
        )
}

/// Whether the threads of a warp execute a statement together, other than `sync_warp`.
pub(super) fn is_of_warp(kind: &StmtKind) -> bool {
    matches!(
        kind,
        StmtKind::Warp { .. }
            | StmtKind::ElectOne { .. }
            | StmtKind::MmaSync(_)
            | StmtKind::LoadFragment(_)
            | StmtKind::StoreWarp(_)
            | StmtKind::ReduceRows { .. }
            | StmtKind::EditMap { edit: MapEdit::Publish { .. }, .. }
    )
}

/// The target of a jump out of a loop or block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Target {
    /// The end of the loop or block.
    After(Label),
    /// The next iteration of the loop.
    NextIteration(Label),
    /// The end of the kernel.
    Return,
}

/// Threads that have jumped to a target.
struct JumpedThreads {
    /// The threads that may have jumped.
    threads: Fact,
    /// The facts about variables at the jumps.
    facts: Facts,
}

struct Walk<'s> {
    kernel: &'s Kernel,
    facts: Facts,
    /// The threads that reach this point, as far as the conditions around it tell.
    control: Fact,
    /// The threads that have jumped out of the statements around this point.
    jumped: QuickMap<Target, JumpedThreads>,
    /// The locations that were reported.
    reported: QuickSet<(usize, usize)>,
    /// Receives how threads reach statements, if that is needed.
    reach: Option<Reach>,
    /// Receives the errors, once the facts are complete.
    sink: Option<&'s mut Sink>,
}

impl<'s> Walk<'s> {
    /// Starts a walk at the beginning of the kernel that reports nothing.
    fn new(kernel: &'s Kernel) -> Self {
        let facts = Facts::new(kernel.launch.threads);
        let (jumped, reported) = (QuickMap::default(), QuickSet::default());
        Self { kernel, facts, control: Fact::default(), jumped, reported, reach: None, sink: None }
    }
}

impl Walk<'_> {
    /// Returns the threads that are at this point.
    fn here(&self) -> Fact {
        self.jumped.values().fold(self.control, |here, left| here.and(left.threads))
    }

    fn block(&mut self, block: &Block) {
        for stmt in &block.stmts {
            self.stmt(stmt);
        }
    }

    /// Runs `f` for the threads that `condition` selects.
    fn under(&mut self, condition: Fact, f: impl FnOnce(&mut Self)) {
        let around = self.control;
        self.control = around.and(condition);
        f(self);
        self.control = around;
    }

    fn leave(&mut self, target: Target) {
        let threads = self.here();
        match self.jumped.entry(target) {
            Entry::Vacant(entry) => _ = entry.insert(JumpedThreads { threads, facts: self.facts.clone() }),
            Entry::Occupied(mut left) => {
                let left = left.get_mut();
                left.threads = left.threads.and(threads);
                left.facts.join(&self.facts);
            }
        }
    }

    /// Lets the threads that have jumped to a target arrive there.
    fn arrive(&mut self, target: Target) {
        if let Some(left) = self.jumped.remove(&target) {
            self.facts.join(&left.facts);
        }
    }

    /// Assigns a value that was computed here to a local. Threads that are not here keep the old
    /// value.
    fn set(&mut self, local: LocalId, fact: Fact, is_whole: bool) {
        let here = self.here();
        // If all threads get here, the value still counts threads.
        let unit = fact.unit.filter(|_| here.level <= fact.level);
        self.facts.set(local, fact.and(here).counting(unit), is_whole);
    }

    /// Walks blocks of which each thread takes one.
    fn choose<'b>(&mut self, by: &Expr, blocks: impl Iterator<Item = &'b Block>) {
        let before = self.facts.clone();
        let mut after: Option<Facts> = None;
        let by = self.facts.of(by);
        for block in blocks {
            self.facts = before.clone();
            self.under(by, |walk| walk.block(block));
            match &mut after {
                Some(after) => _ = after.join(&self.facts),
                None => after = Some(self.facts.clone()),
            }
        }
        self.facts = after.unwrap_or(before);
    }

    fn stmt(&mut self, stmt: &Stmt) {
        let span = stmt.origin.span;
        self.judge(stmt);
        self.note_reach(stmt);
        match &stmt.kind {
            StmtKind::Assign { local, index, value } => {
                let mut fact = self.facts.of(value);
                for index in index {
                    fact = fact.and(self.facts.of(index));
                }
                self.set(*local, fact, index.is_empty());
            }
            StmtKind::If { condition, then, otherwise } => {
                self.choose(condition, [then, otherwise].into_iter());
            }
            StmtKind::Match { value, arms, otherwise } => {
                self.choose(value, arms.iter().map(|arm| &arm.body).chain([otherwise]));
            }
            StmtKind::Loop { label, body } => self.repeat(*label, |walk| walk.block(body)),
            StmtKind::While { label, header, condition, body } => self.repeat(*label, |walk| {
                walk.block(header);
                let condition = walk.facts.of(condition);
                walk.under(condition, |walk| {
                    // Threads that do not get here have left the loop.
                    walk.leave(Target::After(*label));
                    walk.block(body);
                });
            }),
            StmtKind::For(inner) => self.count(inner),
            StmtKind::Labelled { label, body } => {
                self.block(body);
                self.arrive(Target::After(*label));
            }
            StmtKind::Break(label) | StmtKind::Leave(label) => self.leave(Target::After(*label)),
            StmtKind::Continue(label) => self.leave(Target::NextIteration(*label)),
            StmtKind::Return => self.leave(Target::Return),
            // These end the whole grid.
            StmtKind::Trap | StmtKind::Assert { .. } => {}
            StmtKind::TileGet { dest, tile, at } => {
                let location = at.iter().fold(self.facts.of(tile), |fact, at| fact.and(self.facts.of(at)));
                self.set(*dest, location.in_blocks(span), true);
            }
            StmtKind::SharedGet { dest, array, index } => {
                self.set(*dest, self.facts.of_all(&[array, index]).in_blocks(span), true);
            }
            StmtKind::GlobalGet { dest, global, index } => {
                let read = self.facts.of_all(&[index]);
                // Memory that the kernel writes may change between the reads of two blocks.
                let is_written = self.kernel.param(*global).written;
                let mut read = if is_written { read.in_blocks(span) } else { read };
                read.by_memory |= is_written;
                self.set(*dest, read, true);
            }
            StmtKind::Atomic(atomic) => {
                let difference = if atomic.writes() { Difference::Atomic } else { Difference::PollTiming };
                if let Some(dest) = atomic.dest() {
                    let fact = Fact::differs(Level::Thread, difference, span);
                    self.set(dest, fact.in_blocks(span), true);
                }
            }
            StmtKind::Barrier { op, .. } => self.barrier(op, span),
            StmtKind::ElectOne { dest } => {
                self.set(*dest, Fact::differs(Level::Thread, Difference::Elected, span), true);
            }
            StmtKind::Warp { dest, value, op } => self.set(*dest, self.facts.of_lanes(value, op, span), true),
            StmtKind::ReduceRows { dest, .. } | StmtKind::Pack { dest, .. } => {
                let fact = Fact::differs(Level::Thread, Difference::Elements, span);
                self.set(*dest, fact.in_blocks(span), true);
            }
            StmtKind::LoadFragment(load) => {
                let fact = Fact::differs(Level::Thread, Difference::Elements, span);
                self.set(load.dest, fact.in_blocks(span), true);
            }
            StmtKind::TileSet { .. }
            | StmtKind::SharedSet { .. }
            | StmtKind::GlobalSet { .. }
            | StmtKind::MmaSync(_)
            | StmtKind::StoreWarp(_)
            | StmtKind::TileCopy(_)
            | StmtKind::BulkCopy(_)
            | StmtKind::RemoteCopy(_)
            | StmtKind::PrefetchMap(_)
            | StmtKind::EditMap { .. }
            | StmtKind::AcquireMap { .. }
            | StmtKind::BulkCommitGroup
            | StmtKind::BulkWaitGroup { .. }
            | StmtKind::Mma(_)
            | StmtKind::MmaWait { .. }
            | StmtKind::StoreAccumulator { .. }
            | StmtKind::CheckMatrix(_)
            | StmtKind::StoreMatrix(_)
            | StmtKind::SetMaxRegisters { .. }
            | StmtKind::Fence(_)
            | StmtKind::Sync(_)
            | StmtKind::NamedBarrierSync { .. }
            | StmtKind::NamedBarrierArrive { .. }
            | StmtKind::SyncGrid { .. }
            | StmtKind::GridDependency(_)
            | StmtKind::Printf { .. }
            | StmtKind::PrintTile { .. } => {}
        }
    }

    /// Assigns the result of an operation on an mbarrier. It depends on when each thread executes
    /// it.
    fn barrier(&mut self, op: &BarrierOp, span: Span) {
        let when = Fact::differs(Level::Thread, Difference::PollTiming, span).in_blocks(span);
        match op {
            BarrierOp::TestWait { dest, .. }
            | BarrierOp::TryWait { dest, .. }
            | BarrierOp::TryWaitFor { dest, .. }
            | BarrierOp::ArriveToken { dest } => self.set(*dest, when, true),
            BarrierOp::Init { .. }
            | BarrierOp::Invalidate
            | BarrierOp::Arrive
            | BarrierOp::ArriveMany { .. }
            | BarrierOp::ArriveDrop
            | BarrierOp::ArriveExpectTx { .. }
            | BarrierOp::ExpectTx { .. }
            | BarrierOp::Wait { .. }
            | BarrierOp::WaitToken { .. } => {}
        }
    }

    /// Walks a loop, of which `iteration` walks an iteration. Threads that have left the loop do
    /// not come back. Nothing is reported before the facts about its variables are complete.
    fn repeat(&mut self, label: Label, mut iteration: impl FnMut(&mut Self)) {
        let (next, exit) = (Target::NextIteration(label), Target::After(label));
        let sink = self.sink.take();
        let mut head = self.facts.clone();
        loop {
            let level = |walk: &Self| {
                let of = |fact: Fact| {
                    (fact.level, fact.by_block.is_some(), [fact.by_lane, fact.by_election, fact.by_memory])
                };
                walk.jumped.get(&exit).map(|left| of(left.threads))
            };
            let before = level(self);
            iteration(self);
            self.arrive(next);
            let has_changed = head.join(&self.facts);
            self.facts = head.clone();
            if !has_changed && level(self) == before {
                break;
            }
        }
        self.sink = sink;
        if self.sink.is_some() {
            iteration(self);
            self.arrive(next);
            self.facts = head;
        }
        self.arrive(exit);
    }

    /// Walks a counted loop. Threads whose bounds differ take different numbers of iterations.
    fn count(&mut self, inner: &For) {
        let bounds = self.facts.of_all(&[&inner.start, &inner.end, &inner.step]);
        self.repeat(inner.label, |walk| {
            walk.under(bounds, |walk| {
                walk.set(inner.variable, bounds, true);
                walk.block(&inner.body);
            });
        });
    }

    /// Records whether all threads of a warp, or of the grid, reach a statement alike.
    fn note_reach(&mut self, stmt: &Stmt) {
        if self.reach.is_none() {
            return;
        }
        let here = self.here();
        let Some(reach) = &mut self.reach else { return };
        let all = here.and(self.facts.of_all(&visit::operands(&stmt.kind)));
        if all.by_lane && all.by_election {
            reach.numbered.get_or_insert(stmt.origin.span);
        }
        let is_apart = here.level > Level::Warp || here.by_memory;
        reach.may_wait_diverged |= is_apart && waits(&stmt.kind);
        if is_apart && is_of_warp(&stmt.kind) {
            reach.diverged.insert(stmt.id);
        }
        if let StmtKind::SyncGrid { .. } = stmt.kind {
            reach.by_block.extend(here.by_block.map(|span| (stmt.id, span)));
        }
    }

    /// Reports an operation of a warp or warpgroup if its threads may have diverged, or if its
    /// arguments differ.
    fn judge(&mut self, stmt: &Stmt) {
        let Some((word, needed)) = collective(self.kernel, &stmt.kind) else { return };
        let here = self.here();
        let given =
            visit::operands(&stmt.kind).into_iter().map(|operand| (operand.span, self.facts.of(operand)));
        let given = given.max_by_key(|(_, fact)| fact.level);
        let (diverged, differs) = (here.level > needed, given.filter(|(_, fact)| fact.level > needed));
        let cause = if diverged { here.cause } else { differs.and_then(|(_, fact)| fact.cause) };
        let location = cause.map_or(stmt.origin.span, |(_, span)| span).start();
        let Some(sink) = &mut self.sink else { return };
        // A cause is reported once, whatever operations it affects.
        if !diverged && differs.is_none() || !self.reported.insert((location.line, location.column)) {
            return;
        }
        let (word, of_warp) = (Word::from(word), needed == Level::Warp);
        if diverged {
            sink.error(Warpgroup::Diverged { word, of_warp, cause }, stmt.origin.span);
        } else if let Some((span, _)) = differs {
            sink.error(Warpgroup::NonUniformArgument { word, of_warp, cause }, span);
        }
    }
}
