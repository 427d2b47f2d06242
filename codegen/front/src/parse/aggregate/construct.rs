//! Literals of structs and tuples, and their fields.

use super::leaves;
use crate::diag::mistake::{self, Aggregate, Name, Syntax};
use crate::ir::{Compound, Expr, ExprKind, Span, StructType, Type};
use crate::parse::compound::compound;
use crate::parse::cx::Cx;
use crate::parse::order::spill_if_changed;
use crate::parse::span;
use crate::parse::stmt::unit;

impl Cx<'_> {
    /// Resolves `(a, b)`.
    pub(in crate::parse) fn tuple(&mut self, tuple: &syn::ExprTuple, span: Span) -> Expr {
        let elements = self.in_order(&tuple.elems);
        for (element, syntax) in elements.iter().zip(&tuple.elems) {
            if self.refuse_reference(syntax, element.span) || element.is_error() {
                return Expr::error(span);
            }
        }
        if elements.iter().any(|element| element.ty == Type::Never) {
            return Expr { ty: Type::Never, ..unit(span) };
        }
        match self.tuple_of(elements.iter().map(|element| element.ty.clone()).collect(), span) {
            Type::Compound(of) => compound(of, elements, span),
            _ => Expr::error(span),
        }
    }

    /// Resolves `Point { row, column: 1 }` and `Point { row, ..base }`.
    pub(in crate::parse) fn struct_literal(&mut self, literal: &syn::ExprStruct, span: Span) -> Expr {
        if literal.qself.is_some() {
            self.error(Name::Qualified, span);
            return Expr::error(span);
        }
        let Some(of) = self.struct_of(&literal.path) else { return Expr::error(span) };
        let mut values = self.in_order(literal.fields.iter().map(|field| &field.expr));
        let base = literal.rest.as_ref().map(|rest| {
            let (effects, base) = self.block(|cx| cx.expr(rest));
            spill_if_changed(&mut self.builder, &mut values, &effects);
            self.builder.append(effects);
            base
        });
        let mut fields = vec![None; of.fields.len()];
        let mut fits = true;
        for (field, value) in literal.fields.iter().zip(values) {
            match self.position(&of, &field.member) {
                None => fits = false,
                Some(position) if fields[position].is_some() => {
                    let name = of.fields[position].name.clone();
                    self.error(Aggregate::Repeated { name }, Span::of(&field.member));
                    fits = false;
                }
                Some(position) => {
                    fits &= !self.refuse_reference(&field.expr, value.span);
                    fields[position] = Some(value);
                }
            }
        }
        match base {
            None if literal.dot2_token.is_some() => {
                self.error(Aggregate::NoBase, span);
                return Expr::error(span);
            }
            None => {}
            Some(base) => {
                let ty = Type::Compound(Compound::Struct(of.clone()));
                let ExprKind::Compound(parts) = &base.kind else {
                    fits = fits && self.expect(&base, &ty);
                    return Expr { ty: if fits { base.ty } else { Type::Error }, ..Expr::error(span) };
                };
                fits &= self.expect(&base, &ty);
                for (field, part) in fields.iter_mut().zip(parts) {
                    field.get_or_insert_with(|| part.clone());
                }
            }
        }
        let missing: Vec<_> = of.fields.iter().zip(&fields).filter(|(_, value)| value.is_none()).collect();
        if !missing.is_empty() && fits {
            let missing = missing.into_iter().map(|(field, _)| field.name.clone()).collect();
            self.error(Aggregate::Missing { name: of.name.clone(), missing }, span);
            fits = false;
        }
        if !fits {
            return Expr::error(span);
        }
        self.struct_value(of, fields.into_iter().flatten().collect(), span)
    }

    /// Resolves `Pair(a, b)`, the constructor of a tuple struct.
    pub(in crate::parse) fn tuple_struct(
        &mut self,
        of: StructType,
        call: &syn::ExprCall,
        span: Span,
    ) -> Expr {
        let values = self.in_order(&call.args);
        let (wanted, found) = (of.fields.len(), values.len());
        if wanted != found {
            self.error(mistake::Argument::Device { function: of.name, wanted, found }, span);
            return Expr::error(span);
        }
        for (value, syntax) in values.iter().zip(&call.args) {
            if self.refuse_reference(syntax, value.span) {
                return Expr::error(span);
            }
        }
        self.struct_value(of, values, span)
    }

    /// Creates a struct of these fields, in the order of their declaration.
    pub(in crate::parse) fn struct_value(&mut self, of: StructType, fields: Vec<Expr>, span: Span) -> Expr {
        let mut fits = true;
        for (value, field) in fields.iter().zip(&of.fields) {
            fits &= !value.is_error() && self.expect(value, &field.ty);
        }
        if !fits {
            return Expr::error(span);
        }
        if fields.iter().any(|value| value.ty == Type::Never) {
            return Expr { ty: Type::Never, ..unit(span) };
        }
        compound(Compound::Struct(of), fields, span)
    }

    /// Returns the field of a struct or tuple.
    pub(in crate::parse) fn member_of(
        &mut self,
        of: &Compound,
        parts: &[Expr],
        name: String,
        span: Span,
    ) -> Expr {
        match of.position_of(&name).and_then(|position| parts.get(position)) {
            Some(part) => Expr { span, ..part.clone() },
            None => {
                let of = self.infer.partial(&Type::Compound(of.clone()));
                self.error(Name::Field { of, name }, span);
                Expr::error(span)
            }
        }
    }

    /// Returns the position of a field. Reports a struct that has no such field.
    pub(super) fn position(&mut self, of: &StructType, member: &syn::Member) -> Option<usize> {
        let (of, name) = (Compound::Struct(of.clone()), span::member_text(member));
        let position = of.position_of(&name);
        if position.is_none() {
            let of = self.infer.partial(&Type::Compound(of));
            self.error(Name::Field { of, name }, Span::of(member));
        }
        position
    }

    /// Reports a variable that is a reference, where its value would be kept. A copy of a `&mut`
    /// would be another variable than the one it refers to.
    pub(in crate::parse) fn refuse_reference(&mut self, expr: &syn::Expr, span: Span) -> bool {
        let is_reference = self.is_reference(expr);
        if is_reference {
            self.error(Syntax::KeptReference, span);
        }
        is_reference
    }

    /// Evaluates the parts of an unused value.
    pub(in crate::parse) fn compute_leaves(&mut self, value: &Expr) {
        for leaf in leaves(value) {
            self.compute(leaf.clone());
        }
    }
}
