//! The slice of a kernel as a list of steps with jumps. A thread executes one step after the other,
//! and can stop at any of them.

mod polls;
mod reads;

use tma_front::ir::{
    BarrierOp, Block, Effect, Expr, ExprKind, Fence, Flow, For, JumpTarget, Kernel, Label, LocalId, Loop,
    LoopExit, Stmt, StmtId, StmtKind, visit,
};
use tma_front::quick::{QuickMap, QuickSet};

use super::slice::Slice;

pub(super) use self::reads::Used;

/// The steps of a kernel.
#[derive(Debug)]
pub(super) struct Steps<'k> {
    steps: Vec<Step<'k>>,
    /// The polls that a loop does nothing but repeat. They are followed as waits.
    polls: QuickSet<StmtId>,
    /// The number of `for` loops. Each has a counter, an end and a step beside its variable.
    pub(super) counters: usize,
    pub(super) slice: Slice,
    /// The variables that matter. Each group of threads holds their values in this order.
    pub(super) variables: Vec<LocalId>,
    /// The index of each variable of the kernel in `variables`.
    variable_indices: Vec<Option<usize>>,
    /// The loops that contain a loop whose number of iterations is not constant.
    outer: QuickSet<StmtId>,
    /// The loops in which nothing synchronises.
    silent: QuickSet<StmtId>,
    /// Statements that the source trusts. They are not judged.
    trusted: QuickSet<StmtId>,
    /// Whether the kernel may invalidate an mbarrier.
    invalidates: bool,
    /// Whether an access of the kernel acquires what others release. That order is not followed.
    pub(super) acquires: bool,
    /// For reads of global memory that copies also access, whether the value is used before the
    /// thread synchronises.
    pub(super) used: QuickMap<StmtId, Used>,
    /// Whether copies use tensor maps in memory.
    pub(super) uses_maps: bool,
    /// Whether blocks access the shared memory of other blocks.
    pub(super) is_remote: bool,
    /// The jumps that belong to `return` statements, by step.
    returns: QuickMap<usize, StmtId>,
}

/// A step, and the loops around it, innermost last.
#[derive(Debug)]
pub(super) struct Step<'k> {
    pub(super) op: Op<'k>,
    pub(super) loops: Vec<StmtId>,
}

/// The operation of a step.
#[derive(Clone, Debug)]
pub(super) enum Op<'k> {
    /// Executes a statement that contains no other statements.
    Do(&'k Stmt),
    /// Continues if the condition holds, and jumps to `otherwise` if not.
    Branch {
        stmt: &'k Stmt,
        condition: &'k Expr,
        otherwise: usize,
        ends: LoopEnding,
    },
    /// Jumps to the first arm with a range that contains the value.
    Choose {
        stmt: &'k Stmt,
        value: &'k Expr,
        arms: Vec<Target>,
        otherwise: usize,
    },
    /// Evaluates the bounds of a `for`.
    Begin {
        inner: &'k For,
        counter: usize,
    },
    /// Begins an iteration of a `for`, or jumps to `end`.
    Count {
        stmt: &'k Stmt,
        inner: &'k For,
        counter: usize,
        end: usize,
    },
    /// Advances the counter of a `for`.
    Next {
        counter: usize,
    },
    /// Enters a loop, before its first iteration.
    Enter(StmtId),
    /// Begins an iteration of a loop.
    BeginIteration(StmtId),
    Jump(usize),
    /// Ends the thread.
    End,
}

/// The outcome of a branch that ends a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoopEnding {
    /// The one where the condition holds.
    Then,
    /// The one where the condition does not hold.
    Otherwise,
    /// Neither, but the rest of the iteration is skipped where the condition holds.
    Iteration,
    /// Neither.
    Neither,
}

/// Ranges of values, and the step to jump to.
pub(super) type Target = (Vec<(i128, i128)>, usize);

impl<'k> Steps<'k> {
    /// Flattens the slice of a kernel.
    pub(super) fn of(kernel: &'k Kernel) -> Self {
        let mut flat = Flattener {
            body: &kernel.body,
            slice: Slice::of(kernel),
            steps: vec![],
            loops: vec![],
            polls: QuickSet::default(),
            counters: 0,
            open: vec![],
            targets: QuickMap::default(),
            returns: QuickMap::default(),
        };
        flat.block(&kernel.body);
        let end = flat.steps.len();
        flat.targets.insert(JumpTarget::Return, end);
        flat.push(Op::End);
        for (step, exit) in std::mem::take(&mut flat.open) {
            if let (Some(&to), Some(step)) = (flat.targets.get(&exit), flat.steps.get_mut(step)) {
                step.op = Op::Jump(to);
            }
        }
        let Flattener { slice, steps, polls, counters, returns, .. } = flat;
        let (mut trusted, mut acquires) = (QuickSet::default(), false);
        let (mut has_atomics, mut has_fences, mut uses_maps) = (false, false, false);
        visit::for_each_stmt(&kernel.body, &mut |stmt| {
            acquires |= matches!(&stmt.kind, StmtKind::Atomic(atomic) if atomic.order.acquires());
            has_atomics |= matches!(stmt.kind, StmtKind::Atomic(_));
            has_fences |= matches!(stmt.kind, StmtKind::Fence(Fence::Memory));
            uses_maps |= matches!(&stmt.kind, StmtKind::TileCopy(copy) if copy.map.index.is_some());
            if kernel.is_trusted(stmt.origin) {
                trusted.insert(stmt.id);
            }
        });
        let (mut variables, mut variable_indices) = (vec![], vec![]);
        for local in (0..).map(LocalId).take(kernel.locals.len()) {
            let needed = slice.needs(local);
            variable_indices.push(needed.then_some(variables.len()));
            variables.extend(needed.then_some(local));
        }
        let (outer, silent) = (outer(&steps), silent(&steps));
        let used = reads::used(kernel, &slice);
        let invalidates = |step: &Step<'_>| {
            matches!(step.op, Op::Do(stmt)
                if matches!(stmt.kind, StmtKind::Barrier { op: BarrierOp::Invalidate, .. }))
        };
        let invalidates = steps.iter().any(invalidates);
        Self {
            steps,
            polls,
            counters,
            slice,
            variables,
            variable_indices,
            outer,
            silent,
            trusted,
            invalidates,
            // A fence after a relaxed read acquires as well.
            acquires: acquires || has_atomics && has_fences,
            used,
            uses_maps,
            is_remote: names_others(kernel),
            returns,
        }
    }

    /// Whether the kernel may invalidate an mbarrier.
    pub(super) fn invalidates(&self) -> bool {
        self.invalidates
    }

    /// Whether there is a loop as in [`is_outer`](Self::is_outer).
    pub(super) fn has_outer(&self) -> bool {
        !self.outer.is_empty()
    }

    /// Whether a loop contains a loop whose number of iterations is not constant.
    pub(super) fn is_outer(&self, of: StmtId) -> bool {
        self.outer.contains(&of)
    }

    /// Whether nothing synchronises in a loop. Such a loop searches, accumulates, or copies element
    /// by element.
    pub(super) fn is_silent(&self, of: StmtId) -> bool {
        self.silent.contains(&of)
    }

    /// Returns the index of a variable in `variables`, if the variable matters.
    pub(super) fn variable_index(&self, LocalId(local): LocalId) -> Option<usize> {
        *self.variable_indices.get(local as usize)?
    }

    /// Whether the source trusts a statement, so that it is not judged.
    pub(super) fn trusts(&self, stmt: StmtId) -> bool {
        self.trusted.contains(&stmt)
    }

    /// Whether the source trusts any statement.
    pub(super) fn trusts_any(&self) -> bool {
        !self.trusted.is_empty()
    }

    /// Returns the step at an index.
    pub(super) fn step(&self, at: usize) -> &Step<'k> {
        &self.steps[at]
    }

    /// Returns the `return` statement that the jump at an index belongs to.
    pub(super) fn returns(&self, at: usize) -> Option<StmtId> {
        self.returns.get(&at).copied()
    }

    /// Whether a poll is followed as a wait.
    pub(super) fn is_wait(&self, poll: StmtId) -> bool {
        self.polls.contains(&poll)
    }

    /// Returns all steps.
    pub(super) fn steps(&self) -> impl Iterator<Item = &Step<'k>> {
        self.steps.iter()
    }
}

/// Returns the loops that contain a loop whose number of iterations is not constant.
fn outer(steps: &[Step<'_>]) -> QuickSet<StmtId> {
    let is_constant = |inner: &For| {
        [&inner.start, &inner.end, &inner.step].iter().all(|bound| matches!(bound.kind, ExprKind::Const(_)))
    };
    let mut constant = QuickSet::default();
    for step in steps {
        if let Op::Count { stmt, inner, .. } = step.op
            && is_constant(inner)
        {
            constant.insert(stmt.id);
        }
    }
    let around = steps.iter().filter_map(|step| step.loops.split_last());
    around.filter(|(inner, _)| !constant.contains(inner)).flat_map(|(_, outer)| outer).copied().collect()
}

/// Returns the loops in which nothing synchronises.
fn silent(steps: &[Step<'_>]) -> QuickSet<StmtId> {
    let is_loud = |step: &&Step<'_>| matches!(step.op, Op::Do(stmt) if !is_silent(stmt));
    let loud: QuickSet<StmtId> =
        steps.iter().filter(is_loud).flat_map(|step| step.loops.iter().copied()).collect();
    let all = steps.iter().flat_map(|step| step.loops.iter().copied());
    all.filter(|of| !loud.contains(of)).collect()
}

/// Whether a statement only computes or accesses memory, for a thread or a warp.
fn is_silent(stmt: &Stmt) -> bool {
    match stmt.facts().effect {
        Effect::Local | Effect::Loads | Effect::Stores | Effect::Strong | Effect::Exchanges => true,
        Effect::Orders | Effect::Visible => false,
    }
}

struct Flattener<'k> {
    body: &'k Block,
    slice: Slice,
    steps: Vec<Step<'k>>,
    loops: Vec<StmtId>,
    polls: QuickSet<StmtId>,
    counters: usize,
    /// Jumps whose targets are not known yet.
    open: Vec<(usize, JumpTarget)>,
    targets: QuickMap<JumpTarget, usize>,
    returns: QuickMap<usize, StmtId>,
}

impl<'k> Flattener<'k> {
    fn push(&mut self, op: Op<'k>) -> usize {
        self.steps.push(Step { op, loops: self.loops.clone() });
        self.steps.len() - 1
    }

    fn block(&mut self, block: &'k Block) {
        for stmt in &block.stmts {
            if self.slice.keeps(stmt) {
                self.stmt(stmt);
            }
        }
    }

    /// Emits a jump to an exit.
    fn leave(&mut self, exit: JumpTarget) {
        let step = self.push(Op::Jump(0));
        self.open.push((step, exit));
    }

    fn here(&mut self, exit: JumpTarget) {
        self.targets.insert(exit, self.steps.len());
    }

    /// Sets the jump target of a step to the next step that is emitted.
    fn set_otherwise(&mut self, step: usize) {
        let here = self.steps.len();
        if let Some(step) = self.steps.get_mut(step) {
            match &mut step.op {
                Op::Branch { otherwise, .. } | Op::Choose { otherwise, .. } => *otherwise = here,
                Op::Count { end, .. } => *end = here,
                Op::Jump(to) => *to = here,
                Op::Do(_)
                | Op::Begin { .. }
                | Op::Next { .. }
                | Op::Enter(_)
                | Op::BeginIteration(_)
                | Op::End => {}
            }
        }
    }

    fn stmt(&mut self, stmt: &'k Stmt) {
        match stmt.flow() {
            Flow::Fallthrough | Flow::Trap => _ = self.push(Op::Do(stmt)),
            Flow::If(condition, [then, otherwise]) => {
                let ends = match (leaves(then), leaves(otherwise)) {
                    (true, _) => LoopEnding::Then,
                    (false, true) => LoopEnding::Otherwise,
                    (false, false) if continues(then) => LoopEnding::Iteration,
                    (false, false) => LoopEnding::Neither,
                };
                let branch = self.push(Op::Branch { stmt, condition, otherwise: 0, ends });
                self.block(then);
                let over = self.push(Op::Jump(0));
                self.set_otherwise(branch);
                self.block(otherwise);
                self.set_otherwise(over);
            }
            Flow::Match(value, arms, otherwise) => {
                let choose = self.push(Op::Choose { stmt, value, arms: vec![], otherwise: 0 });
                let (mut targets, mut ends) = (vec![], vec![]);
                for arm in arms {
                    targets.push((arm.ranges.clone(), self.steps.len()));
                    self.block(&arm.body);
                    ends.push(self.push(Op::Jump(0)));
                }
                self.set_otherwise(choose);
                if let Some(Step { op: Op::Choose { arms, .. }, .. }) = self.steps.get_mut(choose) {
                    *arms = targets;
                }
                self.block(otherwise);
                ends.into_iter().for_each(|end| self.set_otherwise(end));
            }
            Flow::Loop(Loop { exit: LoopExit::Counted(inner), .. }) => self.count(stmt, inner),
            Flow::Loop(Loop { label, exit: LoopExit::Never, body }) => {
                self.repeat(stmt, label, |flat| flat.block(body));
            }
            Flow::Loop(Loop { label, exit: LoopExit::WhenFalse(header, condition), body }) => {
                self.repeat(stmt, label, |flat| {
                    flat.block(header);
                    let ends = LoopEnding::Otherwise;
                    let branch = flat.push(Op::Branch { stmt, condition, otherwise: 0, ends });
                    flat.block(body);
                    flat.leave(JumpTarget::NextIteration(label));
                    flat.set_otherwise(branch);
                    flat.leave(JumpTarget::After(label));
                });
            }
            Flow::Labelled(label, body) => {
                self.block(body);
                self.here(JumpTarget::After(label));
            }
            Flow::Jump(target) => {
                if target == JumpTarget::Return {
                    self.returns.insert(self.steps.len(), stmt.id);
                }
                self.leave(target);
            }
        }
    }

    /// Emits a loop without a counter.
    fn repeat(&mut self, stmt: &'k Stmt, label: Label, body: impl FnOnce(&mut Self)) {
        self.polls.extend(polls::only_poll(stmt, self.body, &self.slice));
        self.loops.push(stmt.id);
        self.push(Op::Enter(stmt.id));
        self.here(JumpTarget::NextIteration(label));
        self.push(Op::BeginIteration(stmt.id));
        body(self);
        self.leave(JumpTarget::NextIteration(label));
        self.loops.pop();
        self.here(JumpTarget::After(label));
    }

    fn count(&mut self, stmt: &'k Stmt, inner: &'k For) {
        let counter = self.counters;
        self.counters += 1;
        self.push(Op::Begin { inner, counter });
        self.loops.push(stmt.id);
        self.push(Op::Enter(stmt.id));
        let top = self.steps.len();
        let count = self.push(Op::Count { stmt, inner, counter, end: 0 });
        self.push(Op::BeginIteration(stmt.id));
        self.block(&inner.body);
        self.here(JumpTarget::NextIteration(inner.label));
        self.push(Op::Next { counter });
        self.push(Op::Jump(top));
        self.loops.pop();
        self.set_otherwise(count);
        self.here(JumpTarget::After(inner.label));
    }
}

/// Whether a block ends by leaving a loop, or by ending the thread.
fn leaves(block: &Block) -> bool {
    block
        .stmts
        .last()
        .is_some_and(|stmt| matches!(stmt.flow(), Flow::Jump(JumpTarget::After(_) | JumpTarget::Return)))
}

/// Whether a block ends by continuing with the next iteration.
fn continues(block: &Block) -> bool {
    block.stmts.last().is_some_and(|stmt| matches!(stmt.flow(), Flow::Jump(JumpTarget::NextIteration(_))))
}

/// Whether a kernel names the shared memory of other blocks.
fn names_others(kernel: &Kernel) -> bool {
    let mut any = false;
    visit::for_each_stmt(&kernel.body, &mut |stmt| {
        for operand in visit::operands(&stmt.kind) {
            visit::within(operand, &mut |part| any |= matches!(part.kind, ExprKind::Remote(..)));
        }
    });
    any
}
