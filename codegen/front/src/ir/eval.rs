//! Constant evaluation, with the results that a kernel would compute. The functions return `None`
//! if the result is not known at compile time: if the operation is not defined for an operand, if
//! an integer is divided by zero, or if the rounding is left to LLVM.

use super::{BinaryOp, Const, IntegerOp, MathOp, Scalar, UnaryOp};

/// Evaluates `op` on `a`, of type `scalar`.
pub fn unary(op: UnaryOp, a: Const, scalar: Scalar) -> Option<Const> {
    let value = match (op, a) {
        (UnaryOp::Neg, Const::Int(a)) => Const::Int(-a),
        (UnaryOp::Neg, Const::Float(a)) => Const::Float(-a),
        (UnaryOp::Not, Const::Bool(a)) => Const::Bool(!a),
        (UnaryOp::Not, Const::Int(a)) => Const::Int(!a),
        (UnaryOp::Neg, Const::Bool(_)) | (UnaryOp::Not, Const::Float(_)) => return None,
        // The literal's type is not known yet.
        (_, Const::Literal { .. }) => return None,
    };
    Some(wrap(value, scalar))
}

/// Evaluates `op` on `a` and `b`. `a` is of type `scalar`, and so is `b` unless `op` is a shift.
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

/// Whether `op` on integers of type `scalar` has a result that the type does not have, or shifts by
/// the width of the type or more.
pub fn overflows(op: BinaryOp, a: Const, b: Const, scalar: Scalar) -> bool {
    let (Const::Int(a), Const::Int(b)) = (a, b) else { return false };
    let exact = match op {
        BinaryOp::Add => a.checked_add(b),
        BinaryOp::Sub => a.checked_sub(b),
        BinaryOp::Mul => a.checked_mul(b),
        // The remainder of the least number by -1 is 0, but Rust computes it with the quotient.
        BinaryOp::Div | BinaryOp::Rem if b != 0 => a.checked_div(b),
        BinaryOp::Shl | BinaryOp::Shr => return !(0..i128::from(scalar.bytes() * 8)).contains(&b),
        BinaryOp::Div | BinaryOp::Rem | BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => return false,
        BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => {
            return false;
        }
    };
    exact.is_none_or(|exact| !fits(exact, scalar))
}

/// Whether the integer `a` of type `scalar` has no opposite.
pub fn negation_overflows(a: Const, scalar: Scalar) -> bool {
    matches!(a, Const::Int(a) if !fits(-a, scalar))
}

fn fits(value: i128, scalar: Scalar) -> bool {
    scalar.integer_range().is_none_or(|(least, greatest)| (least..=greatest).contains(&value))
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

/// Computes in the precision of the type: IEEE 754, Rust and the hardware round alike. 16-bit
/// floats are left out, as Rust lacks them.
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

/// Evaluates a function of these operands, unless it rounds.
pub fn math(op: MathOp, operands: &[Const]) -> Option<Const> {
    let known = |operand: &Const| if let Const::Int(value) = operand { Some(*value) } else { None };
    let operands: Option<Vec<_>> = operands.iter().map(known).collect();
    match (op, operands?.as_slice()) {
        (MathOp::Min, [a, b]) => Some(Const::Int(*a.min(b))),
        (MathOp::Max, [a, b]) => Some(Const::Int(*a.max(b))),
        (MathOp::Clamp, [x, low, high]) if low <= high => Some(Const::Int(*x.clamp(low, high))),
        (
            MathOp::Min
            | MathOp::Max
            | MathOp::Clamp
            | MathOp::Abs
            | MathOp::Fma
            | MathOp::Sqrt
            | MathOp::Rsqrt
            | MathOp::Exp2
            | MathOp::Exp2Half
            | MathOp::Exp2Ftz
            | MathOp::Log2
            | MathOp::Recip
            | MathOp::Exp
            | MathOp::Log
            | MathOp::Sin
            | MathOp::Cos
            | MathOp::Tanh
            | MathOp::Pow
            | MathOp::CopySign,
            _,
        ) => None,
    }
}

/// Evaluates a function of integers of type `scalar`.
pub fn integer(op: IntegerOp, operands: &[Const], scalar: Scalar) -> Option<Const> {
    let [Const::Int(value), rest @ ..] = operands else { return None };
    let width = scalar.bytes() * 8;
    // The value shifted to the top of 64 bits, to exclude the bits below it.
    let (unused, low) = (u64::BITS - width, *value as u64 & (u64::MAX >> (u64::BITS - width)));
    let high = low << unused;
    let rotated = |left: u32| low.checked_shl(left).unwrap_or(0) | low.checked_shr(width - left).unwrap_or(0);
    let second = || if let [Const::Int(second)] = rest { Some(*second) } else { None };
    let amount = || u32::try_from(second()?.rem_euclid(i128::from(width))).ok();
    let saturated = |value: i128| {
        let (least, greatest) = scalar.integer_range()?;
        // The bits of a negative number.
        Some(value.clamp(least, greatest) as u64)
    };
    let found = match op {
        IntegerOp::CountOnes => low.count_ones().into(),
        IntegerOp::CountZeros => (width - low.count_ones()).into(),
        IntegerOp::LeadingZeros => high.leading_zeros().min(width).into(),
        IntegerOp::LeadingOnes => high.leading_ones().into(),
        IntegerOp::TrailingZeros => low.trailing_zeros().min(width).into(),
        IntegerOp::TrailingOnes => low.trailing_ones().into(),
        IntegerOp::ReverseBits => high.reverse_bits(),
        IntegerOp::SwapBytes => high.swap_bytes(),
        IntegerOp::RotateLeft => rotated(amount()?),
        IntegerOp::RotateRight => rotated((width - amount()?) % width),
        IntegerOp::SaturatingAdd => saturated(*value + second()?)?,
        IntegerOp::SaturatingSub => saturated(*value - second()?)?,
        IntegerOp::SaturatingMul => saturated(value.saturating_mul(second()?))?,
        // Of two `u64`, the product needs all of 128 bits.
        IntegerOp::MulHi => (value.wrapping_mul(second()?) as u128 >> width) as u64,
        IntegerOp::AbsDiff => u64::try_from(value.abs_diff(second()?)).ok()?,
        IntegerOp::Ilog2 => value.checked_ilog2()?.into(),
    };
    Some(wrap(Const::Int(found.into()), op.result(scalar)))
}

/// Converts the value to `scalar`: integers wrap, floats are rounded.
fn wrap(value: Const, scalar: Scalar) -> Const {
    match (value, scalar.integer_range()) {
        (Const::Int(value), Some((least, greatest))) => {
            // Wrapping in 128 bits loses nothing that matters: the size of the range divides 2^128.
            Const::Int(value.wrapping_sub(least).rem_euclid(greatest - least + 1) + least)
        }
        // Rounding to f64 first changes no f32: 53 bits are at least twice 24 plus 2.
        (Const::Float(value), None) if scalar == Scalar::F32 => Const::Float(f64::from(value as f32)),
        (value, _) => value,
    }
}

/// Converts as Rust does. Conversions that round an integer, or have a 16- or 8-bit float as their
/// result, are left to LLVM.
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
    fn results_outside_the_type_overflow() {
        let extremes = [
            (BinaryOp::Add, [i128::from(u64::MAX), 1], [i128::from(u64::MAX) - 1, 1], Scalar::U64),
            (BinaryOp::Sub, [0, 1], [1, 1], Scalar::U8),
            (BinaryOp::Sub, [-128, 1], [-127, 1], Scalar::I8),
            (BinaryOp::Mul, [i128::from(u64::MAX); 2], [i128::from(u64::MAX), 1], Scalar::U64),
            (BinaryOp::Div, [-128, -1], [-128, 1], Scalar::I8),
            (BinaryOp::Rem, [-32768, -1], [-32767, -1], Scalar::I16),
            (BinaryOp::Shl, [1, 32], [1, 31], Scalar::U32),
            (BinaryOp::Shr, [1, -1], [1, 0], Scalar::I64),
        ];
        for (op, outside, inside, scalar) in extremes {
            for ([a, b], wanted) in [(outside, true), (inside, false)] {
                let found = overflows(op, Const::Int(a), Const::Int(b), scalar);
                assert_eq!(found, wanted, "{a} {} {b} of {scalar}", op.sign());
            }
        }
        assert!(negation_overflows(Const::Int(-128), Scalar::I8));
        assert!(!negation_overflows(Const::Int(-128), Scalar::I16));
    }

    #[test]
    fn bits_are_those_of_the_width() {
        let of = |op, value: i128, amount: i128, scalar| {
            let rotates = matches!(op, IntegerOp::RotateLeft | IntegerOp::RotateRight);
            let operands = [Const::Int(value), Const::Int(amount)];
            match integer(op, &operands[..if rotates { 2 } else { 1 }], scalar) {
                Some(Const::Int(found)) => found,
                other => panic!("{op:?} is {other:?}"),
            }
        };
        for value in [0_i128, 1, -1, 0x53, -128, 0x7f, 100] {
            let (byte, signed, wide) = (value as u8, value as i8, value as i64);
            for (scalar, [ones, zeros, leading, trailing, top, bottom]) in [
                (
                    Scalar::U8,
                    [
                        byte.count_ones(),
                        byte.count_zeros(),
                        byte.leading_zeros(),
                        byte.trailing_zeros(),
                        byte.leading_ones(),
                        byte.trailing_ones(),
                    ],
                ),
                (
                    Scalar::I64,
                    [
                        wide.count_ones(),
                        wide.count_zeros(),
                        wide.leading_zeros(),
                        wide.trailing_zeros(),
                        wide.leading_ones(),
                        wide.trailing_ones(),
                    ],
                ),
            ] {
                assert_eq!(of(IntegerOp::CountOnes, value, 0, scalar), ones.into());
                assert_eq!(of(IntegerOp::CountZeros, value, 0, scalar), zeros.into());
                assert_eq!(of(IntegerOp::LeadingZeros, value, 0, scalar), leading.into());
                assert_eq!(of(IntegerOp::TrailingZeros, value, 0, scalar), trailing.into());
                assert_eq!(of(IntegerOp::LeadingOnes, value, 0, scalar), top.into());
                assert_eq!(of(IntegerOp::TrailingOnes, value, 0, scalar), bottom.into());
            }
            assert_eq!(of(IntegerOp::ReverseBits, value, 0, Scalar::I8), signed.reverse_bits().into());
            assert_eq!(of(IntegerOp::SwapBytes, value, 0, Scalar::U8), byte.into());
            assert_eq!(of(IntegerOp::SwapBytes, value, 0, Scalar::I64), wide.swap_bytes().into());
            for amount in [0, 1, 7, 8, 13] {
                let by = i128::from(amount);
                assert_eq!(
                    of(IntegerOp::RotateLeft, value, by, Scalar::I8),
                    signed.rotate_left(amount).into()
                );
                assert_eq!(
                    of(IntegerOp::RotateRight, value, by, Scalar::I8),
                    signed.rotate_right(amount).into()
                );
                assert_eq!(
                    of(IntegerOp::RotateRight, value, by, Scalar::I64),
                    wide.rotate_right(amount).into()
                );
            }
        }
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
