//! Loops that wait for memory that they read as if no other thread wrote it.
//!
//! A plain read may be moved out of a loop in which nothing synchronises, as rustc and LLVM do, and
//! need not ever see a write by another thread (PTX ISA, "Memory Consistency Model", "Weak
//! operations"). So a loop that only such a read can end need not end.
//!
//! Not checked: loops that do anything that other threads may observe, or that may also end by
//! themselves. Loops that wait for reads with an order are undecided (`protocol`).

use crate::diag::Sink;
use crate::diag::mistake::PlainPoll;
use crate::ir::{
    Atomic, AtomicAccess, AtomicOp, Block, DefinedValue, Definition, Effect, Expr, ExprKind, Flow,
    JumpTarget, Kernel, Label, LocalId, Loop, LoopExit, Span, Stmt, StmtKind, visit,
};
use crate::quick::{QuickMap, QuickSet};

/// Reports loops that wait for a plain read.
pub(super) fn check(kernel: &Kernel, sink: &mut Sink) {
    visit::for_each_stmt(&kernel.body, &mut |stmt| {
        if let Some(Poll::Plain(read)) = LoopIteration::of(stmt).and_then(|iteration| iteration.poll())
            && !kernel.is_trusted(stmt.origin)
            && !kernel.is_trusted(read.origin)
        {
            let (name, is_shared) = if let StmtKind::GlobalGet { global, .. } = &read.kind {
                (Some(kernel.param(global.param).name.clone()), false)
            } else if let StmtKind::SharedGet { array, .. } = &read.kind {
                (shared_name(kernel, array), true)
            } else {
                return;
            };
            sink.error(PlainPoll { name, is_shared, loop_span: stmt.origin.span }, read.origin.span);
        }
    });
}

/// Returns the loops that end only when another thread writes something that is read with an order.
pub fn waits(kernel: &Kernel) -> Vec<Span> {
    let mut waits = vec![];
    visit::for_each_stmt(&kernel.body, &mut |stmt| {
        if let Some(Poll::Strong) = LoopIteration::of(stmt).and_then(|iteration| iteration.poll()) {
            waits.push(stmt.origin.span);
        }
    });
    waits
}

/// The read that alone can end a loop.
enum Poll<'k> {
    /// A plain read.
    Plain(&'k Stmt),
    /// A read with an order, or one that another thread with such a read may pass on.
    Strong,
}

/// Whether a repeated access returns the same value until another thread writes.
fn waits_for_others(atomic: &Atomic) -> bool {
    match &atomic.access {
        AtomicAccess::Load { .. } | AtomicAccess::CompareExchange { .. } => true,
        // A thread's own additions change a sum.
        AtomicAccess::Update { op, value, .. } => *op != AtomicOp::Add || value.as_int() == Some(0),
        AtomicAccess::Store { .. } | AtomicAccess::AddVector { .. } => false,
    }
}

/// Returns the name of a shared variable.
pub(super) fn shared_name(kernel: &Kernel, array: &Expr) -> Option<String> {
    let mut name = None;
    visit::within(array, &mut |part| {
        if let ExprKind::Shared(id) = part.kind {
            name = kernel.shared.get(id.0 as usize).map(|var| var.name.clone());
        }
    });
    name
}

/// An iteration of a loop: the values that it sets, and its exits.
#[derive(Default)]
struct LoopIteration<'k> {
    /// The statements that set each local.
    assignments: QuickMap<LocalId, Vec<ConditionalAssignment<'k>>>,
    /// The conditions that may end the loop, grouped by exit.
    ends: Vec<Vec<&'k Expr>>,
    /// The locals that each iteration sets before anything reads them.
    set_in_each: QuickSet<LocalId>,
    /// The locals that were read or written so far.
    accessed: QuickSet<LocalId>,
    /// The conditions under which the iteration may have continued with the next one so far.
    continued: Vec<&'k Expr>,
    /// Whether anything happens that other threads may observe.
    is_observable: bool,
    /// Whether anything is read with an order.
    has_strong: bool,
}

/// A statement that sets a local, and the conditions around it.
struct ConditionalAssignment<'k> {
    stmt: &'k Stmt,
    conditions: Vec<&'k Expr>,
    /// The conditions under which an iteration does not get here.
    continued: Vec<&'k Expr>,
}

impl ConditionalAssignment<'_> {
    /// Returns the locals that the value depends on, or whether it is set.
    fn reads(&self) -> Vec<LocalId> {
        let mut all = vec![];
        let operands = visit::operands(&self.stmt.kind);
        for expr in operands.into_iter().chain(self.conditions.iter().copied()) {
            visit::each_local(expr, &mut |local| all.push(local));
        }
        all
    }
}

impl<'k> LoopIteration<'k> {
    /// Collects the facts about an iteration of a loop without a counter.
    fn of(stmt: &'k Stmt) -> Option<Self> {
        let mut iteration = Self::default();
        let Flow::Loop(Loop { label, exit, body }) = stmt.flow() else { return None };
        match exit {
            LoopExit::Never => {}
            LoopExit::WhenFalse(header, condition) => {
                iteration.block(header, label, &[]);
                iteration.read(condition);
                iteration.ends.push(vec![condition]);
            }
            LoopExit::Counted(_) => return None,
        }
        iteration.block(body, label, &[]);
        Some(iteration)
    }

    fn read(&mut self, expr: &Expr) {
        visit::each_local(expr, &mut |local| _ = self.accessed.insert(local));
    }

    fn block(&mut self, block: &'k Block, own: Label, conditions: &[&'k Expr]) {
        block.stmts.iter().for_each(|stmt| self.stmt(stmt, own, conditions));
    }

    fn stmt(&mut self, stmt: &'k Stmt, own: Label, conditions: &[&'k Expr]) {
        visit::operands(&stmt.kind).into_iter().for_each(|operand| self.read(operand));
        let under = |condition: &'k Expr| conditions.iter().copied().chain([condition]).collect::<Vec<_>>();
        let facts = stmt.facts();
        let is_poll = matches!(&stmt.kind, StmtKind::Atomic(atomic) if waits_for_others(atomic));
        self.has_strong |= is_poll;
        let is_observable = match facts.effect {
            Effect::Local | Effect::Loads | Effect::Exchanges | Effect::Orders => false,
            Effect::Strong => !is_poll,
            Effect::Stores | Effect::Visible => true,
        };
        self.is_observable |= is_observable;
        for Definition { local, index, value } in facts.defines.iter().filter(|_| !is_observable).copied() {
            self.assign(local, stmt, conditions, index.is_empty());
            if let DefinedValue::Range(_) = value {
                self.set_in_each.insert(local);
            }
        }
        match facts.flow {
            Flow::Fallthrough | Flow::Trap => {}
            Flow::If(condition, blocks) => {
                let conditions = under(condition);
                blocks.into_iter().for_each(|block| self.block(block, own, &conditions));
            }
            Flow::Match(value, arms, otherwise) => {
                let conditions = under(value);
                let blocks = arms.iter().map(|arm| &arm.body).chain([otherwise]);
                blocks.for_each(|block| self.block(block, own, &conditions));
            }
            Flow::Loop(Loop { exit: LoopExit::WhenFalse(header, condition), body, .. }) => {
                self.block(header, own, conditions);
                self.block(body, own, &under(condition));
            }
            Flow::Loop(Loop { body, .. }) | Flow::Labelled(_, body) => self.block(body, own, conditions),
            Flow::Jump(JumpTarget::NextIteration(label)) if label == own => self.continued.extend(conditions),
            // A jump out of an inner loop is assumed to leave this one as well.
            Flow::Jump(_) => self.end(conditions),
        }
    }

    fn end(&mut self, conditions: &[&'k Expr]) {
        self.ends.push(conditions.iter().chain(&self.continued).copied().collect());
    }

    fn assign(&mut self, local: LocalId, stmt: &'k Stmt, conditions: &[&'k Expr], is_whole: bool) {
        let is_first = self.accessed.insert(local);
        if is_first && is_whole && conditions.is_empty() {
            self.set_in_each.insert(local);
        }
        self.assignments.entry(local).or_default().push(ConditionalAssignment {
            stmt,
            conditions: conditions.to_vec(),
            continued: self.continued.clone(),
        });
    }

    /// Returns the read that alone can end the loop, if it is a read of memory.
    fn poll(&self) -> Option<Poll<'k>> {
        let (mut open, mut seen, mut plain) = (vec![], QuickSet::default(), None);
        let mut is_strong = false;
        if self.waits_for_strong_reads() {
            return Some(Poll::Strong);
        }
        self.ends.iter().flatten().for_each(|end| visit::each_local(end, &mut |local| open.push(local)));
        while let Some(local) = open.pop() {
            let Some(assignments) = self.assignments.get(&local).filter(|_| seen.insert(local)) else {
                continue;
            };
            // A value of the last iteration changes this one, unless it is kept until a strong read
            // returns another.
            if !self.set_in_each.contains(&local) && self.depends_on_itself(local) {
                if !assignments.iter().all(|assignment| self.is_by_strong_read(assignment)) {
                    return None;
                }
                is_strong = true;
            }
            for assignment in assignments {
                is_strong |= matches!(assignment.stmt.kind, StmtKind::Atomic(_));
                if matches!(assignment.stmt.kind, StmtKind::GlobalGet { .. } | StmtKind::SharedGet { .. }) {
                    plain = plain.or(Some(assignment.stmt));
                }
                open.extend(assignment.reads());
            }
        }
        if is_strong {
            return Some(Poll::Strong);
        }
        let plain = plain?;
        if !self.is_observable {
            return Some(Poll::Plain(plain));
        }
        // One thread may have read the value and passed it on to the others.
        let is_passed_on = self.has_strong || matches!(plain.kind, StmtKind::GlobalGet { .. });
        is_passed_on.then_some(Poll::Strong)
    }

    /// Whether a local's value is computed from its last one, or under conditions on it.
    fn depends_on_itself(&self, local: LocalId) -> bool {
        self.sources(vec![local]).contains(&local)
    }

    /// Whether a strong read decides if a statement sets a local.
    fn is_by_strong_read(&self, assignment: &ConditionalAssignment<'k>) -> bool {
        let conditions = assignment.conditions.iter().chain(&assignment.continued);
        self.assignments_for(conditions)
            .iter()
            .any(|assignment| matches!(assignment.stmt.kind, StmtKind::Atomic(_)))
    }

    /// Whether a load with an order ends the loop, and nothing that changes by itself, such as a
    /// number of iterations. The loaded locations may change between iterations.
    fn waits_for_strong_reads(&self) -> bool {
        let is_load = |assignment: &&ConditionalAssignment<'_>| {
            let StmtKind::Atomic(atomic) = &assignment.stmt.kind else { return false };
            !matches!(atomic.access, AtomicAccess::CompareExchange { .. })
        };
        let changes = |assignment: &&ConditionalAssignment<'_>| {
            assignment.reads().into_iter().any(|local| self.depends_on_itself(local))
        };
        let is_by_itself = |end: &Vec<&'k Expr>| {
            let assignments_for = self.assignments_for(end);
            assignments_for.iter().all(|assignment| matches!(assignment.stmt.kind, StmtKind::Assign { .. }))
                && assignments_for.iter().any(changes)
        };
        self.ends.iter().any(|end| self.assignments_for(end).iter().any(is_load))
            && !self.ends.iter().any(is_by_itself)
    }

    /// Returns the statements that set the values that conditions depend on.
    fn assignments_for<'e>(
        &self,
        conditions: impl IntoIterator<Item = &'e &'k Expr>,
    ) -> Vec<&ConditionalAssignment<'k>>
    where
        'k: 'e,
    {
        let mut read = vec![];
        conditions.into_iter().for_each(|part| visit::each_local(part, &mut |local| read.push(local)));
        let sources = self.sources(read.clone());
        let all: QuickSet<LocalId> = read.into_iter().chain(sources).collect();
        all.iter().filter_map(|local| self.assignments.get(local)).flatten().collect()
    }

    /// Returns the locals that the values of others are computed from, in this iteration and in
    /// earlier ones.
    fn sources(&self, mut open: Vec<LocalId>) -> QuickSet<LocalId> {
        let mut sources = QuickSet::default();
        while let Some(next) = open.pop() {
            let read =
                self.assignments.get(&next).into_iter().flatten().flat_map(ConditionalAssignment::reads);
            open.extend(read.filter(|read| sources.insert(*read)));
        }
        sources
    }
}
