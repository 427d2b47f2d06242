//! Computes what is known at compile time, so that rules on constants see through arithmetic.

#![warn(clippy::wildcard_enum_match_arm)]

use crate::ir::{BinaryOp, Const, Expr, ExprKind, MathOp, Scalar, Type, UnaryOp};

/// Replaces `expr`, whose operands are already folded, by its value if that is known.
/// The error is why a constant expression has no value.
pub(in crate::parse) fn fold(expr: &mut Expr) -> Result<(), &'static str> {
    let Some(scalar) = expr.ty.as_scalar() else { return fold_element(expr) };
    let value = match &expr.kind {
        ExprKind::Unary(op, a) => constant(a).and_then(|a| unary(*op, a)).map(|value| wrap(value, scalar)),
        ExprKind::Binary(op, a, b) => match (constant(a), constant(b)) {
            (_, Some(Const::Int(0))) if matches!(op, BinaryOp::Div | BinaryOp::Rem) => {
                return Err("it divides by zero");
            }
            (Some(a), Some(b)) => binary(*op, a, b, &expr_scalar(expr)).map(|value| wrap(value, scalar)),
            _ => None,
        },
        ExprKind::Cast(a) => constant(a).and_then(|value| cast(value, scalar)),
        ExprKind::Math(op, all) => {
            let known: Option<Vec<_>> = all.iter().map(constant).collect();
            known.and_then(|known| math(*op, &known))
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
        | ExprKind::Stage(..)
        | ExprKind::CachePolicy(..)
        | ExprKind::Hinted(..)
        | ExprKind::Remote(..)
        | ExprKind::ClusterAxis(_)
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

/// `[1, 2][1]` is `2`.
fn fold_element(expr: &mut Expr) -> Result<(), &'static str> {
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

/// Whether it is a constant, through and through.
pub(in crate::parse) fn is_known(expr: &Expr) -> bool {
    if let ExprKind::Array(elements) = &expr.kind {
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

/// The type that a binary expression computes in: that of its left side.
fn expr_scalar(expr: &Expr) -> Scalar {
    let left = if let ExprKind::Binary(_, left, _) = &expr.kind { left.ty.as_scalar() } else { None };
    left.unwrap_or(Scalar::I32)
}

fn unary(op: UnaryOp, a: Const) -> Option<Const> {
    match (op, a) {
        (UnaryOp::Neg, Const::Int(a)) => Some(Const::Int(-a)),
        (UnaryOp::Neg, Const::Float(a)) => Some(Const::Float(-a)),
        (UnaryOp::Not, Const::Bool(a)) => Some(Const::Bool(!a)),
        (UnaryOp::Not, Const::Int(a)) => Some(Const::Int(!a)),
        (UnaryOp::Neg, Const::Bool(_)) | (UnaryOp::Not, Const::Float(_)) => None,
        // Its type is not known yet.
        (_, Const::Literal { .. }) => None,
    }
}

fn binary(op: BinaryOp, a: Const, b: Const, scalar: &Scalar) -> Option<Const> {
    match (a, b) {
        (Const::Int(a), Const::Int(b)) => integers(op, a, b, *scalar),
        (Const::Bool(a), Const::Bool(b)) => Some(Const::Bool(match op {
            BinaryOp::And => a & b,
            BinaryOp::Or => a | b,
            BinaryOp::Xor | BinaryOp::Ne => a ^ b,
            BinaryOp::Eq => a == b,
            BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::Div
            | BinaryOp::Rem
            | BinaryOp::Shl
            | BinaryOp::Shr
            | BinaryOp::Lt
            | BinaryOp::Le
            | BinaryOp::Gt
            | BinaryOp::Ge => return None,
        })),
        (Const::Float(a), Const::Float(b)) => floats(op, a, b, *scalar),
        _ => None,
    }
}

fn integers(op: BinaryOp, a: i128, b: i128, scalar: Scalar) -> Option<Const> {
    let amount = || u32::try_from(b.rem_euclid(i128::from(scalar.bytes() * 8))).ok();
    let value = match op {
        BinaryOp::Add => a.wrapping_add(b),
        BinaryOp::Sub => a.wrapping_sub(b),
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::Div => a.checked_div(b)?,
        BinaryOp::Rem => a.checked_rem(b)?,
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        BinaryOp::Xor => a ^ b,
        BinaryOp::Shl => a.wrapping_shl(amount()?),
        BinaryOp::Shr => a.wrapping_shr(amount()?),
        BinaryOp::Eq => return Some(Const::Bool(a == b)),
        BinaryOp::Ne => return Some(Const::Bool(a != b)),
        BinaryOp::Lt => return Some(Const::Bool(a < b)),
        BinaryOp::Le => return Some(Const::Bool(a <= b)),
        BinaryOp::Gt => return Some(Const::Bool(a > b)),
        BinaryOp::Ge => return Some(Const::Bool(a >= b)),
    };
    Some(Const::Int(value))
}

/// In the precision of the type, as IEEE 754, Rust and the hardware round; not in 16 bits, which Rust lacks.
fn floats(op: BinaryOp, a: f64, b: f64, scalar: Scalar) -> Option<Const> {
    if !matches!(scalar, Scalar::F32 | Scalar::F64) {
        return None;
    }
    let value = match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::Div => a / b,
        BinaryOp::Eq => return Some(Const::Bool(a == b)),
        BinaryOp::Ne => return Some(Const::Bool(a != b)),
        BinaryOp::Lt => return Some(Const::Bool(a < b)),
        BinaryOp::Le => return Some(Const::Bool(a <= b)),
        BinaryOp::Gt => return Some(Const::Bool(a > b)),
        BinaryOp::Ge => return Some(Const::Bool(a >= b)),
        BinaryOp::Rem | BinaryOp::And | BinaryOp::Or | BinaryOp::Xor | BinaryOp::Shl | BinaryOp::Shr => {
            return None;
        }
    };
    Some(Const::Float(value))
}

fn math(op: MathOp, operands: &[Const]) -> Option<Const> {
    let [Const::Int(a), Const::Int(b)] = operands else { return None };
    match op {
        MathOp::Min => Some(Const::Int(*a.min(b))),
        MathOp::Max => Some(Const::Int(*a.max(b))),
        MathOp::Abs
        | MathOp::Fma
        | MathOp::Sqrt
        | MathOp::Rsqrt
        | MathOp::Exp2
        | MathOp::Log2
        | MathOp::Recip => None,
    }
}

/// The value as `scalar` holds it: integers wrap, floats are rounded.
fn wrap(value: Const, scalar: Scalar) -> Const {
    match (value, scalar.integer_range()) {
        (Const::Int(value), Some((least, greatest))) => {
            // Any number of bits above the type's own may have been lost: its range divides 2^128.
            Const::Int(value.wrapping_sub(least).rem_euclid(greatest - least + 1) + least)
        }
        // 53 bits are more than twice 24 and 2: rounding an operation to f64 first changes no f32.
        (Const::Float(value), None) if scalar == Scalar::F32 => Const::Float(f64::from(value as f32)),
        (value, _) => value,
    }
}

/// As Rust converts. What rounds an integer, or gives 16- or 8-bit floats, is left to LLVM.
fn cast(value: Const, to: Scalar) -> Option<Const> {
    match value {
        Const::Int(_) if to.is_integer() => Some(wrap(value, to)),
        Const::Int(n) if to == Scalar::F64 && n.unsigned_abs() < 1 << 53 => Some(Const::Float(n as f64)),
        Const::Int(n) if to == Scalar::F32 && n.unsigned_abs() < 1 << 24 => Some(Const::Float(n as f64)),
        Const::Bool(b) if to.is_integer() => Some(Const::Int(i128::from(b))),
        Const::Float(x) if matches!(to, Scalar::F32 | Scalar::F64) => Some(wrap(Const::Float(x), to)),
        Const::Float(x) => {
            let (least, greatest) = to.integer_range()?;
            Some(Const::Int((x as i128).clamp(least, greatest)))
        }
        Const::Int(_) | Const::Bool(_) | Const::Literal { .. } => None,
    }
}

/// Whether a literal's value fits its settled type.
pub(in crate::parse) fn literal_fits(value: Const, ty: &Type) -> bool {
    match (value, ty.as_scalar().and_then(Scalar::integer_range)) {
        (Const::Int(value), Some((least, greatest))) => (least..=greatest).contains(&value),
        _ => true,
    }
}
