//! Places: variables, and the fields of them.

use super::result::is_same_object;
use super::{leaves, leaves_with_holders};
use crate::diag::mistake::{Assignment, Mismatch};
use crate::ir::{Compound, Expr, ExprKind, LocalId, Span, Type};
use crate::parse::compound::is_other_shared;
use crate::parse::cx::{Binding, Cx};
use crate::parse::device::own_variable;
use crate::parse::order::{held, spill_if_changed, spill_written};
use crate::parse::span;
use crate::parse::stmt::unit;
use crate::quick::QuickSet;

/// A variable, or a field of one.
pub(in crate::parse) struct Place {
    /// The name of the variable.
    pub(in crate::parse) name: String,
    /// The local, or the tree of parts.
    pub(in crate::parse) value: Expr,
    /// Whether it may be modified.
    pub(in crate::parse) mutable: bool,
}

impl Cx<'_> {
    /// Resolves `p`, `p.row`, `(*p).row` and the like. Returns `None` for all other expressions,
    /// and reports nothing.
    pub(in crate::parse) fn place(&mut self, expr: &syn::Expr) -> Option<Place> {
        match expr {
            syn::Expr::Paren(paren) => self.place(&paren.expr),
            syn::Expr::Group(group) => self.place(&group.expr),
            syn::Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Deref(_)) => {
                self.is_reference(&unary.expr).then(|| self.place(&unary.expr))?
            }
            syn::Expr::Path(path) => {
                let (name, span) = (own_variable(path)?, span::of_expr(expr));
                let (value, mutable) = match self.frames.lookup(&name)?.clone() {
                    Binding::Local { id, mutable } | Binding::Reference { id, mutable } => {
                        (self.builder.read(id, span), mutable)
                    }
                    Binding::Compound { value, mutable, .. } => (Expr { span, ..value }, mutable),
                    Binding::Value(value) => (Expr { span, ..value }, false),
                };
                Some(Place { name, value, mutable })
            }
            syn::Expr::Field(field) => {
                let base = self.place(&field.base)?;
                let (Type::Compound(of), ExprKind::Compound(parts)) = (&base.value.ty, &base.value.kind)
                else {
                    return None;
                };
                let part = parts.get(of.position_of(&span::member_text(&field.member))?)?;
                let value = Expr { span: span::of_expr(expr), ..part.clone() };
                Some(Place { value, ..base })
            }
            syn::Expr::Index(index) => {
                let base = self.place(&index.expr)?;
                let (Type::Compound(Compound::Array(..)), ExprKind::Compound(parts)) =
                    (&base.value.ty, &base.value.kind)
                else {
                    return None;
                };
                let (effects, position) = self.block(|cx| cx.expr(&index.index));
                self.builder.append(effects);
                let value = self.element(parts, &position, span::of_expr(expr));
                Some(Place { value, ..base })
            }
            _ => None,
        }
    }

    /// Evaluates an expression that rustc dereferences on its own: the base of a field, the array
    /// that is indexed, or the receiver of a method.
    pub(in crate::parse) fn dereferenced(&mut self, expr: &syn::Expr) -> Expr {
        match expr {
            syn::Expr::Paren(paren) => self.dereferenced(&paren.expr),
            _ if self.is_reference(expr) => {
                self.place(expr).map_or(Expr::error(Span::of(expr)), |at| at.value)
            }
            _ => self.expr(expr),
        }
    }

    /// Whether it is the name of a parameter that is a reference.
    pub(in crate::parse) fn is_reference(&self, expr: &syn::Expr) -> bool {
        match expr {
            syn::Expr::Paren(paren) => self.is_reference(&paren.expr),
            syn::Expr::Path(path) => own_variable(path).is_some_and(|name| {
                matches!(
                    self.frames.lookup(&name),
                    Some(Binding::Reference { .. } | Binding::Compound { is_reference: true, .. })
                )
            }),
            _ => false,
        }
    }

    /// Resolves a field as the target of an assignment, and returns the local that holds it.
    pub(in crate::parse) fn assigned_field(&mut self, expr: &syn::Expr, span: Span) -> Option<LocalId> {
        let Some(Place { name, value, mutable }) = self.place(expr) else {
            // Reports what is wrong with the field or its base, if anything is.
            if !self.expr(expr).is_error() {
                self.error(Assignment::NotAssignable, span);
            }
            return None;
        };
        if value.is_error() {
            return None;
        }
        if !mutable {
            self.not_assignable(&name, span);
            return None;
        }
        match value.kind {
            ExprKind::Local(id) => Some(id),
            ExprKind::Compound(_) => {
                let ty = self.infer.partial(&value.ty);
                self.error(Mismatch::Holds { name, ty }, span);
                None
            }
            _ => {
                let ty = self.infer.partial(&value.ty);
                self.error(Assignment::OtherObject { name, ty }, span);
                None
            }
        }
    }

    /// Assigns the parts of `value` to those of `old`, which has the same type. Returns the
    /// type of a part that is not in registers, if it differs.
    pub(in crate::parse) fn overwrite(&mut self, old: &Expr, value: &Expr) -> Result<(), Type> {
        let mut values: Vec<_> = leaves(value).into_iter().cloned().collect();
        let targets = leaves_with_holders(old);
        let mut written = QuickSet::default();
        for (old, new) in targets.iter().zip(&mut values) {
            let target = if let ExprKind::Local(id) = old.value.kind { Some(id) } else { None };
            let is_own = |value: &Expr| matches!(value.kind, ExprKind::Local(id) if Some(id) == target);
            // A part that refers to an accumulator is no copy of it.
            let is_accumulator = matches!(self.infer.resolve(&old.value.ty), Type::Accumulator(_));
            let is_other = match old.of {
                Some(_) if is_accumulator => !is_own(new),
                Some(_) => is_other_shared(old.value, new),
                None => target.is_none() && !is_same_object(old.value, new),
            };
            if is_other {
                return Err(old.ty().clone());
            }
            if !is_own(new) {
                spill_written(&mut self.builder, std::slice::from_mut(new), &written);
            }
            written.extend(target);
        }
        for (old, new) in targets.into_iter().zip(values) {
            match old.value.kind {
                ExprKind::Local(id) if !matches!(new.kind, ExprKind::Local(from) if from == id) => {
                    self.builder.assign(id, new);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Parses `(a, b) = value` and the like. All values are read before the first is assigned.
    pub(in crate::parse) fn destructuring_assignment(
        &mut self,
        assign: &syn::ExprAssign,
        span: Span,
    ) -> Expr {
        let value = self.expr(&assign.right);
        if value.is_error() {
            return Expr::error(span);
        }
        if value.ty == Type::Never {
            return Expr { ty: Type::Never, ..unit(span) };
        }
        let value = held(self, value);
        self.assign_parts(&assign.left, value, span);
        unit(span)
    }

    fn assign_parts(&mut self, target: &syn::Expr, value: Expr, span: Span) {
        match target {
            syn::Expr::Infer(_) => {}
            syn::Expr::Paren(paren) => self.assign_parts(&paren.expr, value, span),
            syn::Expr::Tuple(tuple) => {
                let parts = match (self.infer.resolve(&value.ty), &value.kind) {
                    (Type::Compound(Compound::Tuple(_)), ExprKind::Compound(parts)) => parts.clone(),
                    (Type::Error, _) => return,
                    (other, _) => {
                        let found = self.infer.partial(&other);
                        return self.error(Mismatch::NoTuple { found }, Span::of(target));
                    }
                };
                self.assign_elements(tuple.elems.iter(), parts, Span::of(target));
            }
            syn::Expr::Array(array) => {
                if let Some(elements) = self.array_parts(value, Span::of(target)) {
                    self.assign_elements(array.elems.iter(), elements, Span::of(target));
                }
            }
            syn::Expr::Struct(_) | syn::Expr::Call(_) | syn::Expr::Range(_) => {
                self.error(Assignment::NotAssignable, Span::of(target));
            }
            target => self.assign_value(target, value, span),
        }
    }

    fn assign_elements<'s>(
        &mut self,
        targets: impl ExactSizeIterator<Item = &'s syn::Expr>,
        parts: Vec<Expr>,
        span: Span,
    ) {
        if targets.len() != parts.len() {
            let (wanted, found) = (parts.len(), targets.len());
            return self.error(crate::diag::mistake::Aggregate::PatternLength { wanted, found }, span);
        }
        for (target, part) in targets.zip(parts) {
            self.assign_parts(target, part, span);
        }
    }

    /// Assigns a value that nothing in the target changes.
    fn assign_value(&mut self, target: &syn::Expr, value: Expr, span: Span) {
        if let ExprKind::Compound(_) = value.kind {
            return self.assign_compound(target, &value, span);
        }
        let mut value = value;
        let (effects, assignee) = self.block(|cx| cx.assignee(target));
        spill_if_changed(&mut self.builder, std::slice::from_mut(&mut value), &effects);
        self.builder.append(effects);
        if let Some(assignee) = assignee
            && self.expect(&value, &assignee.ty)
        {
            self.builder.emit(assignee.assign(value), span);
        }
    }

    /// Returns the place of a compound value that is assigned, or reports why there is none.
    pub(in crate::parse) fn assigned_compound(&mut self, target: &syn::Expr, value: &Expr) -> Option<Place> {
        let span = Span::of(target);
        match self.place(target) {
            Some(Place { value: Expr { kind: ExprKind::Error, .. }, .. }) => None,
            Some(place @ Place { value: Expr { kind: ExprKind::Compound(_), .. }, .. }) => Some(place),
            Some(Place { value: part, .. }) if matches!(target, syn::Expr::Field(_)) => {
                self.expect(value, &part.ty);
                None
            }
            Some(Place { name, .. }) => {
                let ty = self.infer.partial(&value.ty);
                self.error(Mismatch::CannotHold { name, ty }, value.span);
                None
            }
            None => {
                match target {
                    syn::Expr::Path(path) if own_variable(path).is_some() => {
                        self.expr(target);
                    }
                    syn::Expr::Field(field) if self.place(&field.base).is_some() => {
                        self.expr(target);
                    }
                    _ => self.error(Assignment::NoVariable, span),
                }
                None
            }
        }
    }
}
