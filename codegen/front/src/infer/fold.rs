//! Replaces constant expressions by their values, to let rules on constants see through arithmetic.

#![warn(clippy::wildcard_enum_match_arm)]

use crate::diag::mistake::NoValue;
use crate::ir::{Const, Expr, ExprKind, Scalar, Type, eval};

/// Replaces `expr`, whose operands are already folded, by its value if that is known. Returns an
/// error if the expression is constant but has no value.
pub(crate) fn fold(expr: &mut Expr) -> Result<(), NoValue> {
    let Some(scalar) = expr.ty.as_scalar() else { return fold_element(expr) };
    let value = match &expr.kind {
        ExprKind::Unary(op, a) => constant(a).and_then(|a| eval::unary(*op, a, scalar)),
        ExprKind::Binary(op, a, b) => match (constant(a), constant(b)) {
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
        | ExprKind::MapAt(..)
        | ExprKind::Unit
        | ExprKind::Error => None,
    };
    if let Some(value) = value {
        expr.kind = ExprKind::Const(value);
    }
    Ok(())
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
    let left = if let ExprKind::Binary(_, left, _) = &expr.kind { left.ty.as_scalar() } else { None };
    left.unwrap_or(Scalar::I32)
}

/// Whether a literal's value is in the range of its settled type.
pub(crate) fn literal_fits(value: Const, ty: &Type) -> bool {
    match (value, ty.as_scalar().and_then(Scalar::integer_range)) {
        (Const::Int(value), Some((least, greatest))) => (least..=greatest).contains(&value),
        _ => true,
    }
}
