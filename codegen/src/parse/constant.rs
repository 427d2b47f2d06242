//! Constants: those of the module, and constant expressions in types, attributes and generics.

use std::collections::HashMap;

use super::cx::{Cx, Frame};
use super::item::condition;
use super::{names, span};
use crate::diag::mistake::Value;
use crate::infer::{fold, settle};
use crate::ir::{Expr, ExprKind, Span, Type, visit};

impl Cx<'_> {
    /// Evaluates a constant expression of type `want`. Reports an expression that is not constant
    /// or has no value.
    pub(super) fn constant(&mut self, expr: &syn::Expr, want: &Type) -> Option<Expr> {
        let span = span::of_expr(expr);
        let (effects, value) = self.block(|cx| cx.expr(expr));
        if matches!(value.kind, ExprKind::Error) || !self.expect(&value, want) {
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

    /// Whether the module has a constant `name`.
    pub(super) fn has_constant(&self, name: &str) -> bool {
        self.module_items.constants.iter().any(|item| names::text(&item.ident) == name)
    }

    /// Returns the value of the module's constant `name`, if there is one.
    pub(super) fn module_constant(&mut self, name: &str, span: Span) -> Option<Expr> {
        let shared = self.module_items;
        let index = shared.constants.iter().position(|item| names::text(&item.ident) == name)?;
        match self.constants.get(&index) {
            Some(Some(value)) => return Some(Expr { span, ..value.clone() }),
            Some(None) => {
                self.error(Value::Circular(name.to_owned()), span);
                return Some(Expr::error(span));
            }
            None => {}
        }
        if !self.may_enter(span) {
            return Some(Expr::error(span));
        }
        self.constants.insert(index, None);
        let item = &shared.constants[index];
        condition::refuse_on_constant(item, self.sink);
        let value = self.at_module_level(name, |cx| {
            let ty = cx.ty(&item.ty);
            cx.constant(&item.expr, &ty)
        });
        let value = value.unwrap_or(Expr::error(span));
        self.constants.insert(index, Some(value.clone()));
        Some(Expr { span, ..value })
    }

    /// Runs `f` in a frame in which no name of the function is visible.
    pub(super) fn at_module_level<T>(&mut self, name: &str, f: impl FnOnce(&mut Self) -> T) -> T {
        let frame = Frame {
            name: name.to_owned(),
            scopes: vec![HashMap::new()],
            loops: vec![],
            exit: None,
            call: None,
        };
        self.frames.push(frame);
        let value = f(self);
        self.frames.pop();
        value
    }
}
