//! Methods of shared arrays.

use super::Args;
use crate::ir::{Expr, Scalar, Span, StmtKind, Type};
use crate::parse::cx::Cx;
use crate::parse::stmt::unit;

impl Cx<'_> {
    pub(super) fn array_method(
        &mut self,
        array: Expr,
        element: Scalar,
        len: u32,
        name: &str,
        args: &Args,
        span: Span,
    ) -> Option<Expr> {
        let u32_ty = Type::from(Scalar::U32);
        match name {
            "len" => self.known_u32(name, u64::from(len), args, span),
            "get" => {
                let Some([index]) = self.exactly(name, args, span) else { return Some(Expr::error(span)) };
                if !self.expect(&index, &u32_ty) {
                    return Some(Expr::error(span));
                }
                let (dest, value) = self.temporary("element", element, span);
                self.emit(StmtKind::SharedGet { dest, array, index }, span);
                Some(value)
            }
            "set" => {
                let Some([index, value]) = self.exactly(name, args, span) else {
                    return Some(Expr::error(span));
                };
                if self.expect(&index, &u32_ty) && self.expect(&value, &element.into()) {
                    self.emit(StmtKind::SharedSet { array, index, value }, span);
                }
                Some(unit(span))
            }
            _ => None,
        }
    }
}
