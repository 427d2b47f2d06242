//! Forward analyses along the structured control flow of a kernel.
//!
//! The engine walks statements in order, keeps the facts at jumps until their targets, and joins
//! them there. A branch or a loop that the facts decide is walked as the thread executes it. Other
//! loops are walked once: an analysis first weakens its facts to those that hold before every
//! iteration.

use super::unrolled::Value;
use crate::ir::{Block, Expr, Facts, Flow, For, JumpTarget, Loop, LoopExit, Stmt};
use crate::quick::QuickMap;

/// An analysis: the facts at a point of the kernel, and their changes.
pub(super) trait Analysis {
    /// The facts at a point.
    type State: Clone;

    /// Joins the facts of two paths that meet at a jump, or after a branch or loop.
    fn join(&mut self, one: Self::State, other: Self::State, at: &Stmt) -> Self::State;

    /// Looks at the operands of a statement where they are evaluated.
    fn evaluate(&mut self, _: &Stmt, _: &Facts<'_>, _: &Self::State) {}

    /// Changes the facts by the effect of a statement.
    fn transfer(&mut self, stmt: &Stmt, state: &mut Self::State);

    /// Returns the value that decides a branch, if it is known.
    fn decide(&self, _: &Expr, _: &Self::State) -> Value {
        Value::Unknown
    }

    /// Returns the values of an unrolled loop's variable.
    fn unrolls(&self, _: &For) -> Option<Vec<i128>> {
        None
    }

    /// Begins an iteration of an unrolled loop.
    fn begin(&mut self, _: &For, _: i128, _: &mut Self::State) {}

    /// Ends the iteration that was begun last.
    fn end(&mut self) {}

    /// Weakens the facts before a loop to those before each of its iterations.
    fn enter(&mut self, inner: Loop<'_>, state: &mut Self::State);

    /// Leaves a loop, with the facts before its iterations, at the ends of iterations, and at jumps
    /// out of it.
    fn leave(&mut self, _: &Stmt, _: Loop<'_>, _: &Self::State, _: [Option<Self::State>; 3]) {}

    /// Ends the thread.
    fn finish(&mut self, _: &Self::State) {}
}

/// Runs an analysis from the beginning of a kernel's body.
pub(super) fn run<A: Analysis>(analysis: &mut A, body: &Block, start: A::State) {
    let mut walk = Walk { analysis, jumps: QuickMap::default() };
    if let Some(state) = walk.block(body, Some(start)) {
        walk.analysis.finish(&state);
    }
}

struct Walk<'a, A: Analysis> {
    analysis: &'a mut A,
    /// The facts at jumps whose targets have not been reached.
    jumps: QuickMap<JumpTarget, A::State>,
}

impl<A: Analysis> Walk<'_, A> {
    /// Returns the facts after `block`, or `None` if control does not get there.
    fn block(&mut self, block: &Block, before: Option<A::State>) -> Option<A::State> {
        block.stmts.iter().fold(before, |state, stmt| self.stmt(stmt, state?))
    }

    fn join(&mut self, one: Option<A::State>, other: Option<A::State>, at: &Stmt) -> Option<A::State> {
        match (one, other) {
            (Some(one), Some(other)) => Some(self.analysis.join(one, other, at)),
            (only, None) | (None, only) => only,
        }
    }

    fn jump(&mut self, to: JumpTarget, state: A::State, at: &Stmt) {
        let before = self.jumps.remove(&to);
        let joined = self.join(before, Some(state), at);
        self.jumps.extend(joined.map(|joined| (to, joined)));
    }

    fn stmt(&mut self, stmt: &Stmt, mut state: A::State) -> Option<A::State> {
        let facts = stmt.facts();
        // The operands of a `while` are evaluated after its header.
        if !matches!(facts.flow, Flow::Loop(Loop { exit: LoopExit::WhenFalse(..), .. })) {
            self.analysis.evaluate(stmt, &facts, &state);
        }
        self.analysis.transfer(stmt, &mut state);
        match facts.flow {
            Flow::Fallthrough => return Some(state),
            Flow::If(condition, blocks) => {
                let holds = self.analysis.decide(condition, &state).as_bool();
                let taken = holds.map(|holds| blocks[usize::from(!holds)]);
                return self.branch(stmt, taken, blocks.into_iter(), state);
            }
            Flow::Match(value, arms, otherwise) => {
                let taken =
                    self.analysis.decide(value, &state).as_int().map(|value| {
                        arms.iter().find(|arm| arm.holds(value)).map_or(otherwise, |arm| &arm.body)
                    });
                let blocks = arms.iter().map(|arm| &arm.body).chain([otherwise]);
                return self.branch(stmt, taken, blocks, state);
            }
            Flow::Loop(inner) => {
                return match inner.exit {
                    LoopExit::Counted(range) if let Some(iterations) = self.analysis.unrolls(range) => {
                        self.unrolled(stmt, range, &iterations, state)
                    }
                    LoopExit::Counted(_) | LoopExit::Never | LoopExit::WhenFalse(..) => {
                        self.repeat(stmt, inner, state)
                    }
                };
            }
            Flow::Labelled(label, body) => {
                let end = self.block(body, Some(state));
                let left = self.jumps.remove(&JumpTarget::After(label));
                return self.join(end, left, stmt);
            }
            Flow::Jump(JumpTarget::Return) => self.analysis.finish(&state),
            Flow::Jump(target) => self.jump(target, state, stmt),
            Flow::Trap => {}
        }
        None
    }

    /// Walks the block that is taken, or else all blocks.
    fn branch<'b>(
        &mut self,
        stmt: &Stmt,
        taken: Option<&Block>,
        all: impl Iterator<Item = &'b Block>,
        state: A::State,
    ) -> Option<A::State> {
        if let Some(block) = taken {
            return self.block(block, Some(state));
        }
        all.fold(None, |joined, block| {
            let end = self.block(block, Some(state.clone()));
            self.join(joined, end, stmt)
        })
    }

    /// Walks a loop with an unknown number of iterations.
    fn repeat(&mut self, stmt: &Stmt, inner: Loop<'_>, mut state: A::State) -> Option<A::State> {
        self.analysis.enter(inner, &mut state);
        let mut ended = inner.may_end().then(|| state.clone());
        let mut iteration = Some(state.clone());
        if let LoopExit::WhenFalse(header, _) = inner.exit {
            iteration = self.block(header, iteration);
            if let Some(state) = &iteration {
                self.analysis.evaluate(stmt, &stmt.facts(), state);
            }
            ended.clone_from(&iteration);
        }
        let end = self.block(inner.body, iteration);
        let next = self.jumps.remove(&JumpTarget::NextIteration(inner.label));
        let left = self.jumps.remove(&JumpTarget::After(inner.label));
        self.analysis.leave(stmt, inner, &state, [end, next, left.clone()]);
        self.join(ended, left, stmt)
    }

    /// Walks a loop that is unrolled, with the values of its variable.
    fn unrolled(&mut self, stmt: &Stmt, inner: &For, values: &[i128], before: A::State) -> Option<A::State> {
        let mut state = Some(before);
        for &value in values {
            let Some(mut before) = state else { break };
            self.analysis.begin(inner, value, &mut before);
            let end = self.block(&inner.body, Some(before));
            self.analysis.end();
            let next = self.jumps.remove(&JumpTarget::NextIteration(inner.label));
            state = self.join(end, next, stmt);
        }
        let left = self.jumps.remove(&JumpTarget::After(inner.label));
        self.join(state, left, stmt)
    }
}
