//! What all threads of a warpgroup do together: no condition may part them there, and what they are
//! given is the same for all.
//!
//! Follows through the kernel among which threads values are the same, and which conditions lead to
//! a statement. A value that is assigned where threads have parted differs afterwards. Threads that
//! part in a branch or a loop meet behind it; those that leave it for elsewhere meet where that is.
//! Memory is taken to be the same for all who read the same place: values that differ because they
//! are read before all have written are races, which the simulator finds.

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

/// Reports what parts the threads of a warpgroup before they do something together.
pub(super) fn check(kernel: &Kernel, sink: &mut Sink) {
    let mut is_needed = false;
    visit::for_each_stmt(&kernel.body, &mut |stmt| is_needed |= together(kernel, &stmt.kind).is_some());
    if !is_needed {
        return;
    }
    Walk { sink: Some(sink), ..Walk::new(kernel) }.block(&kernel.body);
}

/// How threads come to the statements that those of a warp, or of the grid, execute together.
#[derive(Debug, Default)]
pub(super) struct Reach {
    /// The operations of a warp that some of its threads may not come to, or come to elsewhere.
    parted: QuickSet<StmtId>,
    /// Whether some threads of a warp may wait where others do not come.
    waits_apart: bool,
    /// Where the number of the elected thread makes a difference, or may.
    numbered: Option<Span>,
    /// The meetings of the grid that blocks may come to differently, and what makes them.
    by_block: QuickMap<StmtId, Span>,
}

impl Reach {
    /// Follows which threads come where.
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

    /// Whether all threads of a warp come to a statement at once: together, and none of them waits
    /// elsewhere.
    pub(super) fn is_whole_warp(&self, stmt: StmtId) -> bool {
        !self.waits_apart && !self.parted.contains(&stmt)
    }

    /// Where the number of the elected thread makes a difference, or may.
    pub(super) fn numbered(&self) -> Option<Span> {
        self.numbered
    }

    /// The condition that may bring a block to a meeting of the grid, and not others.
    pub(super) fn by_block(&self, stmt: StmtId) -> Option<Span> {
        self.by_block.get(&stmt).copied()
    }
}

/// A statement that threads execute together: its word, and how many they are.
fn together(kernel: &Kernel, kind: &StmtKind) -> Option<(&'static str, Level)> {
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
        // Each thread stores what it holds.
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

/// Whether threads may wait at a statement for what others do.
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

/// Whether the threads of a warp do it together, though it is no `sync_warp`.
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

/// Where threads go that leave what they are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Target {
    /// Behind the loop or the block.
    Behind(Label),
    /// To the loop's next turn.
    Next(Label),
    /// To the end of the kernel.
    End,
}

/// Those who have left.
struct Left {
    /// Which threads they may be.
    who: Fact,
    /// What is known of variables where they have left.
    facts: Facts,
}

struct Walk<'s> {
    kernel: &'s Kernel,
    facts: Facts,
    /// Which threads come to this point, as far as conditions around it say.
    control: Fact,
    /// The threads that have left what is around this point.
    left: QuickMap<Target, Left>,
    /// The places of which something was said.
    said: QuickSet<(usize, usize)>,
    /// Takes how threads come to statements, where that is asked for.
    reach: Option<Reach>,
    /// Takes the errors, when everything is known.
    sink: Option<&'s mut Sink>,
}

impl<'s> Walk<'s> {
    /// At the kernel's beginning, without anybody to tell.
    fn new(kernel: &'s Kernel) -> Self {
        let facts = Facts::new(kernel.launch.threads);
        let (left, said) = (QuickMap::default(), QuickSet::default());
        Self { kernel, facts, control: Fact::default(), left, said, reach: None, sink: None }
    }
}

impl Walk<'_> {
    /// Which threads are here.
    fn here(&self) -> Fact {
        self.left.values().fold(self.control, |here, left| here.and(left.who))
    }

    fn block(&mut self, block: &Block) {
        for stmt in &block.stmts {
            self.stmt(stmt);
        }
    }

    /// Runs `f` where only those threads come for whom `condition` decides so.
    fn under(&mut self, condition: Fact, f: impl FnOnce(&mut Self)) {
        let around = self.control;
        self.control = around.and(condition);
        f(self);
        self.control = around;
    }

    fn leave(&mut self, target: Target) {
        let who = self.here();
        match self.left.entry(target) {
            Entry::Vacant(place) => _ = place.insert(Left { who, facts: self.facts.clone() }),
            Entry::Occupied(mut left) => {
                let left = left.get_mut();
                left.who = left.who.and(who);
                left.facts.join(&self.facts);
            }
        }
    }

    /// Those who have left come here.
    fn arrive(&mut self, target: Target) {
        if let Some(left) = self.left.remove(&target) {
            self.facts.join(&left.facts);
        }
    }

    /// A local has a value that was computed here. Those that are not here keep what they had.
    fn set(&mut self, local: LocalId, fact: Fact, is_whole: bool) {
        let here = self.here();
        // Where all threads come, the value is the thread's own number still.
        let unit = fact.unit.filter(|_| here.level <= fact.level);
        self.facts.set(local, fact.and(here).counting(unit), is_whole);
    }

    /// Blocks of which each thread takes one.
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
                    // Whoever does not come here has left the loop.
                    walk.leave(Target::Behind(*label));
                    walk.block(body);
                });
            }),
            StmtKind::For(inner) => self.count(inner),
            StmtKind::Labelled { label, body } => {
                self.block(body);
                self.arrive(Target::Behind(*label));
            }
            StmtKind::Break(label) | StmtKind::Leave(label) => self.leave(Target::Behind(*label)),
            StmtKind::Continue(label) => self.leave(Target::Next(*label)),
            StmtKind::Return => self.leave(Target::End),
            // The whole grid ends.
            StmtKind::Trap | StmtKind::Assert { .. } => {}
            StmtKind::TileGet { dest, tile, at } => {
                let place = at.iter().fold(self.facts.of(tile), |fact, at| fact.and(self.facts.of(at)));
                self.set(*dest, place.in_blocks(span), true);
            }
            StmtKind::SharedGet { dest, array, index } => {
                self.set(*dest, self.facts.of_all(&[array, index]).in_blocks(span), true);
            }
            StmtKind::GlobalGet { dest, global, index } => {
                let read = self.facts.of_all(&[index]);
                // What the kernel itself writes may have changed between the reads of two blocks.
                let is_written = self.kernel.param(*global).written;
                let mut read = if is_written { read.in_blocks(span) } else { read };
                read.by_memory |= is_written;
                self.set(*dest, read, true);
            }
            StmtKind::Atomic(atomic) => {
                let difference = if atomic.writes() { Difference::Atomic } else { Difference::Asked };
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

    /// What an operation on an mbarrier gives: to each thread when it asks.
    fn barrier(&mut self, op: &BarrierOp, span: Span) {
        let when = Fact::differs(Level::Thread, Difference::Asked, span).in_blocks(span);
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

    /// A loop, of which `turn` is a turn: those who have left it do not come back. Nothing is
    /// reported before all that is known of its variables has come around.
    fn repeat(&mut self, label: Label, mut turn: impl FnMut(&mut Self)) {
        let (next, behind) = (Target::Next(label), Target::Behind(label));
        let sink = self.sink.take();
        let mut head = self.facts.clone();
        loop {
            let level = |walk: &Self| {
                let of = |who: Fact| {
                    (who.level, who.by_block.is_some(), [who.by_lane, who.by_election, who.by_memory])
                };
                walk.left.get(&behind).map(|left| of(left.who))
            };
            let before = level(self);
            turn(self);
            self.arrive(next);
            let is_news = head.join(&self.facts);
            self.facts = head.clone();
            if !is_news && level(self) == before {
                break;
            }
        }
        self.sink = sink;
        if self.sink.is_some() {
            turn(self);
            self.arrive(next);
            self.facts = head;
        }
        self.arrive(behind);
    }

    /// A loop that counts: threads whose bounds differ take different numbers of turns.
    fn count(&mut self, inner: &For) {
        let bounds = self.facts.of_all(&[&inner.start, &inner.end, &inner.step]);
        self.repeat(inner.label, |walk| {
            walk.under(bounds, |walk| {
                walk.set(inner.variable, bounds, true);
                walk.block(&inner.body);
            });
        });
    }

    /// Notes whether all threads of a warp, or of the grid, come to a statement alike.
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
        reach.waits_apart |= is_apart && waits(&stmt.kind);
        if is_apart && is_of_warp(&stmt.kind) {
            reach.parted.insert(stmt.id);
        }
        if let StmtKind::SyncGrid { .. } = stmt.kind {
            reach.by_block.extend(here.by_block.map(|span| (stmt.id, span)));
        }
    }

    /// Reports a statement that threads of a warpgroup execute together, if they may have parted,
    /// or if what it is given differs.
    fn judge(&mut self, stmt: &Stmt) {
        let Some((word, needed)) = together(self.kernel, &stmt.kind) else { return };
        let here = self.here();
        let given =
            visit::operands(&stmt.kind).into_iter().map(|operand| (operand.span, self.facts.of(operand)));
        let given = given.max_by_key(|(_, fact)| fact.level);
        let (parted, differs) = (here.level > needed, given.filter(|(_, fact)| fact.level > needed));
        let cause = if parted { here.cause } else { differs.and_then(|(_, fact)| fact.cause) };
        let place = cause.map_or(stmt.origin.span, |(_, span)| span).start();
        let Some(sink) = &mut self.sink else { return };
        // What parts threads is said once, whatever they were to do together.
        if !parted && differs.is_none() || !self.said.insert((place.line, place.column)) {
            return;
        }
        let (word, of_warp) = (Word::from(word), needed == Level::Warp);
        if parted {
            sink.error(Warpgroup::Parted { word, of_warp, why: cause }, stmt.origin.span);
        } else if let Some((span, _)) = differs {
            sink.error(Warpgroup::Given { word, of_warp, why: cause }, span);
        }
    }
}
