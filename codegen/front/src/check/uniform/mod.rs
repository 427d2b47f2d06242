//! Operations of a whole warp or warpgroup: all of its threads must reach them, with the same
//! arguments.
//!
//! The walk tracks among which threads values are the same, and which conditions lead to a
//! statement. A value that is assigned after threads have diverged differs afterwards. Threads that
//! diverge in a branch or loop reconverge after it; those that jump elsewhere reconverge there. Not
//! checked: memory is assumed to be the same for all threads that read one location. Values that
//! differ because they are read before all are written are races, which the simulator finds.

mod variation;

use std::collections::hash_map::Entry;

use crate::diag::Sink;
use crate::diag::mistake::{Difference, Warpgroup, Word};
use crate::ir::{
    Block, DefinedValue, Definition, Effect, Facts, Flow, For, Group, JumpTarget, Kernel, Label,
    LaunchBounds, LoadedType, LocalId, Loop, LoopExit, Span, Stmt, StmtId, StmtKind, Synchronization, Team,
    Wait, visit,
};
use crate::limits::{WARP_THREADS, WARPGROUP_THREADS};
use crate::quick::{QuickMap, QuickSet};
use variation::{Level, Variables, Variation};

/// Reports operations of a warp or warpgroup whose threads have diverged, or whose arguments
/// differ.
pub(super) fn check(kernel: &Kernel, sink: &mut Sink) {
    let mut is_needed = false;
    visit::for_each_stmt(&kernel.body, &mut |stmt| is_needed |= stmt.facts().uniform.is_some());
    if !is_needed {
        return;
    }
    Walk { sink: Some(sink), ..Walk::new(kernel) }.block(&kernel.body);
}

/// How threads reach the operations of a whole warp, and the barriers of the grid.
#[derive(Debug, Default)]
pub struct Reach {
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
    pub fn of(kernel: &Kernel) -> Self {
        let mut is_needed = false;
        visit::for_each_stmt(&kernel.body, &mut |stmt| {
            let facts = stmt.facts();
            is_needed |= facts.is_of_warp() || facts.group == Some(Group::Grid);
        });
        if !is_needed {
            return Self::default();
        }
        let mut walk = Walk { reach: Some(Self::default()), ..Walk::new(kernel) };
        walk.block(&kernel.body);
        walk.reach.unwrap_or_default()
    }

    /// Whether all threads of a warp reach a statement together, and none of them waits elsewhere.
    pub fn is_whole_warp(&self, stmt: StmtId) -> bool {
        !self.may_wait_diverged && !self.diverged.contains(&stmt)
    }

    /// Returns a location where the lane index of the elected thread makes a difference, or may.
    pub fn numbered(&self) -> Option<Span> {
        self.numbered
    }

    /// Returns the condition that may bring one block to a `sync_grid` and not others.
    pub fn by_block(&self, stmt: StmtId) -> Option<Span> {
        self.by_block.get(&stmt).copied()
    }
}

/// Returns the threads among which a statement must be reached alike.
fn level(kernel: &Kernel, group: Group) -> Level {
    match group {
        Group::Warp => Level::Warp,
        Group::TeamOf(local) => match LoadedType::of(&kernel.local(local).ty).map(LoadedType::team) {
            Some(Team::Warpgroup) => Level::Warpgroup,
            Some(Team::Warp) | None => Level::Warp,
        },
        Group::Warpgroup | Group::Named | Group::Block | Group::Cluster | Group::Grid => Level::Warpgroup,
    }
}

/// Returns the index of the warp after the last warpgroup, if there is exactly one.
fn odd_warp(bounds: &LaunchBounds) -> Option<u32> {
    let threads = u32::try_from(bounds.thread_count()).ok()?;
    let is_odd = threads > WARPGROUP_THREADS && threads % WARPGROUP_THREADS == WARP_THREADS;
    is_odd.then(|| threads / WARP_THREADS - 1)
}

/// Whether threads may wait at a statement for other threads.
fn may_wait(facts: &Facts<'_>) -> bool {
    let is_of_barrier = matches!(facts.synchronization, Synchronization::Waits(Wait::Phase | Wait::Token));
    is_of_barrier || facts.group.is_some() || facts.effect == Effect::Strong
}

/// Whether the threads of a warp execute a statement together, other than `sync_warp`.
pub fn is_of_warp(kind: &StmtKind) -> bool {
    kind.facts().is_of_warp()
}

/// Threads that have jumped to a target.
struct JumpedThreads {
    /// The threads that may have jumped.
    threads: Variation,
    /// The variables at the jumps.
    variables: Variables,
}

struct Walk<'s> {
    kernel: &'s Kernel,
    variables: Variables,
    /// The threads that reach this point, as far as the conditions around it tell.
    control: Variation,
    /// The threads that have jumped out of the statements around this point.
    jumped: QuickMap<JumpTarget, JumpedThreads>,
    /// The locations that were reported.
    reported: QuickSet<(usize, usize)>,
    /// Receives how threads reach statements, if that is needed.
    reach: Option<Reach>,
    /// Receives the errors, once the variation of variables is complete.
    sink: Option<&'s mut Sink>,
}

impl<'s> Walk<'s> {
    /// Starts a walk at the beginning of the kernel that reports nothing.
    fn new(kernel: &'s Kernel) -> Self {
        let variables = Variables::new(kernel.launch.threads);
        let (jumped, reported) = (QuickMap::default(), QuickSet::default());
        Self { kernel, variables, control: Variation::default(), jumped, reported, reach: None, sink: None }
    }
}

impl Walk<'_> {
    /// Returns the threads that are at this point.
    fn here(&self) -> Variation {
        self.jumped.values().fold(self.control, |here, left| here.and(left.threads))
    }

    fn block(&mut self, block: &Block) {
        for stmt in &block.stmts {
            self.stmt(stmt);
        }
    }

    /// Runs `f` for the threads that `condition` selects.
    fn under(&mut self, condition: Variation, f: impl FnOnce(&mut Self)) {
        let around = self.control;
        self.control = around.and(condition);
        f(self);
        self.control = around;
    }

    fn leave(&mut self, target: JumpTarget) {
        let threads = self.here();
        match self.jumped.entry(target) {
            Entry::Vacant(entry) => {
                entry.insert(JumpedThreads { threads, variables: self.variables.clone() });
            }
            Entry::Occupied(mut left) => {
                let left = left.get_mut();
                left.threads = left.threads.and(threads);
                left.variables.join(&self.variables);
            }
        }
    }

    /// Lets the threads that have jumped to a target arrive there.
    fn arrive(&mut self, target: JumpTarget) {
        if let Some(left) = self.jumped.remove(&target) {
            self.variables.join(&left.variables);
        }
    }

    /// Assigns a value that was computed here to a local. Threads that are not here keep the old
    /// value.
    fn set(&mut self, local: LocalId, variation: Variation, is_whole: bool) {
        let here = self.here();
        // If all threads get here, the value still counts threads.
        let unit = variation.unit.filter(|_| here.level <= variation.level);
        self.variables.set(local, variation.and(here).counting(unit), is_whole);
    }

    /// Walks blocks of which each thread takes one.
    fn choose<'b>(&mut self, by: Variation, blocks: impl Iterator<Item = &'b Block>) {
        let before = self.variables.clone();
        let mut after: Option<Variables> = None;
        for block in blocks {
            self.variables = before.clone();
            self.under(by, |walk| walk.block(block));
            match &mut after {
                Some(after) => _ = after.join(&self.variables),
                None => after = Some(self.variables.clone()),
            }
        }
        self.variables = after.unwrap_or(before);
    }

    fn stmt(&mut self, stmt: &Stmt) {
        let facts = stmt.facts();
        self.judge(stmt, &facts);
        self.note_reach(stmt, &facts);
        match facts.flow {
            Flow::Fallthrough => {
                for definition in &facts.defines {
                    self.define(stmt, &facts, *definition);
                }
            }
            Flow::If(condition, blocks) => {
                self.choose(self.variables.of(condition), blocks.into_iter());
            }
            Flow::Match(value, arms, otherwise) => {
                let by = self.variables.of_choice(value, arms);
                self.choose(by, arms.iter().map(|arm| &arm.body).chain([otherwise]));
            }
            Flow::Loop(Loop { label, exit, body }) => match exit {
                LoopExit::Never => self.repeat(label, |walk| walk.block(body)),
                LoopExit::WhenFalse(header, condition) => self.repeat(label, |walk| {
                    walk.block(header);
                    let condition = walk.variables.of(condition);
                    walk.under(condition, |walk| {
                        // Threads that do not get here have left the loop.
                        walk.leave(JumpTarget::After(label));
                        walk.block(body);
                    });
                }),
                LoopExit::Counted(inner) => self.count(inner),
            },
            Flow::Labelled(label, body) => {
                self.block(body);
                self.arrive(JumpTarget::After(label));
            }
            Flow::Jump(target) => self.leave(target),
            // It ends the whole grid.
            Flow::Trap => {}
        }
    }

    /// Assigns the value that a statement defines.
    fn define(&mut self, stmt: &Stmt, facts: &Facts<'_>, Definition { local, index, value }: Definition<'_>) {
        let span = stmt.origin.span;
        let differs = |difference| Variation::differs(Level::Thread, difference, span);
        let variation = match value {
            DefinedValue::Expr(value) => index
                .iter()
                .fold(self.variables.of(value), |variation, index| variation.and(self.variables.of(index))),
            DefinedValue::Load => {
                let location = self.variables.of_all(&visit::operands(&stmt.kind));
                let param = facts.accesses.iter().find_map(|access| access.object.global());
                match param.map(|param| self.kernel.param(param).written) {
                    // Memory that the kernel writes may change between the reads of two blocks.
                    Some(false) => location,
                    Some(true) => Variation { by_memory: true, ..location.in_blocks(span) },
                    None => location.in_blocks(span),
                }
            }
            DefinedValue::Atomic(atomic) if atomic.writes() => differs(Difference::Atomic).in_blocks(span),
            // The result depends on when each thread executes the statement.
            DefinedValue::Atomic(_) | DefinedValue::Phase => differs(Difference::PollTiming).in_blocks(span),
            DefinedValue::Election => differs(Difference::Elected),
            DefinedValue::Lanes(value, op) => self.variables.of_lanes(value, op, span),
            DefinedValue::Matrix => differs(Difference::Elements).in_blocks(span),
            DefinedValue::Range(inner) => self.bounds(inner),
            DefinedValue::Ptx(ptx) if ptx.has_effects() => differs(Difference::Ptx).in_blocks(span),
            DefinedValue::Ptx(ptx) => self.variables.of_all(&ptx.inputs.iter().collect::<Vec<_>>()),
        };
        self.set(local, variation, index.is_empty());
    }

    /// Walks a loop, of which `iteration` walks an iteration. Threads that have left the loop do
    /// not come back. Nothing is reported before the variation of its variables is complete.
    fn repeat(&mut self, label: Label, mut iteration: impl FnMut(&mut Self)) {
        let (next, exit) = (JumpTarget::NextIteration(label), JumpTarget::After(label));
        let sink = self.sink.take();
        let mut head = self.variables.clone();
        loop {
            let level = |walk: &Self| walk.jumped.get(&exit).map(|left| left.threads.without_spans());
            let before = level(self);
            iteration(self);
            self.arrive(next);
            let has_changed = head.join(&self.variables);
            self.variables = head.clone();
            if !has_changed && level(self) == before {
                break;
            }
        }
        self.sink = sink;
        if self.sink.is_some() {
            iteration(self);
            self.arrive(next);
            self.variables = head;
        }
        self.arrive(exit);
    }

    fn bounds(&self, inner: &For) -> Variation {
        self.variables.of_all(&[&inner.start, &inner.end, &inner.step])
    }

    /// Walks a counted loop. Threads whose bounds differ take different numbers of iterations.
    fn count(&mut self, inner: &For) {
        let bounds = self.bounds(inner);
        self.repeat(inner.label, |walk| {
            walk.under(bounds, |walk| {
                walk.set(inner.variable, bounds, true);
                walk.block(&inner.body);
            });
        });
    }

    /// Records whether all threads of a warp, or of the grid, reach a statement alike.
    fn note_reach(&mut self, stmt: &Stmt, facts: &Facts<'_>) {
        if self.reach.is_none() {
            return;
        }
        let here = self.here();
        let Some(reach) = &mut self.reach else { return };
        let all = here.and(self.variables.of_all(&visit::operands(&stmt.kind)));
        if all.by_lane && all.by_election {
            reach.numbered.get_or_insert(stmt.origin.span);
        }
        let is_apart = here.level > Level::Warp || here.by_memory;
        reach.may_wait_diverged |= is_apart && may_wait(facts);
        if is_apart && facts.is_of_warp() {
            reach.diverged.insert(stmt.id);
        }
        if let StmtKind::SyncGrid { .. } = stmt.kind {
            reach.by_block.extend(here.by_block.map(|span| (stmt.id, span)));
        }
    }

    /// Reports an operation of a warp or warpgroup if its threads may have diverged, or if its
    /// arguments differ.
    fn judge(&mut self, stmt: &Stmt, facts: &Facts<'_>) {
        let Some((word, group)) = facts.uniform.zip(facts.group) else { return };
        let needed = level(self.kernel, group);
        let here = self.here();
        let given =
            visit::operands(&stmt.kind).into_iter().map(|operand| (operand.span, self.variables.of(operand)));
        let given = given.max_by_key(|(_, variation)| variation.level);
        let (diverged, differs) =
            (here.level > needed, given.filter(|(_, variation)| variation.level > needed));
        let cause = if diverged { here.cause } else { differs.and_then(|(_, variation)| variation.cause) };
        let location = cause.map_or(stmt.origin.span, |(_, span)| span).start();
        let Some(sink) = &mut self.sink else { return };
        // A cause is reported once, whatever operations it affects.
        if !diverged && differs.is_none() || !self.reported.insert((location.line, location.column)) {
            return;
        }
        let (word, of_warp) = (Word::from(word), needed == Level::Warp);
        if diverged {
            let odd_warp = odd_warp(&self.kernel.launch);
            sink.error(Warpgroup::Diverged { word, of_warp, cause, odd_warp }, stmt.origin.span);
        } else if let Some((span, _)) = differs {
            sink.error(Warpgroup::NonUniformArgument { word, of_warp, cause }, span);
        }
    }
}
