//! Constants: those of the module, and constant expressions in types, attributes and generics.

use std::collections::HashMap;

use super::cx::{Cx, Frame};
use super::infer::{fold, settle};
use super::item::condition;
use super::names;
use crate::diag::Code;
use crate::ir::{Expr, ExprKind, Span, Type, visit};

impl Cx<'_> {
    /// The value of a constant expression of type `want`; reports what is not constant, or has
    /// none.
    pub(super) fn constant(&mut self, expr: &syn::Expr, want: &Type) -> Option<Expr> {
        let span = Span::of(expr);
        let (effects, value) = self.block(|cx| cx.expr(expr));
        if matches!(value.kind, ExprKind::Error) || !self.expect(&value, want) {
            return None;
        }
        let value = self.evaluate(value)?;
        if !effects.stmts.is_empty() || !fold::is_known(&value) {
            self.error(Code::NotConstant, span, "this must be known at compile time").help(
                "use literals, constants of the `#[tma_module]`, const generics, and arithmetic on these",
            );
            return None;
        }
        Some(value)
    }

    /// Settles and folds; reports a division by zero.
    fn evaluate(&mut self, mut value: Expr) -> Option<Expr> {
        let mut failed = false;
        visit::within_mut(&mut value, &mut |node| {
            settle::settle_expr(&self.infer, node);
            if let Err(why) = fold::fold(node) {
                failed = true;
                self.sink.error(Code::ConstantValue, node.span, format!("this constant has no value: {why}"));
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

    /// The value of the module's constant `name`, if there is one.
    pub(super) fn module_constant(&mut self, name: &str, span: Span) -> Option<Expr> {
        let shared = self.module_items;
        let index = shared.constants.iter().position(|item| names::text(&item.ident) == name)?;
        match self.constants.get(&index) {
            Some(Some(value)) => return Some(Expr { span, ..value.clone() }),
            Some(None) => {
                let message = format!("the constant `{name}` is defined by itself");
                self.error(Code::ConstantValue, span, message).help("break the circle");
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

    /// Runs `f` where no name of the function is known.
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
