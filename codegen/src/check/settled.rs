//! Nothing is unknown any more, and every operand has a value.

use crate::diag::{Code, Sink};
use crate::ir::{Expr, Type};

pub(super) fn no_value(expr: &Expr, sink: &mut Sink) {
    sink.error(Code::UnsupportedExpression, expr.span, "this has no value").help(
        "what never comes back, or ends without an expression, cannot be an operand: make it a statement of \
         its own",
    );
}

pub(super) fn of_known_type(expr: &Expr, sink: &mut Sink) {
    match &expr.ty {
        Type::Compound(_) | Type::Unit | Type::Never => no_value(expr, sink),
        Type::Infer(_) | Type::Error => {
            sink.error(Code::CannotInfer, expr.span, "the type of this is not known")
                .help("give the variable it comes from a type");
        }
        Type::Scalar(_)
        | Type::Dim3
        | Type::CachePolicy
        | Type::Array(..)
        | Type::Tile(_)
        | Type::Barrier
        | Type::Token
        | Type::SharedArray(..)
        | Type::Stages(..)
        | Type::Remote(_)
        | Type::ClusterAxis
        | Type::TensorMap(_)
        | Type::Im2colMap(..)
        | Type::Maps(_)
        | Type::SharedMap(_)
        | Type::Global(_) => {}
    }
}
