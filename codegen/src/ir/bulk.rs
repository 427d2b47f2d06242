//! Copies of elements that lie one after the other, without a tensor map.

use super::{Expr, ReduceOp};

/// What a bulk copy does with `global[index..index + count]`. `array` is a shared array or a tile without a swizzle, and `at`
/// (a `u32`) the element of it, in row-major order, that the copy begins at.
/// Source: PTX ISA, "cp.async.bulk", "cp.reduce.async.bulk", "cp.async.bulk.prefetch".
#[allow(missing_docs)] // each variant's own line names its fields
#[derive(Clone, Debug)]
pub enum BulkOp {
    /// Global to shared; completes on `barrier` with the bytes of the elements. With a `mask` (a `u16`), to the same place in
    /// the blocks of the cluster whose bit is set, on the barrier of each.
    Load { array: Expr, at: Expr, barrier: Expr, mask: Option<Box<Expr>> },
    /// Shared to global; part of the next bulk group of this thread.
    Store { array: Expr, at: Expr },
    /// Shared into global, element by element; part of the next bulk group of this thread.
    Reduce { op: ReduceOp, array: Expr, at: Expr },
    /// Global to the L2 cache.
    Prefetch,
}

impl BulkOp {
    /// The shared memory, and where in it the copy begins.
    pub fn shared(&self) -> Option<(&Expr, &Expr)> {
        match self {
            Self::Load { array, at, .. } | Self::Store { array, at } | Self::Reduce { array, at, .. } => {
                Some((array, at))
            }
            Self::Prefetch => None,
        }
    }

    /// Whether it changes global memory.
    pub fn writes(&self) -> bool {
        match self {
            Self::Store { .. } | Self::Reduce { .. } => true,
            Self::Load { .. } | Self::Prefetch => false,
        }
    }
}
