//! Methods of slices of global memory.

use super::Args;
use super::hint::Target;
use crate::diag::Code;
use crate::ir::{AtomicOp, Expr, ExprKind, MapRef, ParamId, Scalar, Span, StmtKind};
use crate::parse::cx::Cx;
use crate::parse::rule::Rule;
use crate::parse::stmt::unit;

impl Cx<'_> {
    pub(super) fn global_method(
        &mut self,
        receiver: Expr,
        element: Scalar,
        name: &str,
        args: &Args,
        span: Span,
    ) -> Option<Expr> {
        let Some(Target { map: MapRef { param: global, .. }, hint }) = Target::of(&receiver) else {
            return Some(Expr::error(span));
        };
        if name == "hint" {
            return Some(self.hinted(receiver, hint.is_some(), args, span));
        }
        if let Some(method) = name.strip_prefix("bulk_") {
            return self.bulk_method(global, hint, element, method, args, span);
        }
        if hint.is_some() {
            self.error(Code::UnsupportedExpression, span, format!("`{name}` takes no hint"))
                .help("hints are for bulk copies; call this on the slice itself");
            return Some(Expr::error(span));
        }
        match name {
            "len" => {
                let given = self.exactly::<0>(name, args, span);
                let len = Expr { kind: ExprKind::GlobalLen(global), ty: Scalar::U64.into(), span };
                Some(if given.is_some() { len } else { Expr::error(span) })
            }
            "get" => {
                let Some([index]) = self.exactly(name, args, span) else { return Some(Expr::error(span)) };
                if !self.expect_global_index(&index) {
                    return Some(Expr::error(span));
                }
                let (dest, value) = self.temporary("element", element, span);
                self.emit(StmtKind::GlobalGet { dest, global, index }, span);
                Some(value)
            }
            "set" => {
                let Some([index, value]) = self.exactly(name, args, span) else {
                    return Some(Expr::error(span));
                };
                if self.expect_global_index(&index) & self.expect(&value, &element.into()) {
                    self.params[global.0 as usize].written = true;
                    self.emit(StmtKind::GlobalSet { global, index, value }, span);
                }
                Some(unit(span))
            }
            _ => {
                let op = AtomicOp::ALL.into_iter().find(|op| op.name() == name)?;
                Some(self.global_atomic(global, element, op, args, span))
            }
        }
    }

    fn global_atomic(
        &mut self,
        global: ParamId,
        element: Scalar,
        op: AtomicOp,
        args: &Args,
        span: Span,
    ) -> Expr {
        let Some([index, value]) = self.exactly(op.name(), args, span) else { return Expr::error(span) };
        if !op.takes(element) {
            self.error(Code::ElementType, span, format!("there is no `{}` on `{element}`", op.name()))
                .help("atomics are on i32, u32, i64 and u64; `atomic_add` also on f32 and f64");
            return Expr::error(span);
        }
        if !(self.expect_global_index(&index) & self.expect(&value, &element.into())) {
            return Expr::error(span);
        }
        self.params[global.0 as usize].written = true;
        let (dest, old) = self.temporary("old", element, span);
        self.emit(StmtKind::GlobalAtomic { dest, op, global, index, value }, span);
        old
    }

    pub(super) fn expect_global_index(&mut self, index: &Expr) -> bool {
        self.require(&index.ty, Rule::GlobalIndex, index.span)
    }
}
