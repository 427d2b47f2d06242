//! Indices after unrolling: those of registers must be known, and those that are known must be in
//! bounds.
//!
//! The walk follows the values of variables along the control flow, iteration by iteration where a
//! loop is unrolled. If it is not known which branch a thread takes, a variable has a value
//! afterwards only if the value is the same on all paths. Other loops are walked for one iteration,
//! before which the variables that they assign are forgotten. Not checked: the bounds of indices
//! that are known at run time only.

mod arrays;
mod follow;
mod values;

pub(super) use arrays::local_arrays;
pub(super) use follow::{Check, follow};
pub(super) use values::{State, Value};

use super::limits::{self, Bound};
use super::mma::{ColumnRange, columns_within, warp};
use crate::diag::Sink;
use crate::diag::mistake::{Mma, RegisterIndex, UnrolledIteration};
use crate::ir::{
    Accessor, Expr, ExprKind, Facts, For, Kernel, LocalId, MemoryObject, Span, Stmt, StmtKind, Type, visit,
};
use crate::quick::QuickSet;

/// Checks the indices of a kernel whose loops are small enough to be unrolled.
pub(super) fn check(kernel: &Kernel, sink: &mut Sink) {
    let mut is_needed = kernel.locals.iter().any(|local| is_in_registers(&local.ty));
    visit::for_each_stmt(&kernel.body, &mut |stmt| {
        is_needed |= matches!(&stmt.kind, StmtKind::For(inner) if inner.unroll);
    });
    if is_needed {
        let mut walk = Walk { kernel, sink, iterations: vec![], reported: QuickSet::default() };
        follow(&mut walk, kernel, State::default());
    }
}

/// Whether a type is held in registers. These have no addresses, so an index must be known.
fn is_in_registers(ty: &Type) -> bool {
    matches!(ty, Type::Accumulator(_) | Type::Rows(_))
}

/// Returns the values of the variable of a loop that is unrolled.
pub(super) fn iterations(inner: &For) -> Option<Vec<i128>> {
    let (start, step) = (inner.start.as_int()?, inner.step.as_int()?);
    let iterations = limits::unrolled_iterations(inner).filter(|_| inner.unroll)?;
    Some((0..iterations).map(|iteration| start + iteration * step).collect())
}

/// A location in the source, as its first and last lines and columns.
type SourceRange = [(usize, usize); 2];

struct Walk<'k, 's> {
    kernel: &'k Kernel,
    sink: &'s mut Sink,
    /// The iterations of the unrolled loops around this point, outermost first.
    iterations: Vec<(LocalId, i128)>,
    /// The indices that were reported. The first iteration is enough.
    reported: QuickSet<SourceRange>,
}

impl Check for Walk<'_, '_> {
    /// Checks the indices in `stmt`.
    fn stmt(&mut self, stmt: &Stmt, facts: &Facts<'_>, state: &State) {
        for operand in visit::operands(&stmt.kind) {
            visit::within(operand, &mut |node| {
                if let ExprKind::Index(of, index) | ExprKind::Stage(of, index) = &node.kind {
                    self.index(&of.ty, index, state);
                }
            });
        }
        for access in &facts.accesses {
            if let (MemoryObject::Shared(object), Accessor::Threads) = (access.object, access.by) {
                for (index, bound) in access.at.iter().zip(limits::bounds(&object.ty)) {
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
            self.columns(*accumulator, first, to.inner_extent(), tile.span, state);
        } else if let StmtKind::StoreMatrix(store) = &stmt.kind {
            self.columns(store.accumulator, &store.first, store.columns, stmt.origin.span, state);
        } else if let StmtKind::LoadFragment(load) = &stmt.kind {
            self.part(warp::loaded_part(self.kernel, load), state);
        } else if let StmtKind::StoreWarp(store) = &stmt.kind {
            self.part(warp::stored_part(self.kernel, store), state);
        }
    }

    fn begin(&mut self, inner: &For, iteration: i128) {
        self.iterations.push((inner.variable, iteration));
    }

    fn end(&mut self) {
        self.iterations.pop();
    }
}

impl Walk<'_, '_> {
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
    fn columns(&mut self, accumulator: LocalId, first: &Expr, count: u32, span: Span, state: &State) {
        let Type::Accumulator(sum) = self.kernel.local(accumulator).ty else { return };
        if first.as_int().is_some() {
            return;
        }
        match state.of(first).as_int() {
            None => self.unknown(first, RegisterIndex::FirstColumn),
            Some(known) => {
                self.report(span, |iterations, sink| {
                    columns_within(sum, ColumnRange { first: known, count }, iterations, span, sink)
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
                limits::outside(value, index.span, bound, iterations, sink)
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
