//! Operations of the value numbering.

use tma_front::ir::{BinaryOp, Expr, ExprKind, IntegerOp, MathOp, Scalar, UnaryOp};

/// An operation. Applied to equal operands, it gives equal values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Operation {
    /// An expression without operands, as text.
    Leaf(String),
    Unary(UnaryOp),
    Binary(BinaryOp),
    Integer(IntegerOp),
    Math(MathOp),
    Cast(Scalar),
    Bits(Scalar),
    Array,
    Repeat(u32),
    Index,
    /// A range from the first operand to the second, in steps of the third.
    Range {
        inclusive: bool,
    },
    /// A number of a range, in a loop that is nested in `outer` others over that range.
    Counter {
        outer: usize,
    },
}

/// Returns the operation of an expression, if equal operands give equal values.
pub(super) fn of(expr: &Expr) -> Option<Operation> {
    let scalar = expr.ty.as_scalar();
    match &expr.kind {
        ExprKind::Const(_)
        | ExprKind::Shared(_)
        | ExprKind::Param(_)
        | ExprKind::GlobalLen(_)
        | ExprKind::Special(_) => Some(Operation::Leaf(format!("{:?}", expr.kind))),
        ExprKind::Unary(op, _) => Some(Operation::Unary(*op)),
        ExprKind::Binary(op, ..) => Some(Operation::Binary(*op)),
        ExprKind::Integer(op, _) => Some(Operation::Integer(*op)),
        ExprKind::Math(op, _) => Some(Operation::Math(*op)),
        ExprKind::Cast(_) => scalar.map(Operation::Cast),
        ExprKind::Bits(_) => scalar.map(Operation::Bits),
        ExprKind::Array(_) => Some(Operation::Array),
        ExprKind::Repeat(_) => expr.ty.elements().map(|(_, len)| Operation::Repeat(len)),
        ExprKind::Index(..) => Some(Operation::Index),
        ExprKind::Local(_)
        | ExprKind::ZeroAccumulator
        | ExprKind::Stage(..)
        | ExprKind::CachePolicy(..)
        | ExprKind::Hinted(..)
        | ExprKind::Remote(..)
        | ExprKind::Choice(_)
        | ExprKind::Compound(_)
        | ExprKind::Member(..)
        | ExprKind::Unit
        | ExprKind::Error => None,
    }
}
