//! Replaces constant expressions by their values, to let rules on constants see through arithmetic.

#![warn(clippy::wildcard_enum_match_arm)]

use crate::diag::mistake::NoValue;
use crate::ir::{
    BinaryOp, Const, Expr, ExprKind, NEGATION_OVERFLOW, Scalar, Strictness, Type, UnaryOp, eval, visit,
};

/// Replaces `expr`, whose operands are already folded, by its value if that is known. Returns an
/// error if the expression is constant but has no value. An expression that
/// [overflows](each_overflow) remains, because it may be an operand that `&&` never evaluates.
pub(crate) fn fold(expr: &mut Expr) -> Result<(), NoValue> {
    let Some(scalar) = expr.ty.as_scalar() else { return fold_element(expr) };
    let value = match &expr.kind {
        ExprKind::Unary(..) | ExprKind::Binary(..) if overflow(expr).is_some() => None,
        ExprKind::Unary(op, a) => constant(a).and_then(|a| eval::unary(*op, a, scalar)),
        ExprKind::Binary(op, a, b, _) => match (constant(a), constant(b)) {
            (_, Some(Const::Int(0))) if op.is_division() => {
                return Err(NoValue::DividesByZero);
            }
            (Some(a), Some(b)) => eval::binary(*op, a, b, expr_scalar(expr)),
            _ => None,
        },
        ExprKind::Cast(a) => constant(a).and_then(|value| eval::cast(value, scalar)),
        ExprKind::Math(op, all) => {
            let known: Option<Vec<_>> = all.iter().map(constant).collect();
            known.and_then(|known| eval::math(*op, &known))
        }
        ExprKind::Integer(op, all) => {
            let known: Option<Vec<_>> = all.iter().map(constant).collect();
            let of = all.first().and_then(|of| of.ty.as_scalar());
            known.zip(of).and_then(|(known, of)| eval::integer(*op, &known, of))
        }
        ExprKind::Index(..) => return fold_element(expr),
        // The bits of a float are left to LLVM.
        ExprKind::Bits(_)
        | ExprKind::Const(_)
        | ExprKind::Local(_)
        | ExprKind::Shared(_)
        | ExprKind::Param(_)
        | ExprKind::GlobalLen(_)
        | ExprKind::Special(_)
        | ExprKind::Array(_)
        | ExprKind::Repeat(_)
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
    };
    if let Some(value) = value {
        expr.kind = ExprKind::Const(value);
    }
    Ok(())
}

/// Calls `f` for each constant operation in the folded `expr` that overflows where Rust's debug
/// builds panic, with Rust's words. Operands that `&&` and `||` do not evaluate are left out.
pub(crate) fn each_overflow(expr: &Expr, f: &mut impl FnMut(&Expr, &'static str)) {
    if decided(expr).is_some() {
        return;
    }
    for operand in visit::operands_of(expr) {
        each_overflow(operand, f);
    }
    if let Some(words) = overflow(expr) {
        f(expr, words);
    }
}

/// Returns the value of `a && b` or `a || b` if the constant `a` decides it.
pub(crate) fn decided(expr: &Expr) -> Option<Const> {
    let ExprKind::Binary(op, a, _, Strictness::Lazy) = &expr.kind else { return None };
    let left = Const::Bool(*op == BinaryOp::Or);
    (constant(a)? == left).then_some(left)
}

/// Returns Rust's words if `expr` is an operation on constants that overflows.
fn overflow(expr: &Expr) -> Option<&'static str> {
    if let ExprKind::Unary(UnaryOp::Neg, a) = &expr.kind {
        let overflows = eval::negation_overflows(constant(a)?, a.ty.as_scalar()?);
        return overflows.then_some(NEGATION_OVERFLOW);
    }
    let ExprKind::Binary(op, a, b, Strictness::Strict) = &expr.kind else { return None };
    let overflows = eval::overflows(*op, constant(a)?, constant(b)?, a.ty.as_scalar()?);
    op.overflow().filter(|_| overflows)
}

/// Replaces an element of a constant array: `[1, 2][1]` is `2`.
fn fold_element(expr: &mut Expr) -> Result<(), NoValue> {
    let ExprKind::Index(array, index) = &expr.kind else { return Ok(()) };
    let Some(index) = index.as_int().and_then(|index| usize::try_from(index).ok()) else { return Ok(()) };
    let element = match (&array.kind, &array.ty) {
        (ExprKind::Array(elements), _) => elements.get(index),
        (ExprKind::Repeat(element), Type::Array(_, len)) if index < *len as usize => Some(&**element),
        _ => None,
    };
    if let Some(element) = element.filter(|element| is_known(element)) {
        *expr = element.clone();
    }
    Ok(())
}

/// Whether it is a constant, including all of its elements.
pub(crate) fn is_known(expr: &Expr) -> bool {
    if let ExprKind::Array(elements) | ExprKind::Compound(elements) = &expr.kind {
        return elements.iter().all(is_known);
    }
    if let ExprKind::Repeat(element) = &expr.kind {
        return is_known(element);
    }
    matches!(expr.kind, ExprKind::Const(_))
}

fn constant(expr: &Expr) -> Option<Const> {
    if let ExprKind::Const(value) = expr.kind { Some(value) } else { None }
}

/// Returns the type that a binary expression computes in: that of its left operand.
fn expr_scalar(expr: &Expr) -> Scalar {
    let left = if let ExprKind::Binary(_, left, ..) = &expr.kind { left.ty.as_scalar() } else { None };
    left.unwrap_or(Scalar::I32)
}

/// Whether a literal's value is in the range of its settled type.
pub(crate) fn literal_fits(value: Const, ty: &Type) -> bool {
    match (value, ty.as_scalar().and_then(Scalar::integer_range)) {
        (Const::Int(value), Some((least, greatest))) => (least..=greatest).contains(&value),
        _ => true,
    }
}
