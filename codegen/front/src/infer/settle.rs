//! The last step of inference: replaces inference variables by their types, and folds constants.

#![warn(clippy::wildcard_enum_match_arm)]

use super::scalar::{extremes, has_operator};
use super::{Infer, fold, rule};
use crate::diag::Sink;
use crate::diag::mistake::{NoValue, Value};
use crate::ir::{Block, Const, Expr, ExprKind, Local, Scalar, StmtKind, Type, UnaryOp, visit};

/// The parts of a kernel whose types inference decides.
pub(crate) struct Typed<'k> {
    pub(crate) locals: &'k mut [Local],
    /// The variables that the source names.
    pub(crate) variables: &'k mut [Local],
    pub(crate) body: &'k mut Block,
}

/// Settles every type in the kernel. Reports types that are still unknown, and literals out of
/// range.
pub(crate) fn settle(mut infer: Infer, kernel: Typed<'_>, sink: &mut Sink) {
    rule::judge(&mut infer, sink);
    for local in kernel.locals {
        settle_local(&infer, local, sink);
    }
    for variable in kernel.variables {
        variable.ty = infer.settle(&variable.ty).unwrap_or(Type::Error);
    }
    for mut number in std::mem::take(&mut infer.numbers) {
        settle_expr(&infer, &mut number);
        if let ExprKind::Const(value) = number.kind
            && !fold::literal_fits(value, &number.ty)
        {
            report_range(sink, &number);
        }
    }
    settle_block(&infer, kernel.body, sink);
}

fn settle_block(infer: &Infer, block: &mut Block, sink: &mut Sink) {
    for stmt in &mut block.stmts {
        for operand in visit::operands_mut(&mut stmt.kind) {
            visit::within_mut(operand, &mut |expr| settle_node(infer, expr, sink));
            report_overflow(operand, sink);
        }
        drop_dead_branch(&mut stmt.kind);
        close_ranges(&mut stmt.kind);
        for inner in visit::blocks_mut(&mut stmt.kind) {
            settle_block(infer, inner, sink);
        }
    }
}

/// Reports constant operations that overflow, except for shifts. A shift by too much is reported
/// where it is parsed, and not in a device function to which the amount is passed.
fn report_overflow(expr: &Expr, sink: &mut Sink) {
    fold::each_overflow(expr, &mut |part, words| {
        let is_shift = matches!(part.kind, ExprKind::Binary(op, ..) if op.is_shift());
        if !is_shift {
            sink.error(Value::Expression(NoValue::Overflow(words)), part.span);
        }
    });
}

/// Removes the branch that a constant condition excludes from this instance: `if STAGES > 1 {
/// full[1].init(1) }` must not be rejected in the instance with one stage.
fn drop_dead_branch(kind: &mut StmtKind) {
    if let StmtKind::If { condition, then, otherwise } = kind
        && let ExprKind::Const(Const::Bool(holds)) = condition.kind
    {
        *(if holds { otherwise } else { then }) = Block::default();
    }
}

/// Limits the open ranges of a `match`, such as `..=5` and `6..`, to the range of the matched type.
fn close_ranges(kind: &mut StmtKind) {
    if let StmtKind::Match { value, arms, .. } = kind
        && let Some(scalar) = value.ty.as_scalar()
    {
        let (least, greatest) = extremes(scalar);
        for (start, end) in arms.iter_mut().flat_map(|arm| &mut arm.ranges) {
            *start = least.max(*start);
            *end = greatest.min(*end);
        }
    }
}

fn settle_node(infer: &Infer, expr: &mut Expr, sink: &mut Sink) {
    settle_expr(infer, expr);
    judge_operator(expr, sink);
    if let Err(why) = fold::fold(expr) {
        sink.error(Value::Expression(why), expr.span);
    }
}

/// Settles the type of one node, and the value of a literal. Subexpressions must be settled
/// already.
pub(crate) fn settle_expr(infer: &Infer, expr: &mut Expr) {
    // A type that no use decides was reported with its variable, or is never read.
    expr.ty = infer.settle(&expr.ty).unwrap_or(Type::Error);
    if let ExprKind::Const(value) = &mut expr.kind {
        *value = value.settled(&expr.ty);
    }
}

fn settle_local(infer: &Infer, local: &mut Local, sink: &mut Sink) {
    local.ty = infer.settle(&local.ty).unwrap_or_else(|| {
        let (name, accumulator) = (local.name.clone(), infer.accumulator(&local.ty));
        sink.error(Value::UnknownVariable { name, accumulator }, local.span);
        Type::Error
    });
}

/// Checks an operator whose operands may have been literals of unknown type when they were parsed.
fn judge_operator(expr: &Expr, sink: &mut Sink) {
    let (sign, operand, fits) = match &expr.kind {
        ExprKind::Unary(op, a) => {
            let Some(scalar) = a.ty.as_scalar() else { return };
            match op {
                UnaryOp::Neg => ("-", a, scalar.is_arithmetic() && (scalar.is_float() || scalar.is_signed())),
                UnaryOp::Not => ("!", a, scalar.is_integer() || scalar == Scalar::Bool),
            }
        }
        ExprKind::Binary(op, a, ..) => {
            let Some(scalar) = a.ty.as_scalar() else { return };
            (op.sign(), a, has_operator(scalar, *op))
        }
        ExprKind::Const(_)
        | ExprKind::Local(_)
        | ExprKind::Shared(_)
        | ExprKind::Param(_)
        | ExprKind::GlobalLen(_)
        | ExprKind::Special(_)
        | ExprKind::Cast(_)
        | ExprKind::Bits(_)
        | ExprKind::Math(..)
        | ExprKind::Integer(..)
        | ExprKind::Array(_)
        | ExprKind::Repeat(_)
        | ExprKind::ZeroAccumulator
        | ExprKind::Index(..)
        | ExprKind::Stage(..)
        | ExprKind::CachePolicy(..)
        | ExprKind::Hinted(..)
        | ExprKind::Remote(..)
        | ExprKind::Choice(_)
        | ExprKind::Compound(_)
        | ExprKind::Member(..)
        | ExprKind::Unit
        | ExprKind::Error => return,
    };
    if !fits {
        sink.error(Value::Operator { of: (&operand.ty).into(), sign }, expr.span);
    }
}

/// Reports a literal that is out of range for its type.
pub(crate) fn report_range(sink: &mut Sink, literal: &Expr) {
    let ExprKind::Const(Const::Int(value)) = literal.kind else { return };
    sink.error(Value::Range { value, ty: literal.ty.clone() }, literal.span);
}
