//! Constants: those of the module, and constant expressions in types, attributes and generics.

use super::cx::{Cx, Evaluation};
use super::item::condition;
use super::span;
use crate::diag::mistake::Value;
use crate::infer::{fold, settle};
use crate::ir::{Expr, ExprKind, Span, Type, visit};

impl Cx<'_> {
    /// Evaluates a constant expression of type `want`. Reports an expression that is not constant
    /// or has no value.
    pub(super) fn constant(&mut self, expr: &syn::Expr, want: &Type) -> Option<Expr> {
        let span = span::of_expr(expr);
        let (effects, value) = self.block(|cx| cx.expr(expr));
        if value.is_error() || !self.expect(&value, want) {
            return None;
        }
        let value = self.evaluate(value)?;
        if !effects.stmts.is_empty() || !fold::is_known(&value) {
            self.error(Value::NoConstant, span);
            return None;
        }
        Some(value)
    }

    /// Settles types and folds. Reports a division by zero.
    fn evaluate(&mut self, mut value: Expr) -> Option<Expr> {
        let mut failed = false;
        visit::within_mut(&mut value, &mut |node| {
            settle::settle_expr(&self.infer, node);
            if let Err(why) = fold::fold(node) {
                failed = true;
                self.sink.error(Value::Constant(why), node.span);
            }
            if let ExprKind::Const(constant) = node.kind
                && !fold::literal_fits(constant, &node.ty)
            {
                failed = true;
                settle::report_range(self.sink, node);
            }
        });
        (!failed).then_some(value)
    }

    /// Returns the value of the module's constant `name`, if there is one.
    pub(super) fn module_constant(&mut self, name: &str, span: Span) -> Option<Expr> {
        let constant = self.module.constant(name)?;
        match self.module.evaluation(constant) {
            Some(Evaluation::Finished(value)) => return Some(Expr { span, ..value.clone() }),
            Some(Evaluation::Begun) => {
                self.error(Value::Circular(name.to_owned()), span);
                return Some(Expr::error(span));
            }
            None => {}
        }
        if !self.may_enter(span) {
            return Some(Expr::error(span));
        }
        self.module.set_evaluation(constant, Evaluation::Begun);
        let item = constant.item;
        condition::refuse_on_constant(item, self.sink);
        let value = self.at_module_level(constant.scope, name, |cx| {
            let ty = cx.ty(&item.ty);
            cx.constant(&item.expr, &ty)
        });
        let value = value.unwrap_or(Expr::error(span));
        self.module.set_evaluation(constant, Evaluation::Finished(value.clone()));
        Some(Expr { span, ..value })
    }
}
