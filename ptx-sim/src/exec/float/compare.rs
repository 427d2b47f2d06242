//! Comparisons of `setp` and `set`.

use std::cmp::Ordering;

use super::FloatType;
use super::format::{Format, Value};

/// The comparison operators, of integers and of floating-point numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// The unordered forms are true if an operand is NaN.
    Equ,
    Neu,
    Ltu,
    Leu,
    Gtu,
    Geu,
    /// Both are numbers.
    Num,
    /// Either is NaN.
    Nan,
}

impl Comparison {
    /// What it says of an order; none means that an operand is NaN.
    #[inline]
    pub(crate) fn of(self, order: Option<Ordering>) -> bool {
        let Some(order) = order else {
            return matches!(
                self,
                Self::Equ | Self::Neu | Self::Ltu | Self::Leu | Self::Gtu | Self::Geu | Self::Nan
            );
        };
        match self {
            Self::Eq | Self::Equ => order.is_eq(),
            Self::Ne | Self::Neu => order.is_ne(),
            Self::Lt | Self::Ltu => order.is_lt(),
            Self::Le | Self::Leu => order.is_le(),
            Self::Gt | Self::Gtu => order.is_gt(),
            Self::Ge | Self::Geu => order.is_ge(),
            Self::Num => true,
            Self::Nan => false,
        }
    }
}

/// The order of two numbers; none if one is NaN.
pub(crate) fn order(ty: FloatType, flush: bool, a: u64, b: u64) -> Option<Ordering> {
    match ty {
        FloatType::F64 => f64::from_bits(a).partial_cmp(&f64::from_bits(b)),
        FloatType::F32 if !flush => f32::from_bits(a as u32).partial_cmp(&f32::from_bits(b as u32)),
        _ => order_of_bits(ty.format(), flush, a, b),
    }
}

fn order_of_bits(format: Format, flush: bool, a: u64, b: u64) -> Option<Ordering> {
    let key = |bits: u64| {
        if format.unpack(bits, false) == Value::Nan {
            return None;
        }
        let magnitude = bits & !format.sign_bit();
        let magnitude = if flush && magnitude < 1 << format.fraction { 0 } else { magnitude };
        let signed = magnitude as i64;
        Some(if bits & format.sign_bit() == 0 { signed } else { -signed })
    };
    Some(key(a)?.cmp(&key(b)?))
}
