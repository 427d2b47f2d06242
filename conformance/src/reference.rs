//! The sums of a case in `f64`, with bounds on the precision that the hardware may lose.
//!
//! A tensor core truncates each product, and C, relative to the largest of them, and then truncates
//! the sum (`precision`). Nothing else about its arithmetic is taken from the simulator.

use tma_model::mma::{Accumulator, Form, Operand, ROWS};

use crate::case::Case;
use crate::number::{Float, Value, value};
use crate::operand::{Matrices, Matrix};

/// The expected value of an element of D.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Expected {
    /// Exactly these bits.
    Exactly(u32),
    /// A number at most `error` away from `value`.
    #[allow(missing_docs)]
    Near { value: f64, error: f64 },
    /// An infinity, and whether it is negative.
    Infinite(bool),
    /// A NaN.
    Nan,
    /// Any value: the bounds do not determine whether it overflows.
    Unknown,
}

/// Returns the fraction bits that a term keeps below the largest exponent, and those of a sum in
/// f32.
const fn precision(a: Operand) -> (i32, i32) {
    match a {
        Operand::E4m3 | Operand::E5m2 => (13, 13),
        Operand::F16 | Operand::Bf16 | Operand::Tf32 | Operand::S8 | Operand::U8 | Operand::B1 => (25, 23),
    }
}

/// Returns the values of an operand's elements.
fn values(operand: Operand, matrix: &Matrix) -> Vec<Value> {
    matrix.bits.iter().map(|bits| value(operand, *bits)).collect()
}

/// Returns the expected value of each element of D.
pub fn expected(case: &Case, matrices: &Matrices) -> Vec<Expected> {
    let form = case.form();
    let (a, b) = (values(form.a, &matrices.a), values(form.b, &matrices.b));
    let mut all = Vec::with_capacity(matrices.c.bits.len());
    for row in 0..ROWS {
        let depth = matrices.a.depth;
        let positions: Vec<u32> = (0..depth).map(|k| matrices.position(form, [row, k])).collect();
        let a = &a[(row * depth) as usize..][..depth as usize];
        for column in 0..form.n {
            let b = &b[(column * matrices.b.depth) as usize..][..matrices.b.depth as usize];
            let pairs: Vec<_> = a.iter().zip(&positions).map(|(a, at)| (*a, b[*at as usize])).collect();
            let c = matrices.c.at([row, column]);
            all.push(if form.d == Accumulator::S32 {
                Expected::Exactly(integer(case, &pairs, c))
            } else {
                float(case, &pairs, c)
            });
        }
    }
    all
}

/// Returns whether D starts from C in the first step.
fn starts_from_c(case: &Case) -> bool {
    case.addend != crate::draw::Addend::Absent
}

fn integer(case: &Case, pairs: &[(Value, Value)], c: u32) -> u32 {
    let number = |value| if let Value::Finite { value, .. } = value { value as i64 } else { 0 };
    let mut sum = if starts_from_c(case) { c as i32 } else { 0 };
    for step in pairs.chunks(case.form().stored_k() as usize) {
        let products: i64 = step.iter().map(|(a, b)| number(*a) * number(*b)).sum();
        let whole = i64::from(sum) + products;
        sum = match case.instruction.saturates {
            true => whole.clamp(i32::MIN.into(), i32::MAX.into()) as i32,
            false => whole as i32,
        };
    }
    sum as u32
}

fn float(case: &Case, pairs: &[(Value, Value)], c: u32) -> Expected {
    let form = case.form();
    let Some(format) = Float::of_sum(form.d) else { return Expected::Unknown };
    let mut sum = if !starts_from_c(case) {
        Expected::Near { value: 0.0, error: 0.0 }
    } else {
        match format.value(c) {
            Value::Finite { value, .. } => Expected::Near { value, error: 0.0 },
            Value::Infinite(negative) => Expected::Infinite(negative),
            Value::Nan => Expected::Nan,
        }
    };
    let [a, b] = case.instruction.negates;
    for step in pairs.chunks(form.stored_k() as usize) {
        sum = add(form, format, step, sum, a != b);
    }
    sum
}

/// Applies one instruction.
fn add(form: Form, format: Float, pairs: &[(Value, Value)], c: Expected, negates: bool) -> Expected {
    let (mut total, mut scale, mut magnitude) = (0.0, 0.0_f64, 0.0);
    let mut infinities = [false; 2];
    for (a, b) in pairs {
        match (*a, *b) {
            (Value::Nan, _) | (_, Value::Nan) => return Expected::Nan,
            (Value::Finite { value: a, scale: x }, Value::Finite { value: b, scale: y }) => {
                let product = if negates { -a * b } else { a * b };
                total += product;
                magnitude += product.abs();
                scale = scale.max(x * y);
            }
            (Value::Infinite(_), Value::Finite { scale, .. })
            | (Value::Finite { scale, .. }, Value::Infinite(_))
                if scale == 0.0 =>
            {
                return Expected::Nan;
            }
            (a, b) => infinities[usize::from((is_negative(a) != is_negative(b)) != negates)] = true,
        }
    }
    let before = match c {
        Expected::Nan => return Expected::Nan,
        Expected::Unknown | Expected::Exactly(_) => return Expected::Unknown,
        Expected::Infinite(negative) => {
            infinities[usize::from(negative)] = true;
            0.0
        }
        Expected::Near { value, error } => {
            total += value;
            magnitude += value.abs();
            // A subnormal has the smallest exponent.
            let least = if value.abs() + error > 0.0 { f64::from(1 - format.bias()).exp2() } else { 0.0 };
            scale = scale.max(value.abs() + error).max(least);
            error
        }
    };
    match infinities {
        [true, true] => return Expected::Nan,
        [false, false] => {}
        [_, negative] => return Expected::Infinite(negative),
    }
    let (term, sum) = precision(form.a);
    let fraction = if form.d == Accumulator::F16 { 11 } else { sum };
    let least = f64::from(1 - format.bias() - fraction).exp2();
    let terms = f64::from(form.stored_k() + 1) * scale * f64::from(-term).exp2();
    let lost = before + terms + magnitude * 1e-13;
    let error = lost + (total.abs() + lost) * f64::from(-fraction).exp2() + least;
    let most = f64::from(format.bias() + 1).exp2();
    if total.abs() - error >= most {
        return Expected::Infinite(total < 0.0);
    }
    // From half a unit below the end of the largest exponent, f16 rounds to infinity.
    if total.abs() + error >= most * (1.0 - 1.0 / 2048.0) {
        return Expected::Unknown;
    }
    Expected::Near { value: total, error }
}

fn is_negative(value: Value) -> bool {
    match value {
        Value::Finite { value, .. } => value.is_sign_negative(),
        Value::Infinite(negative) => negative,
        Value::Nan => false,
    }
}

impl Expected {
    /// Returns whether an element of D has the expected value.
    pub fn accepts(self, d: Accumulator, bits: u32) -> bool {
        let found = Float::of_sum(d).map(|format| format.value(bits));
        match self {
            Self::Exactly(expected) => bits == expected,
            Self::Near { value, error } => {
                matches!(found, Some(Value::Finite { value: found, .. }) if (found - value).abs() <= error)
            }
            Self::Infinite(negative) => found == Some(Value::Infinite(negative)),
            Self::Nan => found == Some(Value::Nan),
            Self::Unknown => true,
        }
    }
}
