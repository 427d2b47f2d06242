//! Variables of several parts: a pipeline, its states and slots, a phase.
//!
//! Such a variable is a name for its parts and is no local itself. Shared parts stay references to
//! shared variables, so that the IR names the barrier that is meant. Numbers and parities become
//! separate locals.

use super::cx::{Binding, Cx};
use super::stmt::not_assignable;
use crate::diag::Sink;
use crate::diag::mistake::{Assignment, Mismatch};
use crate::ir::{Compound, Expr, ExprKind, LocalId, Span, Type};

impl Cx<'_> {
    /// Binds `name` to `parts`. Parts that are not shared are copied to new locals.
    pub(super) fn bind_compound(&mut self, name: &syn::Ident, mutable: bool, parts: Vec<Expr>, ty: Type) {
        let span = Span::of(name);
        // Flights and columns refer to the accumulator itself, and the slice of a matrix is a
        // parameter.
        let parts = parts.into_iter().map(|part| {
            let is_own = matches!(self.infer.resolve(&part.ty), Type::Accumulator(_) | Type::Global(_));
            if is_own || matches!(part.kind, ExprKind::Shared(_)) {
                return part;
            }
            let (local, read) = self.builder.temporary(&name.to_string(), part.ty.clone(), span);
            self.builder.assign(local, part);
            read
        });
        let value = Expr { kind: ExprKind::Compound(parts.collect()), ty, span };
        self.bind(name, Binding::Compound { value, mutable, is_reference: false });
    }

    /// Assigns `place = value`, where the value has several parts.
    pub(super) fn assign_compound(&mut self, place: &syn::Expr, parts: &[Expr], value: &Expr, span: Span) {
        let target = match place {
            syn::Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Deref(_)) => &*unary.expr,
            other => other,
        };
        let name = match target {
            syn::Expr::Path(path) => path.path.get_ident().map(ToString::to_string),
            _ => None,
        };
        let Some(name) = name else {
            self.error(Assignment::NoVariable, Span::of(place));
            return;
        };
        let (old, mutable) = match self.frames.lookup(&name) {
            Some(Binding::Compound { value, mutable, .. }) => (value.clone(), *mutable),
            Some(Binding::Value(Expr { kind: ExprKind::Error, .. })) => return,
            Some(_) => {
                let ty = self.infer.partial(&value.ty);
                self.error(Mismatch::CannotHold { name, ty }, value.span);
                return;
            }
            None => {
                self.unknown_name(&name, Span::of(place));
                return;
            }
        };
        if !mutable {
            return not_assignable(self.sink, &name, span);
        }
        let ExprKind::Compound(old_parts) = &old.kind else { return };
        if !self.expect(value, &old.ty) {
            return;
        }
        let pairs: Vec<_> = old_parts.iter().zip(parts).collect();
        if pairs.iter().any(|(old, new)| is_other_shared(old, new)) {
            let mistake = match value.ty {
                Type::Compound(Compound::Matrix(_)) => Mismatch::OtherSlice { name },
                _ => Mismatch::OtherPipeline { name },
            };
            self.error(mistake, value.span);
            return;
        }
        for (old, new) in pairs {
            if let ExprKind::Local(local) = old.kind
                && !matches!(self.infer.resolve(&old.ty), Type::Accumulator(_))
            {
                self.builder.assign(local, new.clone());
            }
        }
    }
}

/// Creates a value of several parts.
pub(super) fn compound(compound: Compound, parts: Vec<Expr>, span: Span) -> Expr {
    Expr { kind: ExprKind::Compound(parts), ty: Type::Compound(compound), span }
}

/// Returns the local that holds `part`. Reports a modification of a temporary.
pub(super) fn state(sink: &mut Sink, part: &Expr, span: Span) -> Option<LocalId> {
    match part.kind {
        ExprKind::Local(local) => Some(local),
        ExprKind::Error => None,
        _ => {
            sink.error(Assignment::Temporary, span);
            None
        }
    }
}

/// Whether two parts of the same kind are different shared variables or parameters.
fn is_other_shared(old: &Expr, new: &Expr) -> bool {
    match (&old.kind, &new.kind) {
        (ExprKind::Shared(old), ExprKind::Shared(new)) => old != new,
        (ExprKind::Param(old), ExprKind::Param(new)) => old != new,
        (ExprKind::Shared(_), _) | (_, ExprKind::Shared(_)) => true,
        _ => false,
    }
}
