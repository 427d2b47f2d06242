//! The lowest bits of integers, as far as they are known for all inputs: `8 * n + 1` ends in `001`.
//!
//! Integers wrap at a power of two. So the low bits of sums, differences, products and shifts
//! follow from the low bits of their operands, and the bits above do not matter. Only variables
//! that are assigned once are followed.

use crate::diag::mistake::Misalignment;
use crate::ir::{BinaryOp, Block, Expr, ExprKind, LocalId, Stmt, StmtKind, Type, UnaryOp, visit};
use crate::limits::MAX_RANK;
use crate::quick::QuickMap;

/// A number of which the lowest `known` bits are those of `bits`. The other bits of `bits` are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LowBits {
    pub(super) known: u32,
    pub(super) bits: u64,
}

const UNKNOWN: LowBits = LowBits { known: 0, bits: 0 };

impl LowBits {
    /// Returns the position of a number with these bits between multiples of `unit`, a power of
    /// two, unless the number may be a multiple. `value` is the number, if all of it is known.
    pub(super) fn misalignment(self, unit: u32, value: Option<i128>) -> Option<Misalignment> {
        let more = self.bits % u64::from(unit);
        let multiple = unit.min(1 << self.known.min(u32::BITS - 1));
        (more != 0).then_some(match value {
            Some(value) => Misalignment::Known { value },
            None => Misalignment::Always { more, multiple },
        })
    }

    fn new(known: u32, bits: u64) -> Self {
        let known = known.min(u64::BITS);
        Self { known, bits: bits & ones(known) }
    }

    /// Returns the trailing zeros of `bits`. If all known bits are 0, these are more than the known
    /// ones, so callers limit them to what is known.
    fn trailing_zeros(self) -> u32 {
        self.bits.trailing_zeros()
    }
}

const fn ones(count: u32) -> u64 {
    if count >= u64::BITS { u64::MAX } else { (1 << count) - 1 }
}

/// The low bits of variables, by element for arrays.
pub(super) struct Variables {
    /// The number of assignments to each variable.
    assignments: QuickMap<LocalId, u32>,
    known: QuickMap<LocalId, Vec<LowBits>>,
}

impl Variables {
    /// Creates the variables of a kernel with this body.
    pub(super) fn new(body: &Block) -> Self {
        let mut assignments = QuickMap::default();
        visit::for_each_stmt(body, &mut |stmt| {
            if let StmtKind::Assign { local, .. } = stmt.kind {
                *assignments.entry(local).or_default() += 1;
            }
        });
        Self { assignments, known: QuickMap::default() }
    }

    /// Passes a statement. This must be called for all statements, in order. A variable is assigned
    /// before it is read.
    pub(super) fn visit(&mut self, stmt: &Stmt) {
        if let StmtKind::Assign { local, index, value } = &stmt.kind
            && index.is_empty()
            && self.assignments.get(local) == Some(&1)
        {
            let bits = self.elements(value);
            self.known.insert(*local, bits);
        } else if let StmtKind::For(inner) = &stmt.kind
            && !self.assignments.contains_key(&inner.variable)
        {
            let (start, step) = (self.of(&inner.start), self.of(&inner.step));
            let bits = LowBits::new(start.known.min(step.trailing_zeros().min(step.known)), start.bits);
            self.known.insert(inner.variable, vec![bits]);
        }
    }

    fn elements(&self, value: &Expr) -> Vec<LowBits> {
        match (&value.kind, &value.ty) {
            (ExprKind::Array(elements), _) => elements.iter().map(|element| self.of(element)).collect(),
            // Not more elements than there are coordinates are kept. The array may be of any
            // length, even one that is too great.
            (ExprKind::Repeat(element), Type::Array(_, len)) => {
                vec![self.of(element); MAX_RANK.min(*len as usize)]
            }
            (ExprKind::Local(local), _) => self.known.get(local).cloned().unwrap_or_default(),
            _ => vec![self.of(value)],
        }
    }

    /// Returns the low bits of a value.
    pub(super) fn of(&self, expr: &Expr) -> LowBits {
        let Some(scalar) = expr.ty.as_scalar().filter(|scalar| scalar.is_integer()) else { return UNKNOWN };
        let width = scalar.bytes() * 8;
        let found = match &expr.kind {
            ExprKind::Const(_) => match expr.as_int() {
                Some(value) => LowBits::new(width, value as u64),
                None => UNKNOWN,
            },
            ExprKind::Local(local) => self.element(*local, 0),
            ExprKind::Index(array, index) => match (&array.kind, index.as_int().map(usize::try_from)) {
                (ExprKind::Local(local), Some(Ok(index))) => self.element(*local, index),
                _ => UNKNOWN,
            },
            ExprKind::Cast(a) => self.of(a),
            ExprKind::Unary(op, a) => {
                let a = self.of(a);
                match op {
                    UnaryOp::Neg => LowBits::new(a.known, a.bits.wrapping_neg()),
                    UnaryOp::Not => LowBits::new(a.known, !a.bits),
                }
            }
            ExprKind::Binary(op, a, b, _) => binary(*op, self.of(a), self.of(b), width),
            ExprKind::Shared(_)
            | ExprKind::Param(_)
            | ExprKind::GlobalLen(_)
            | ExprKind::Special(_)
            | ExprKind::Bits(_)
            | ExprKind::Math(..)
            | ExprKind::Integer(..)
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
            | ExprKind::Error => UNKNOWN,
        };
        LowBits::new(found.known.min(width), found.bits)
    }

    fn element(&self, local: LocalId, index: usize) -> LowBits {
        self.known.get(&local).and_then(|elements| elements.get(index)).copied().unwrap_or(UNKNOWN)
    }
}

fn binary(op: BinaryOp, a: LowBits, b: LowBits, width: u32) -> LowBits {
    let both = a.known.min(b.known);
    match op {
        BinaryOp::Add => LowBits::new(both, a.bits.wrapping_add(b.bits)),
        BinaryOp::Sub => LowBits::new(both, a.bits.wrapping_sub(b.bits)),
        BinaryOp::Or => LowBits::new(both, a.bits | b.bits),
        BinaryOp::Xor => LowBits::new(both, a.bits ^ b.bits),
        BinaryOp::And => {
            let zeros = ones(a.known) & !a.bits | ones(b.known) & !b.bits;
            LowBits::new((ones(both) | zeros).trailing_ones(), a.bits & b.bits)
        }
        // (A·2ᵐ + a) (B·2ⁿ + b) = AB·2ᵐ⁺ⁿ + Ab·2ᵐ + Ba·2ⁿ + ab
        BinaryOp::Mul => {
            let cross = (a.known + b.trailing_zeros()).min(b.known + a.trailing_zeros());
            LowBits::new(cross.min(a.known + b.known), a.bits.wrapping_mul(b.bits))
        }
        // A known amount is less than the width, since shifts take it modulo the width.
        BinaryOp::Shl if b.known >= 6 => {
            let amount = b.bits as u32 % width;
            LowBits::new(a.known + amount, a.bits << amount)
        }
        BinaryOp::Shr if b.known >= 6 => {
            let amount = b.bits as u32 % width;
            LowBits::new(a.known.saturating_sub(amount), a.bits >> amount)
        }
        BinaryOp::Shl
        | BinaryOp::Shr
        | BinaryOp::Div
        | BinaryOp::Rem
        | BinaryOp::Eq
        | BinaryOp::Ne
        | BinaryOp::Lt
        | BinaryOp::Le
        | BinaryOp::Gt
        | BinaryOp::Ge => UNKNOWN,
    }
}
