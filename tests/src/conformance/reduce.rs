//! The operations of reductions, in plain Rust.

use tma_model::{ReduceFamily, ReduceOp};
use tma_runtime::prelude::*;

use crate::random::{Sample, hash};

/// An element type with at least one reduction.
pub(crate) trait Reduce: Sample {
    /// Returns an operand. Integers have any bits, except for small numbers where equality or
    /// bounds would otherwise hardly ever occur. Floats are integral, so that their sums are exact.
    fn operand(op: ReduceOp, seed: u64, i: usize) -> Self;

    /// Reduces `self` in the tensor with `other` in the tile, or returns `None` if the type has no
    /// such operation.
    fn reduced(self, op: ReduceOp, other: Self) -> Option<Self>;
}

macro_rules! integers {
    ($($ty:ty)+) => { $(
        impl Reduce for $ty {
            fn operand(op: ReduceOp, seed: u64, i: usize) -> Self {
                let bits = hash(seed, i as u64);
                if op.family() == ReduceFamily::Count { (bits % 4) as $ty } else { bits as $ty }
            }

            fn reduced(self, op: ReduceOp, other: Self) -> Option<Self> {
                Some(match op {
                    ReduceOp::Add => self.wrapping_add(other),
                    ReduceOp::Min => self.min(other),
                    ReduceOp::Max => self.max(other),
                    ReduceOp::Inc if self >= other => 0,
                    ReduceOp::Inc => self + 1,
                    ReduceOp::Dec if self == 0 || self > other => other,
                    ReduceOp::Dec => self - 1,
                    ReduceOp::And => self & other,
                    ReduceOp::Or => self | other,
                    ReduceOp::Xor => self ^ other,
                })
            }
        }
    )+ };
}

integers!(u32 i32 u64 i64);

macro_rules! floats {
    ($($ty:ty, $from:expr;)+) => { $(
        impl Reduce for $ty {
            fn operand(_: ReduceOp, seed: u64, i: usize) -> Self {
                $from((hash(seed, i as u64) % 17) as f32 - 8.0)
            }

            fn reduced(self, op: ReduceOp, other: Self) -> Option<Self> {
                match op {
                    ReduceOp::Add => Some(self + other),
                    ReduceOp::Min => Some(self.min(other)),
                    ReduceOp::Max => Some(self.max(other)),
                    ReduceOp::Inc | ReduceOp::Dec | ReduceOp::And | ReduceOp::Or | ReduceOp::Xor => None,
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
