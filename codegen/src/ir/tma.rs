//! What the copy engine does with a tensor map.

use super::{ClusterAxis, Expr, ReduceOp};

/// What the copy engine is asked for; `hint` is a [`Type::CachePolicy`](super::Type::CachePolicy).
/// Source: PTX ISA, "cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor", "cp.async.bulk.prefetch.tensor".
#[allow(missing_docs)] // each variant's own line names its fields
#[derive(Clone, Debug)]
pub enum TmaOp {
    /// Global to shared; completes on `barrier` with the bytes of the tile.
    Load { tile: Expr, at: Vec<Expr>, barrier: Expr, hint: Option<Expr> },
    /// Global to the same place in the blocks of the cluster whose bit in `mask` (a `u16`) is set; completes on the
    /// `barrier` of each with the bytes of the tile.
    LoadMulticast { tile: Expr, at: Vec<Expr>, barrier: Expr, mask: Expr, hint: Option<Expr> },
    /// This block's slice of `tile`, multicast to all blocks along `axis`, which do the same with theirs: the `barrier`
    /// of each gets the bytes of the whole tile. `at` is where the tile begins, the map's box is the slice.
    LoadSliced { tile: Expr, at: Vec<Expr>, barrier: Expr, axis: ClusterAxis, hint: Option<Expr> },
    /// Shared to global; part of the next bulk group of this thread.
    Store { at: Vec<Expr>, tile: Expr, hint: Option<Expr> },
    /// Shared into global, element by element; part of the next bulk group of this thread.
    Reduce { op: ReduceOp, at: Vec<Expr>, tile: Expr, hint: Option<Expr> },
    /// Global to the L2 cache.
    Prefetch { at: Vec<Expr>, hint: Option<Expr> },
    /// As `Load`, or with a `mask` as `LoadMulticast`, of a column of pixels that is moved by `offsets`, one (a `u16`) for
    /// each dimension of pixels.
    LoadColumn {
        tile: Expr,
        at: Vec<Expr>,
        offsets: Vec<Expr>,
        barrier: Expr,
        mask: Option<Expr>,
        hint: Option<Expr>,
    },
    /// As `Prefetch`, of a column of pixels.
    PrefetchColumn { at: Vec<Expr>, offsets: Vec<Expr>, hint: Option<Expr> },
    /// Brings the descriptor itself into its cache.
    PrefetchDescriptor,
}

impl TmaOp {
    /// The coordinates of the box, outermost first; none where the operation has no box.
    pub fn coordinates(&self) -> &[Expr] {
        match self {
            Self::Load { at, .. }
            | Self::LoadMulticast { at, .. }
            | Self::LoadSliced { at, .. }
            | Self::LoadColumn { at, .. }
            | Self::PrefetchColumn { at, .. }
            | Self::Store { at, .. }
            | Self::Reduce { at, .. }
            | Self::Prefetch { at, .. } => at,
            Self::PrefetchDescriptor => &[],
        }
    }

    /// How far the pixels of a column are moved, outermost dimension first; none where no column is loaded.
    pub fn offsets(&self) -> &[Expr] {
        match self {
            Self::LoadColumn { offsets, .. } | Self::PrefetchColumn { offsets, .. } => offsets,
            Self::Load { .. }
            | Self::Store { .. }
            | Self::LoadMulticast { .. }
            | Self::LoadSliced { .. }
            | Self::Reduce { .. }
            | Self::Prefetch { .. }
            | Self::PrefetchDescriptor => &[],
        }
    }

    /// The cache policy that it carries.
    pub fn hint(&self) -> Option<&Expr> {
        match self {
            Self::Load { hint, .. }
            | Self::LoadMulticast { hint, .. }
            | Self::LoadSliced { hint, .. }
            | Self::LoadColumn { hint, .. }
            | Self::PrefetchColumn { hint, .. }
            | Self::Store { hint, .. }
            | Self::Reduce { hint, .. }
            | Self::Prefetch { hint, .. } => hint.as_ref(),
            Self::PrefetchDescriptor => None,
        }
    }

    /// Whether it changes the tensor.
    pub fn writes(&self) -> bool {
        match self {
            Self::Store { .. } | Self::Reduce { .. } => true,
            Self::Load { .. }
            | Self::LoadMulticast { .. }
            | Self::LoadSliced { .. }
            | Self::Prefetch { .. }
            | Self::LoadColumn { .. }
            | Self::PrefetchColumn { .. }
            | Self::PrefetchDescriptor => false,
        }
    }
}
