//! Register arrays, and indexing of arrays and stages.

use syn::UnOp;

use super::aggregate::is_aggregate;
use super::compound::compound;
use super::cx::Cx;
use super::method::tile_at::known_integer;
use super::order::{held, spill_if_changed, spill_operands_of};
use crate::diag::mistake::{Aggregate, NoValue, Types, Value};
use crate::infer::{Kind, Typing};
use crate::ir::{Compound, Expr, ExprKind, Scalar, Span, Type};
use crate::limits::count;

impl Cx<'_> {
    pub(super) fn index(&mut self, index: &syn::ExprIndex, span: Span) -> Expr {
        let mut base = self.dereferenced(&index.expr);
        let (effects, position) = self.block(|cx| cx.expr(&index.index));
        if is_place_expr(&index.expr) {
            spill_operands_of(&mut self.builder, &mut base, &effects);
        } else {
            spill_if_changed(&mut self.builder, std::slice::from_mut(&mut base), &effects);
        }
        self.builder.append(effects);
        if let (Type::Compound(Compound::Array(..)), ExprKind::Compound(parts)) = (&base.ty, &base.kind) {
            return self.element(parts, &position, span);
        }
        match self.infer.outermost(&base.ty) {
            Type::Array(element, _) => {
                if !self.expect(&position, &Scalar::Usize.into()) {
                    return Expr::error(span);
                }
                Expr { kind: ExprKind::Index(Box::new(base), Box::new(position)), ty: *element, span }
            }
            ty @ (Type::Accumulator(_) | Type::Rows(_)) => {
                if !self.expect(&position, &Scalar::Usize.into()) {
                    return Expr::error(span);
                }
                let ty = ty.elements().map_or(Type::Error, |(element, _)| element);
                Expr { kind: ExprKind::Index(Box::new(base), Box::new(position)), ty, span }
            }
            Type::Stages(thing, _) => {
                if !self.expect(&position, &Scalar::U32.into()) {
                    return Expr::error(span);
                }
                Expr { kind: ExprKind::Stage(Box::new(base), Box::new(position)), ty: *thing, span }
            }
            Type::Remote(stages) if matches!(*stages, Type::Stages(..)) => {
                let Type::Stages(thing, _) = *stages else { return Expr::error(span) };
                if !self.expect(&position, &Scalar::U32.into()) {
                    return Expr::error(span);
                }
                let kind = ExprKind::Stage(Box::new(base), Box::new(position));
                Expr { kind, ty: Type::Remote(thing), span }
            }
            Type::Error => Expr::error(span),
            other => {
                self.error(Value::Index(self.infer.partial(&other)), span);
                Expr::error(span)
            }
        }
    }

    /// Creates an array of structs or tuples of this type.
    fn array_of_parts(&mut self, element: Type, elements: Vec<Expr>, span: Span) -> Expr {
        let fits: Vec<_> =
            elements.iter().map(|value| !value.is_error() && self.expect(value, &element)).collect();
        if fits.contains(&false) {
            return Expr::error(span);
        }
        match self.array_of(element, count(elements.len()), span) {
            Type::Compound(of) => compound(of, elements, span),
            _ => Expr::error(span),
        }
    }

    /// Returns the element of an array of structs or tuples at this index, which must be known.
    pub(super) fn element(&mut self, parts: &[Expr], index: &Expr, span: Span) -> Expr {
        if !self.expect(index, &Scalar::Usize.into()) {
            return Expr::error(span);
        }
        let Some(at) = known_integer(&self.infer, index) else {
            self.error(Aggregate::Index, index.span);
            return Expr::error(span);
        };
        match usize::try_from(at).ok().and_then(|at| parts.get(at)) {
            Some(part) => Expr { span, ..part.clone() },
            None => {
                self.error(Value::Expression(NoValue::OutOfBounds), index.span);
                Expr::error(span)
            }
        }
    }

    pub(super) fn array(&mut self, array: &syn::ExprArray, span: Span) -> Expr {
        let element = self.infer.fresh(Kind::Any);
        let elements = self.in_order(&array.elems);
        if let Some(first) = elements.iter().find(|value| is_aggregate(&self.infer.resolve(&value.ty))) {
            let ty = first.ty.clone();
            return self.array_of_parts(ty, elements, span);
        }
        let mut fits = true;
        for value in &elements {
            fits &= self.expect(value, &element) && is_register_value(&mut self.typing(), value);
        }
        if !fits {
            return Expr::error(span);
        }
        let ty = Type::Array(Box::new(element), count(elements.len()));
        Expr { kind: ExprKind::Array(elements), ty, span }
    }

    pub(super) fn repeat(&mut self, repeat: &syn::ExprRepeat, span: Span) -> Expr {
        let value = self.expr(&repeat.expr);
        match self.array_len(&repeat.len) {
            Some(len) if is_aggregate(&self.infer.resolve(&value.ty)) => {
                // The parts are read where they are used, once for each element.
                let value = held(self, value);
                match self.array_of(value.ty.clone(), len, span) {
                    Type::Error => Expr::error(span),
                    _ => self.array_of_parts(value.ty.clone(), vec![value; len as usize], span),
                }
            }
            Some(len) if is_register_value(&mut self.typing(), &value) => {
                let ty = Type::Array(Box::new(value.ty.clone()), len);
                Expr { kind: ExprKind::Repeat(Box::new(value)), ty, span }
            }
            _ => Expr::error(span),
        }
    }
}

/// Whether `value` may be an element of a register array.
fn is_register_value(typing: &mut Typing<'_>, value: &Expr) -> bool {
    let fits = match typing.infer.resolve(&value.ty) {
        Type::Scalar(_) | Type::Infer(_) | Type::Error => true,
        Type::Array(inner, _) => matches!(*inner, Type::Scalar(_) | Type::Infer(_)),
        _ => false,
    };
    if !fits {
        typing.error(Types::ArrayElement(typing.infer.partial(&value.ty)), value.span);
    }
    fits
}

/// Whether `expr` is a place expression, which is read where it is used.
fn is_place_expr(expr: &syn::Expr) -> bool {
    match expr {
        syn::Expr::Paren(paren) => is_place_expr(&paren.expr),
        syn::Expr::Unary(unary) => matches!(unary.op, UnOp::Deref(_)),
        syn::Expr::Field(field) => is_place_expr(&field.base),
        syn::Expr::Path(_) | syn::Expr::Index(_) => true,
        _ => false,
    }
}
