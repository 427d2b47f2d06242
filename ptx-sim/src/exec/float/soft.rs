//! Arithmetic on exact values, for the formats and rounding modes that the host lacks. The result
//! is rounded once.

use crate::isa::float::format::{Finite, Value, jam};

/// Returns the sum.
pub(crate) fn add(a: Value, b: Value, down: bool) -> Value {
    match (a, b) {
        (Value::Nan, _) | (_, Value::Nan) => Value::Nan,
        (Value::Infinite { negative: left }, Value::Infinite { negative: right }) if left != right => {
            Value::Nan
        }
        (Value::Infinite { .. }, _) => a,
        (_, Value::Infinite { .. }) => b,
        (Value::Finite(a), Value::Finite(b)) => Value::Finite(add_finite(a, b, down)),
    }
}

/// Adds finite values. `down` makes the sign of an exact zero negative, as rounding down requires.
fn add_finite(a: Finite, b: Finite, down: bool) -> Finite {
    if a.mantissa == 0 && b.mantissa == 0 {
        let negative = if a.negative == b.negative { a.negative } else { down };
        return Finite { negative, mantissa: 0, exponent: 0 };
    }
    if a.mantissa == 0 {
        return b;
    }
    if b.mantissa == 0 {
        return a;
    }
    let (a, b) = (left_aligned(a), left_aligned(b));
    let (high, low) = if a.exponent >= b.exponent { (a, b) } else { (b, a) };
    let shifted = jam(low.mantissa, (high.exponent - low.exponent) as u32);
    let exponent = high.exponent;
    if high.negative == low.negative {
        return Finite { negative: high.negative, mantissa: high.mantissa + shifted, exponent };
    }
    match high.mantissa.cmp(&shifted) {
        std::cmp::Ordering::Equal => Finite { negative: down, mantissa: 0, exponent: 0 },
        std::cmp::Ordering::Greater => {
            Finite { negative: high.negative, mantissa: high.mantissa - shifted, exponent }
        }
        std::cmp::Ordering::Less => {
            Finite { negative: low.negative, mantissa: shifted - high.mantissa, exponent }
        }
    }
}

/// Shifts the top bit of the mantissa to bit 125 without changing the value. This leaves room for a
/// carry, and as many bits below as possible.
fn left_aligned(value: Finite) -> Finite {
    let by = value.mantissa.leading_zeros() as i32 - 2;
    if by < 0 {
        return Finite {
            mantissa: jam(value.mantissa, by.unsigned_abs()),
            exponent: value.exponent - by,
            ..value
        };
    }
    Finite { mantissa: value.mantissa << by, exponent: value.exponent - by, ..value }
}

/// Returns the product. Mantissas of up to 64 bits are exact.
pub(crate) fn multiply(a: Value, b: Value) -> Value {
    match (a, b) {
        (Value::Nan, _) | (_, Value::Nan) => Value::Nan,
        (Value::Infinite { negative: sign }, other) | (other, Value::Infinite { negative: sign }) => {
            match other {
                Value::Finite(Finite { mantissa: 0, .. }) => Value::Nan,
                other @ (Value::Nan | Value::Infinite { .. } | Value::Finite(_)) => {
                    Value::Infinite { negative: sign != is_negative(other) }
                }
            }
        }
        (Value::Finite(a), Value::Finite(b)) => Value::Finite(Finite {
            negative: a.negative != b.negative,
            mantissa: a.mantissa * b.mantissa,
            exponent: a.exponent + b.exponent,
        }),
    }
}

/// Returns the quotient, with at least 64 bits and a sticky bit for the remainder.
pub(crate) fn divide(a: Value, b: Value) -> Value {
    let negative = is_negative(a) != is_negative(b);
    match (a, b) {
        (Value::Nan, _) | (_, Value::Nan) | (Value::Infinite { .. }, Value::Infinite { .. }) => Value::Nan,
        (Value::Infinite { .. }, _) => Value::Infinite { negative },
        (_, Value::Infinite { .. }) => Value::Finite(Finite { negative, mantissa: 0, exponent: 0 }),
        (Value::Finite(a), Value::Finite(b)) => match (a.mantissa, b.mantissa) {
            (0, 0) => Value::Nan,
            (_, 0) => Value::Infinite { negative },
            (0, _) => Value::Finite(Finite { negative, mantissa: 0, exponent: 0 }),
            (dividend, divisor) => {
                // One bit stays free for the sticky bit.
                let by = dividend.leading_zeros() - 1;
                let dividend = dividend << by;
                let quotient = (dividend / divisor) << 1 | u128::from(dividend % divisor != 0);
                Value::Finite(Finite {
                    negative,
                    mantissa: quotient,
                    exponent: a.exponent - by as i32 - b.exponent - 1,
                })
            }
        },
    }
}

/// Returns the square root, with at least 60 bits and a sticky bit for the remainder.
pub(crate) fn square_root(a: Value) -> Value {
    match a {
        Value::Finite(Finite { mantissa: 0, .. }) => a,
        Value::Nan | Value::Infinite { negative: true } | Value::Finite(Finite { negative: true, .. }) => {
            Value::Nan
        }
        Value::Infinite { negative: false } => a,
        Value::Finite(Finite { mantissa, exponent, .. }) => {
            let room = mantissa.leading_zeros() as i32;
            // The exponent must be even, since it is halved.
            let by = room - i32::from((exponent - room).rem_euclid(2) == 1);
            let (mantissa, exponent) =
                if by >= 0 { (mantissa << by, exponent - by) } else { (jam(mantissa, 1), exponent + 1) };
            let root = mantissa.isqrt();
            let inexact = root * root != mantissa;
            Value::Finite(Finite {
                negative: false,
                mantissa: root << 1 | u128::from(inexact),
                exponent: exponent / 2 - 1,
            })
        }
    }
}

pub(crate) fn is_negative(value: Value) -> bool {
    match value {
        Value::Nan => false,
        Value::Infinite { negative } | Value::Finite(Finite { negative, .. }) => negative,
    }
}

/// Returns the value with its sign flipped.
pub(crate) fn negate(value: Value) -> Value {
    match value {
        Value::Nan => Value::Nan,
        Value::Infinite { negative } => Value::Infinite { negative: !negative },
        Value::Finite(finite) => Value::Finite(Finite { negative: !finite.negative, ..finite }),
    }
}
