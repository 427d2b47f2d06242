//! Ranges of indices, to recognise that each block accesses a part of its own.

use tma_front::ir::{BinaryOp, Expr, ExprKind, Scalar};

use super::numbers::ValueNumber;

/// The sum of `block * blockIdx.x` and a number from `least` to `most`, in every thread and
/// iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockRange {
    pub(super) block: i128,
    pub(super) least: i128,
    pub(super) most: i128,
}

/// The greatest number that does not make indices wrap.
const MAX: i128 = 1 << 20;

impl BlockRange {
    fn if_small(self) -> Option<Self> {
        [self.block, self.least, self.most].iter().all(|number| (0..=MAX).contains(number)).then_some(self)
    }

    fn plus(self, other: Self) -> Option<Self> {
        Self {
            block: self.block + other.block,
            least: self.least + other.least,
            most: self.most + other.most,
        }
        .if_small()
    }

    fn minus(self, other: Self) -> Option<Self> {
        Self {
            block: self.block - other.block,
            least: self.least - other.most,
            most: self.most - other.least,
        }
        .if_small()
    }

    /// Returns the product of two spans, if `other` is a known number.
    fn times(self, other: Self) -> Option<Self> {
        let factor = other.known()?;
        Self { block: self.block * factor, least: self.least * factor, most: self.most * factor }.if_small()
    }

    /// Returns the number, if there is only one.
    fn known(self) -> Option<i128> {
        (self.block == 0 && self.least == self.most).then_some(self.least)
    }

    /// Returns the values of a loop's variable.
    pub(super) fn of_range(start: Option<Self>, end: Option<Self>, inclusive: bool) -> Option<Self> {
        let (start, end) = start.zip(end)?;
        let most = if inclusive { end.most } else { end.most - 1 };
        // The range may be empty.
        (start.block == end.block)
            .then_some(Self { most: most.max(start.least), ..start })
            .and_then(Self::if_small)
    }

    /// Whether `len` elements from this index on, and `other_len` from the other one on, lie in a
    /// part that belongs to the block. Two blocks never have a part in common.
    pub(super) fn is_of_own_block(self, len: u32, other: Self, other_len: u32) -> bool {
        let end = (self.most + i128::from(len)).max(other.most + i128::from(other_len));
        self.block > 0 && self.block == other.block && end - self.least.min(other.least) <= self.block
    }
}

/// Returns the span of an expression, unless it may wrap.
pub(super) fn of(expr: &Expr, operands: &[ValueNumber]) -> Option<BlockRange> {
    let (_, most) = expr.ty.as_scalar()?.integer_range()?;
    computed(expr, operands).filter(|block_range| block_range.most <= most)
}

fn computed(expr: &Expr, operands: &[ValueNumber]) -> Option<BlockRange> {
    if let Some(number) = expr.as_int() {
        return BlockRange { block: 0, least: number, most: number }.if_small();
    }
    let bytes = |expr: &Expr| expr.ty.as_scalar().filter(|scalar| scalar.is_integer()).map(Scalar::bytes);
    if let (ExprKind::Cast(inner), [a]) = (&expr.kind, operands) {
        return a.block_range.filter(|_| bytes(inner).is_some() && bytes(expr) >= bytes(inner));
    }
    let (ExprKind::Binary(op, ..), [a, b]) = (&expr.kind, operands) else { return None };
    let (a, b) = a.block_range.zip(b.block_range)?;
    let by = b.known().filter(|by| *by > 0 && a.block == 0);
    match op {
        BinaryOp::Add => a.plus(b),
        BinaryOp::Sub => a.minus(b),
        BinaryOp::Mul => a.times(b).or_else(|| b.times(a)),
        BinaryOp::Div => by.map(|by| BlockRange { block: 0, least: a.least / by, most: a.most / by }),
        BinaryOp::Rem => by.map(|by| BlockRange { block: 0, least: 0, most: a.most.min(by - 1) }),
        BinaryOp::And => (a.block == 0 && b.block == 0).then(|| BlockRange {
            block: 0,
            least: 0,
            most: a.most.min(b.most),
        }),
        BinaryOp::Or
        | BinaryOp::Xor
        | BinaryOp::Shl
        | BinaryOp::Shr
        | BinaryOp::Eq
        | BinaryOp::Ne
        | BinaryOp::Lt
        | BinaryOp::Le
        | BinaryOp::Gt
        | BinaryOp::Ge => None,
    }
}
