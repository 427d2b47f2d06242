//! The operations of reductions, in plain Rust.

use tma_runtime::prelude::*;

use crate::random::{Sample, hash};

/// How a tile's elements go into the tensor's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reduction {
    /// The sum; integers wrap.
    Add,
    /// The lesser.
    Min,
    /// The greater.
    Max,
    /// One more, and from the operand on 0.
    Inc,
    /// One less, and from 0, or from above the operand, the operand.
    Dec,
    /// Bits of both.
    And,
    /// Bits of either.
    Or,
    /// Bits of one only.
    Xor,
}

impl Reduction {
    /// Its name, as in `reduce_add`.
    pub(super) fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

/// An element type that some reduction has.
pub(super) trait Reduce: Sample {
    /// An operand: any bits of integers, but small numbers where order or bounds would hardly ever be met; whole numbers of
    /// floats, whose sums are exact.
    fn operand(op: Reduction, seed: u64, i: usize) -> Self;

    /// `self` in the tensor, `other` in the tile; `None` where the type has no such operation.
    fn reduced(self, op: Reduction, other: Self) -> Option<Self>;
}

macro_rules! integers {
    ($($ty:ty)+) => { $(
        impl Reduce for $ty {
            fn operand(op: Reduction, seed: u64, i: usize) -> Self {
                let bits = hash(seed, i as u64);
                if matches!(op, Reduction::Inc | Reduction::Dec) { (bits % 4) as $ty } else { bits as $ty }
            }

            fn reduced(self, op: Reduction, other: Self) -> Option<Self> {
                Some(match op {
                    Reduction::Add => self.wrapping_add(other),
                    Reduction::Min => self.min(other),
                    Reduction::Max => self.max(other),
                    Reduction::Inc if self >= other => 0,
                    Reduction::Inc => self + 1,
                    Reduction::Dec if self == 0 || self > other => other,
                    Reduction::Dec => self - 1,
                    Reduction::And => self & other,
                    Reduction::Or => self | other,
                    Reduction::Xor => self ^ other,
                })
            }
        }
    )+ };
}

integers!(u32 i32 u64 i64);

macro_rules! floats {
    ($($ty:ty, $from:expr;)+) => { $(
        impl Reduce for $ty {
            fn operand(_: Reduction, seed: u64, i: usize) -> Self {
                $from((hash(seed, i as u64) % 17) as f32 - 8.0)
            }

            fn reduced(self, op: Reduction, other: Self) -> Option<Self> {
                match op {
                    Reduction::Add => Some(self + other),
                    Reduction::Min => Some(self.min(other)),
                    Reduction::Max => Some(self.max(other)),
                    Reduction::Inc | Reduction::Dec | Reduction::And | Reduction::Or | Reduction::Xor => None,
                }
            }
        }
    )+ };
}

floats! {
    f16, f16::from_f32;
    bf16, bf16::from_f32;
    f32, f32::from;
}
