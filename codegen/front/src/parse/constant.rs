//! Constants: those of the module, and constant expressions in types, attributes and generics.

use super::cx::{Cx, Evaluation};
use super::item::condition;
use crate::diag::mistake::Value;
use crate::infer::run::{Failure, run};
use crate::ir::{Expr, Span, Type};

impl Cx<'_> {
    /// Evaluates a constant expression of type `want`, which may call the module's `const fn`.
    /// Reports an expression that is not constant or has no value.
    pub(super) fn constant(&mut self, expr: &syn::Expr, want: &Type) -> Option<Expr> {
        let checkpoint = self.checkpoint();
        let (effects, value) = self.in_constant(|cx| cx.block(|cx| cx.expr(expr)));
        let fits = !value.is_error() && self.expect(&value, want);
        let value = fits.then(|| run(&self.infer, &effects, &value));
        // A constant leaves nothing but its value.
        self.restore(checkpoint);
        match value? {
            Ok(value) => Some(value),
            Err(Failure { why, span }) => {
                if let Some(why) = why {
                    self.error(*why, span);
                }
                None
            }
        }
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
