//! Indices after unrolling: those of registers must be known, and those that are known must be in
//! bounds.
//!
//! The walk follows the values of variables along the control flow, iteration by iteration where a
//! loop is unrolled. If it is not known which branch a thread takes, a variable has a value
//! afterwards only if the value is the same on all paths. Other loops are walked for one iteration,
//! before which the variables that they assign are forgotten. Not checked: the bounds of indices
//! that are known at run time only.

mod values;

pub(super) use values::State;

use super::limits::{self, Bound};
use super::mma::{columns_within, warp};
use crate::diag::Sink;
use crate::diag::mistake::{Mma, RegisterIndex, UnrolledIteration};
use crate::ir::{
    Accessor, Block, Expr, ExprKind, Flow, For, Kernel, Label, LocalId, Loop, LoopExit, MemoryObject, Span,
    Stmt, StmtKind, Type, visit,
};
use crate::quick::{QuickMap, QuickSet};
use values::Value;

/// Checks the indices of a kernel whose loops are small enough to be unrolled.
pub(super) fn check(kernel: &Kernel, sink: &mut Sink) {
    let mut is_needed = kernel.locals.iter().any(|local| is_in_registers(&local.ty));
    visit::for_each_stmt(&kernel.body, &mut |stmt| {
        is_needed |= matches!(&stmt.kind, StmtKind::For(inner) if inner.unroll);
    });
    if is_needed {
        let (exits, iterations, reported) = (QuickMap::default(), vec![], QuickSet::default());
        Walk { kernel, sink, exits, iterations, reported }.block(&kernel.body, Some(State::default()));
    }
}

/// Whether a type is held in registers. These have no addresses, so an index must be known.
fn is_in_registers(ty: &Type) -> bool {
    matches!(ty, Type::Accumulator(_) | Type::Rows(_))
}

/// A location in the source, as its first and last lines and columns.
type SourceRange = [(usize, usize); 2];

struct Walk<'k, 's> {
    kernel: &'k Kernel,
    sink: &'s mut Sink,
    /// The states at the jumps that leave each label, and at those that continue its loop.
    exits: QuickMap<Label, Exits>,
    /// The iterations of the unrolled loops around this point, outermost first.
    iterations: Vec<(LocalId, i128)>,
    /// The indices that were reported. The first iteration is enough.
    reported: QuickSet<SourceRange>,
}

#[derive(Default)]
struct Exits {
    leave: Option<State>,
    next: Option<State>,
}

impl Walk<'_, '_> {
    /// Returns the state after `block`, or `None` if control does not get there.
    fn block(&mut self, block: &Block, before: Option<State>) -> Option<State> {
        block.stmts.iter().fold(before, |state, stmt| self.stmt(stmt, state?))
    }

    fn stmt(&mut self, stmt: &Stmt, mut state: State) -> Option<State> {
        if !matches!(stmt.kind, StmtKind::While { .. }) {
            self.judge(stmt, &state);
        }
        match stmt.flow() {
            // Other statements set values that are known at run time only, and that have no entry
            // before either.
            Flow::Fallthrough => {
                if let StmtKind::Assign { local, index, value } = &stmt.kind {
                    state.assign(*local, index, value);
                }
                Some(state)
            }
            Flow::If(condition, [then, otherwise]) => match state.of(condition).as_bool() {
                Some(true) => self.block(then, Some(state)),
                Some(false) => self.block(otherwise, Some(state)),
                None => {
                    let one = self.block(then, Some(state.clone()));
                    State::join(one, self.block(otherwise, Some(state)))
                }
            },
            Flow::Match(value, arms, otherwise) => match state.of(value).as_int() {
                Some(value) => {
                    let arm = arms.iter().find(|arm| arm.holds(value));
                    self.block(arm.map_or(otherwise, |arm| &arm.body), Some(state))
                }
                None => {
                    let blocks = arms.iter().map(|arm| &arm.body).chain([otherwise]);
                    blocks.fold(None, |joined, block| {
                        State::join(joined, self.block(block, Some(state.clone())))
                    })
                }
            },
            Flow::Loop(inner) => match inner.exit {
                LoopExit::Counted(range) if let Some(iterations) = iterations(range) => {
                    self.unrolled(range, iterations, state)
                }
                LoopExit::Counted(_) | LoopExit::Never | LoopExit::WhenFalse(..) => {
                    self.repeat(stmt, inner, state)
                }
            },
            Flow::Labelled(label, body) => {
                self.exits.insert(label, Exits::default());
                let end = self.block(body, Some(state));
                let left = self.exits.remove(&label).and_then(|exits| exits.leave);
                State::join(end, left)
            }
            Flow::After(label) => {
                let exits = self.exits.entry(label).or_default();
                exits.leave = State::join(exits.leave.take(), Some(state));
                None
            }
            Flow::NextIteration(label) => {
                let exits = self.exits.entry(label).or_default();
                exits.next = State::join(exits.next.take(), Some(state));
                None
            }
            Flow::Return | Flow::Trap => None,
        }
    }

    /// Walks a loop with an unknown number of iterations.
    fn repeat(&mut self, stmt: &Stmt, inner: Loop<'_>, before: State) -> Option<State> {
        let mut state = before;
        inner.blocks().for_each(|block| state.forget(block));
        let mut ended = inner.may_end().then(|| state.clone());
        if let LoopExit::Counted(range) = inner.exit {
            state.set(range.variable, Value::Unknown);
        }
        self.exits.insert(inner.label, Exits::default());
        let mut iteration = Some(state);
        if let LoopExit::WhenFalse(header, _) = inner.exit {
            iteration = self.block(header, iteration);
            if let Some(state) = &iteration {
                // The condition reads values that the header computes.
                self.judge(stmt, state);
            }
            ended.clone_from(&iteration);
        }
        self.block(inner.body, iteration);
        let leave = self.exits.remove(&inner.label).and_then(|exits| exits.leave);
        State::join(ended, leave)
    }

    /// Walks a loop that is unrolled, with the values of its variable.
    fn unrolled(
        &mut self,
        inner: &For,
        iterations: impl Iterator<Item = i128>,
        before: State,
    ) -> Option<State> {
        self.exits.insert(inner.label, Exits::default());
        let mut state = Some(before);
        for iteration in iterations {
            let Some(state) = &mut state else { break };
            state.set(inner.variable, Value::int(iteration));
            self.iterations.push((inner.variable, iteration));
            let end = self.block(&inner.body, Some(std::mem::take(state)));
            self.iterations.pop();
            let next = self.exits.get_mut(&inner.label).and_then(|exits| exits.next.take());
            match State::join(end, next) {
                Some(next) => *state = next,
                None => return self.exits.remove(&inner.label).and_then(|exits| exits.leave),
            }
        }
        let leave = self.exits.remove(&inner.label).and_then(|exits| exits.leave);
        State::join(state, leave)
    }

    /// Checks the indices in `stmt`.
    fn judge(&mut self, stmt: &Stmt, state: &State) {
        for operand in visit::operands(&stmt.kind) {
            visit::within(operand, &mut |node| {
                if let ExprKind::Index(of, index) | ExprKind::Stage(of, index) = &node.kind {
                    self.index(&of.ty, index, state);
                }
            });
        }
        for access in stmt.facts().accesses {
            if let (MemoryObject::Shared(object), Accessor::Threads) = (access.object, access.by) {
                for (index, bound) in access.at.into_iter().zip(limits::bounds(&object.ty)) {
                    self.within(index, bound, state);
                }
            }
        }
        if let StmtKind::Assign { local, index: indices, value: _ } = &stmt.kind {
            let mut ty = self.kernel.local(*local).ty.clone();
            for index in indices {
                self.index(&ty, index, state);
                ty = ty.elements().map_or(Type::Error, |(element, _)| element);
            }
        } else if let StmtKind::StoreAccumulator { accumulator, first, tile } = &stmt.kind
            && let Type::Tile(to) = &tile.ty
        {
            self.columns(*accumulator, (first, to.inner_extent()), tile.span, state);
        } else if let StmtKind::StoreMatrix(store) = &stmt.kind {
            self.columns(store.accumulator, (&store.first, store.columns), stmt.origin.span, state);
        } else if let StmtKind::LoadFragment(load) = &stmt.kind {
            self.part(warp::loaded_part(self.kernel, load), state);
        } else if let StmtKind::StoreWarp(store) = &stmt.kind {
            self.part(warp::stored_part(self.kernel, store), state);
        }
    }

    /// Checks where a part of a tile begins.
    fn part(&mut self, part: Option<warp::Part<'_>>, state: &State) {
        let Some(part) = part else { return };
        for (dimension, at) in part.at.iter().enumerate() {
            if let (None, Some(first)) = (at.as_int(), state.of(at).as_int()) {
                self.report(at.span, |iterations, sink| part.within(dimension, first, iterations, sink));
            }
        }
    }

    /// Checks columns of an accumulator: the first one, and their number.
    fn columns(&mut self, accumulator: LocalId, (first, count): (&Expr, u32), span: Span, state: &State) {
        let Type::Accumulator(sum) = self.kernel.local(accumulator).ty else { return };
        if first.as_int().is_some() {
            return;
        }
        match state.of(first).as_int() {
            None => self.unknown(first, RegisterIndex::FirstColumn),
            Some(known) => {
                self.report(span, |iterations, sink| {
                    columns_within(sum, (known, count), iterations, span, sink)
                });
            }
        }
    }

    /// Checks an index into a value of this type. Constants were checked with their expressions.
    fn index(&mut self, of: &Type, index: &Expr, state: &State) {
        if is_in_registers(of) && state.of(index).as_int().is_none() {
            self.unknown(index, RegisterIndex::Element);
        } else if let Some(bound) = limits::bound(of) {
            self.within(index, bound, state);
        }
    }

    fn within(&mut self, index: &Expr, bound: Bound, state: &State) {
        if let (None, Some(value)) = (index.as_int(), state.of(index).as_int()) {
            self.report(index.span, |iterations, sink| {
                limits::outside(value, index.span, (bound, iterations), sink)
            });
        }
    }

    fn unknown(&mut self, index: &Expr, kind: RegisterIndex) {
        self.sink.error(Mma::Unknown(kind), index.span);
    }

    /// Lets `judge` report a mistake, with the current iterations, if nothing was reported at this
    /// location.
    fn report(&mut self, span: Span, judge: impl FnOnce(&[UnrolledIteration], &mut Sink) -> bool) {
        let location = [span.start(), span.end()].map(|location| (location.line, location.column));
        if self.reported.contains(&location) {
            return;
        }
        let iteration = |&(variable, value): &(LocalId, i128)| {
            let variable = self.kernel.local(variable).name.clone();
            UnrolledIteration { variable, value }
        };
        let iterations: Vec<_> = self.iterations.iter().map(iteration).collect();
        if judge(&iterations, self.sink) {
            self.reported.insert(location);
        }
    }
}

/// Returns the values that the variable of a loop takes, if the loop is unrolled.
fn iterations(inner: &For) -> Option<impl Iterator<Item = i128> + use<>> {
    let (start, step) = (inner.start.as_int()?, inner.step.as_int()?);
    let iterations = limits::unrolled_iterations(inner).filter(|_| inner.unroll)?;
    Some((0..iterations).map(move |iteration| start + iteration * step))
}
