//! Operations on known values, as a kernel would compute them. None where that is not known here:
//! where an operand has no such operation, where an integer is divided by zero, and where LLVM
//! rounds.

use super::{BinaryOp, Const, MathOp, Scalar, UnaryOp};

/// The value of `op` on `a`, which is a `scalar`.
pub fn unary(op: UnaryOp, a: Const, scalar: Scalar) -> Option<Const> {
    let value = match (op, a) {
        (UnaryOp::Neg, Const::Int(a)) => Const::Int(-a),
        (UnaryOp::Neg, Const::Float(a)) => Const::Float(-a),
        (UnaryOp::Not, Const::Bool(a)) => Const::Bool(!a),
        (UnaryOp::Not, Const::Int(a)) => Const::Int(!a),
        (UnaryOp::Neg, Const::Bool(_)) | (UnaryOp::Not, Const::Float(_)) => return None,
        // Its type is not known yet.
        (_, Const::Literal { .. }) => return None,
    };
    Some(wrap(value, scalar))
}

/// The value of `op` on `a`, which is a `scalar`, and `b`, which is one too unless `op` is a shift.
pub fn binary(op: BinaryOp, a: Const, b: Const, scalar: Scalar) -> Option<Const> {
    let value = match (a, b) {
        (Const::Int(a), Const::Int(b)) => integers(op, a, b, scalar),
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
        (Const::Float(a), Const::Float(b)) => floats(op, a, b, scalar),
        _ => None,
    };
    value.map(|value| wrap(value, scalar))
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

/// In the precision of the type, as IEEE 754, Rust and the hardware round; not in 16 bits, which
/// Rust lacks.
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

/// The value of a function of these operands, where it does not round.
pub fn math(op: MathOp, operands: &[Const]) -> Option<Const> {
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
pub fn cast(value: Const, to: Scalar) -> Option<Const> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_their_type() {
        let [big, one, three] = [127, 1, 3].map(Const::Int);
        assert_eq!(binary(BinaryOp::Add, big, one, Scalar::I8), Some(Const::Int(-128)));
        assert_eq!(unary(UnaryOp::Not, one, Scalar::U8), Some(Const::Int(254)));
        assert_eq!(binary(BinaryOp::Shl, three, Const::Int(33), Scalar::U32), Some(Const::Int(6)));
        assert_eq!(binary(BinaryOp::Lt, three, one, Scalar::U32), Some(Const::Bool(false)));
        assert_eq!(cast(Const::Float(300.7), Scalar::U8), Some(Const::Int(255)));
        let tenth = f64::from(0.1_f32);
        let sum = binary(BinaryOp::Add, Const::Float(tenth), Const::Float(tenth), Scalar::F32);
        assert_eq!(sum, Some(Const::Float(f64::from(0.1_f32 + 0.1_f32))));
    }

    #[test]
    fn what_is_not_known_has_no_value() {
        let zero = Const::Int(0);
        assert_eq!(binary(BinaryOp::Div, Const::Int(1), zero, Scalar::U32), None);
        assert_eq!(binary(BinaryOp::Add, Const::Float(1.0), Const::Float(1.0), Scalar::F16), None);
        assert_eq!(cast(Const::Int(1 << 24), Scalar::F32), None);
        assert_eq!(math(MathOp::Abs, &[Const::Int(-1)]), None);
    }
}
