//! Following the values of variables along the control flow, for checks that need them.

use super::{State, Value, iterations};
use crate::check::dataflow::{self, Analysis};
use crate::ir::{Expr, Facts, For, Kernel, Loop, LoopExit, Stmt, StmtKind};

/// A check of statements that reads the values of variables.
pub(in crate::check) trait Check {
    /// Looks at a statement, with the values before it.
    fn stmt(&mut self, stmt: &Stmt, facts: &Facts<'_>, state: &State);

    /// Begins an iteration of an unrolled loop.
    fn begin(&mut self, _: &For, _: i128) {}

    /// Ends the iteration that was begun last.
    fn end(&mut self) {}
}

/// Runs a check on the statements of a kernel that threads reach, with these values at its
/// beginning.
pub(in crate::check) fn follow(check: &mut impl Check, kernel: &Kernel, start: State) {
    dataflow::run(&mut Values { check }, &kernel.body, start);
}

struct Values<'c, C> {
    check: &'c mut C,
}

impl<C: Check> Analysis for Values<'_, C> {
    type State = State;

    fn join(&mut self, one: State, other: State, _: &Stmt) -> State {
        one.join(other)
    }

    fn evaluate(&mut self, stmt: &Stmt, facts: &Facts<'_>, state: &State) {
        self.check.stmt(stmt, facts, state);
    }

    /// Statements other than assignments set values that are known at run time only, and that have
    /// no entry before either.
    fn transfer(&mut self, stmt: &Stmt, state: &mut State) {
        if let StmtKind::Assign { local, index, value } = &stmt.kind {
            state.assign(*local, index, value);
        }
    }

    fn decide(&self, by: &Expr, state: &State) -> Value {
        state.of(by)
    }

    fn unrolls(&self, inner: &For) -> Option<Vec<i128>> {
        iterations(inner)
    }

    fn begin(&mut self, inner: &For, iteration: i128, state: &mut State) {
        state.set(inner.variable, Value::int(iteration));
        self.check.begin(inner, iteration);
    }

    fn end(&mut self) {
        self.check.end();
    }

    fn enter(&mut self, inner: Loop<'_>, state: &mut State) {
        inner.blocks().for_each(|block| state.forget(block));
        if let LoopExit::Counted(range) = inner.exit {
            state.set(range.variable, Value::Unknown);
        }
    }
}
