//! `==` and `!=` of structs and tuples, which compare their parts.

use super::leaves;
use crate::diag::mistake::Value;
use crate::ir::{BinaryOp, Compound, Const, Expr, ExprKind, Scalar, Span, Type, UnaryOp};
use crate::parse::cx::Cx;
use crate::parse::expr::apply;
use crate::parse::item::structs::is_compared;

impl Cx<'_> {
    /// Resolves `a == b` or `a != b` of two structs or tuples.
    pub(in crate::parse) fn equality(&mut self, op: BinaryOp, left: Expr, right: Expr, span: Span) -> Expr {
        if right.is_error() || !self.expect(&right, &left.ty) || !self.has_equality(&left.ty, op, span) {
            return Expr::error(span);
        }
        let mut all = Expr::constant(Const::Bool(true), Scalar::Bool, span);
        for (a, b) in leaves(&left).into_iter().zip(leaves(&right)) {
            let Some(pairs) = self.compared(a, b, span) else { return Expr::error(span) };
            for (a, b) in pairs {
                let equal = apply(&mut self.typing(), BinaryOp::Eq, a, b, span);
                if equal.is_error() {
                    return equal;
                }
                all = match all.kind {
                    ExprKind::Const(_) => equal,
                    _ => apply(&mut self.typing(), BinaryOp::And, all, equal, span),
                };
            }
        }
        if op == BinaryOp::Ne {
            all = Expr { ty: Scalar::Bool.into(), kind: ExprKind::Unary(UnaryOp::Not, Box::new(all)), span };
        }
        all
    }

    /// Returns the values to compare of two parts: those of an array are its elements.
    fn compared(&mut self, a: &Expr, b: &Expr, span: Span) -> Option<Vec<(Expr, Expr)>> {
        let Type::Array(..) = self.infer.resolve(&a.ty) else { return Some(vec![(a.clone(), b.clone())]) };
        let (a, b) = (self.array_parts(a.clone(), span)?, self.array_parts(b.clone(), span)?);
        let mut pairs = vec![];
        for (a, b) in a.iter().zip(&b) {
            pairs.extend(self.compared(a, b, span)?);
        }
        Some(pairs)
    }

    /// Whether the operator compares the parts of a value of this type. Reports a struct that does
    /// not derive it.
    fn has_equality(&mut self, ty: &Type, op: BinaryOp, span: Span) -> bool {
        let ty = self.infer.resolve(ty);
        if let Type::Compound(Compound::Struct(of)) = &ty
            && !self.module.declaration(of).is_some_and(is_compared)
        {
            self.error(Value::Operator { of: self.infer.partial(&ty), sign: op.sign() }, span);
            return false;
        }
        let members = if let Type::Compound(compound) = &ty { compound.members() } else { None };
        let members: Vec<_> = members.unwrap_or_default().into_iter().cloned().collect();
        members.iter().all(|member| self.has_equality(member, op, span))
    }
}
