//! Variables of several parts: a pipeline, its states and slots, a phase.
//!
//! Such a variable is a name for its parts and is no local itself. Shared parts stay references to
//! shared variables, so that the IR names the barrier that is meant. Numbers and parities become
//! separate locals.

use super::aggregate::place::Place;
use super::cx::{Binding, Cx};
use crate::diag::Sink;
use crate::diag::mistake::{Assignment, Mismatch, Mistake};
use crate::ir::{Compound, Expr, ExprKind, LocalId, Span, Type};

impl Cx<'_> {
    /// Binds `name` to `parts`. Parts that are not shared are copied to new locals.
    pub(super) fn bind_compound(&mut self, name: &syn::Ident, mutable: bool, parts: Vec<Expr>, ty: Type) {
        let span = Span::of(name);
        let value = Expr { kind: ExprKind::Compound(parts), ty, span };
        let value = self.stored(&name.to_string(), mutable, value, span);
        self.bind(name, Binding::Compound { value, mutable, is_reference: false });
    }

    /// Copies a value to new locals, except for parts that are not in registers. Their names begin
    /// with `name`.
    pub(super) fn stored(&mut self, name: &str, mutable: bool, value: Expr, span: Span) -> Expr {
        let ty = self.infer.resolve(&value.ty);
        let ExprKind::Compound(parts) = value.kind else {
            let is_constant =
                matches!(value.kind, ExprKind::Const(_) | ExprKind::Shared(_) | ExprKind::Param(_));
            if is_constant && !mutable || !ty.is_storable() {
                return value;
            }
            let (local, read) = self.builder.temporary(name, value.ty.clone(), span);
            self.builder.assign(local, value);
            return read;
        };
        let parts = match &ty {
            Type::Compound(of @ (Compound::Struct(_) | Compound::Tuple(_) | Compound::Array(..))) => {
                let names = of.member_names();
                let all = parts.into_iter().zip(names);
                all.map(|(part, field)| self.stored(&format!("{name}.{field}"), mutable, part, span))
                    .collect()
            }
            // They are parameters.
            Type::Compound(Compound::Option(_)) => parts,
            _ => self.stored_parts(name, parts, span),
        };
        Expr { kind: ExprKind::Compound(parts), ty, span }
    }

    fn stored_parts(&mut self, name: &str, parts: Vec<Expr>, span: Span) -> Vec<Expr> {
        // Flights and columns refer to the accumulator itself, and the slice of a matrix is a
        // parameter.
        let parts = parts.into_iter().map(|part| {
            let is_own = matches!(self.infer.resolve(&part.ty), Type::Accumulator(_) | Type::Global(_));
            if is_own || matches!(part.kind, ExprKind::Shared(_)) {
                return part;
            }
            if let ExprKind::Compound(_) = part.kind {
                return self.stored(name, true, part, span);
            }
            let (local, read) = self.builder.temporary(name, part.ty.clone(), span);
            self.builder.assign(local, part);
            read
        });
        parts.collect()
    }

    /// Assigns `place = value`, where the value has several parts.
    pub(super) fn assign_compound(&mut self, place: &syn::Expr, value: &Expr, span: Span) {
        let Some(Place { name, value: old, mutable }) = self.assigned_compound(place, value) else { return };
        if !mutable {
            return self.not_assignable(&name, span);
        }
        if !self.expect(value, &old.ty) {
            return;
        }
        if let Err(part) = self.overwrite(&old, value) {
            let mistake = match &part {
                Type::Compound(Compound::Matrix(_) | Compound::Option(_)) => {
                    Mismatch::OtherSlice { name }.into()
                }
                Type::Compound(_) => Mismatch::OtherPipeline { name }.into(),
                ty => Mistake::from(Assignment::OtherObject { name, ty: self.infer.partial(ty) }),
            };
            self.error(mistake, value.span);
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
pub(super) fn is_other_shared(old: &Expr, new: &Expr) -> bool {
    match (&old.kind, &new.kind) {
        (ExprKind::Shared(old), ExprKind::Shared(new)) => old != new,
        (ExprKind::Param(old), ExprKind::Param(new)) => old != new,
        (ExprKind::Shared(_), _) | (_, ExprKind::Shared(_)) => true,
        _ => false,
    }
}
