//! Every type is known, and every operand has a value.

use crate::diag::Sink;
use crate::diag::mistake::{Syntax, Value};
use crate::ir::{Expr, Type};

pub(super) fn no_value(expr: &Expr, sink: &mut Sink) {
    sink.error(Syntax::NoValue, expr.span);
}

pub(super) fn of_known_type(expr: &Expr, sink: &mut Sink) {
    match &expr.ty {
        Type::Compound(_) | Type::Unit | Type::Never => no_value(expr, sink),
        Type::Infer(_) | Type::Error => {
            sink.error(Value::UnknownType, expr.span);
        }
        Type::Scalar(_)
        | Type::Dim3
        | Type::CachePolicy
        | Type::Array(..)
        | Type::Accumulator(_)
        | Type::Rows(..)
        | Type::Fragment(_)
        | Type::WarpFragment(_)
        | Type::Tile(_)
        | Type::Barrier
        | Type::Token
        | Type::SharedArray(..)
        | Type::Stages(..)
        | Type::Remote(_)
        | Type::Choice(_)
        | Type::TensorMap(_)
        | Type::Im2colMap(..)
        | Type::Maps(_)
        | Type::SharedMap(_)
        | Type::Global(_)
        | Type::Peers(_)
        | Type::Peer(_) => {}
    }
}
