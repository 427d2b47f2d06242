//! Comparisons of `setp` and `set`.

use std::cmp::Ordering;

/// The comparison operators, of integers and of floating-point numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// The unordered forms, which are true if an operand is NaN.
    Equ,
    Neu,
    Ltu,
    Leu,
    Gtu,
    Geu,
    /// Both operands are numbers.
    Num,
    /// Either operand is NaN.
    Nan,
}

impl Comparison {
    /// Returns the result of this comparison for operands in the given order. `None` means that an
    /// operand is NaN.
    #[inline]
    pub(crate) fn of(self, order: Option<Ordering>) -> bool {
        let Some(order) = order else {
            return match self {
                Self::Equ | Self::Neu | Self::Ltu | Self::Leu | Self::Gtu | Self::Geu | Self::Nan => true,
                Self::Eq | Self::Ne | Self::Lt | Self::Le | Self::Gt | Self::Ge | Self::Num => false,
            };
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
