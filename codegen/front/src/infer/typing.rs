//! Type inference with the sink for its errors.

use super::Infer;
use crate::diag::Sink;
use crate::diag::mistake::{Mismatch, Mistake, Since};
use crate::ir::{Expr, Span, Type};

/// The inference of a kernel, and the sink that takes its errors.
pub(crate) struct Typing<'a> {
    pub(crate) infer: &'a mut Infer,
    pub(crate) sink: &'a mut Sink,
}

impl Typing<'_> {
    pub(crate) fn error(&mut self, mistake: impl Into<Mistake>, span: Span) {
        self.sink.error(mistake, span);
    }

    /// Reports a mismatch unless `expr` has type `want` or can still be inferred to.
    pub(crate) fn expect(&mut self, expr: &Expr, want: &Type) -> bool {
        if self.infer.unify(&expr.ty, want, expr.span) {
            return true;
        }
        let (found, wanted) = (self.infer.partial(&expr.ty), self.infer.partial(want));
        let since = self.infer.since(&expr.ty, expr.span).map(Since::Found);
        let since = since.or_else(|| self.infer.since(want, expr.span).map(Since::Wanted));
        self.error(Mismatch::Type { found, wanted, since }, expr.span);
        false
    }
}
