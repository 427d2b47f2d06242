//! Nothing is unknown any more, and every operand has a value.

use crate::diag::{Code, Sink};
use crate::ir::{ExprKind, Kernel, Type, visit};

pub(super) fn check(kernel: &Kernel, sink: &mut Sink) {
    visit::for_each_expr(&kernel.body, &mut |expr| match (&expr.kind, &expr.ty) {
        (ExprKind::Compound(_) | ExprKind::Unit | ExprKind::Error, _)
        | (_, Type::Compound(_) | Type::Unit | Type::Never) => {
            sink.error(Code::UnsupportedExpression, expr.span, "this has no value").help(
                "what never comes back, or ends without an expression, cannot be an operand: make it a \
                 statement of its own",
            );
        }
        (_, Type::Infer(_) | Type::Error) => {
            sink.error(Code::CannotInfer, expr.span, "the type of this is not known")
                .help("give the variable it comes from a type");
        }
        _ => {}
    });
}
