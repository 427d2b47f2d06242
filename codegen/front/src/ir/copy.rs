//! Asynchronous copies between memories.

use super::{ClusterAxis, Expr, ParamId, ReduceOp};

/// A copy of a box of a tensor, or of a column of its pixels, that uses a tensor map.
///
/// Source: PTX ISA, "cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor",
/// "cp.async.bulk.prefetch.tensor".
#[derive(Clone, Debug)]
pub struct TileCopy {
    /// The tensor map.
    pub map: MapRef,
    /// The coordinates of the box, outermost first.
    pub at: Vec<Expr>,
    /// The im2col offsets of the pixels of a column: a `u16` for each pixel dimension, outermost
    /// first. Empty unless a column is loaded or prefetched.
    pub offsets: Vec<Expr>,
    /// The cache policy, a [`Type::CachePolicy`](super::Type::CachePolicy).
    pub hint: Option<Expr>,
    /// The direction, with the tile.
    pub kind: CopyKind<Expr>,
}

/// A copy of `global[index..index + count]` without a tensor map. Traps out of bounds on either
/// side.
///
/// Source: PTX ISA, "cp.async.bulk", "cp.reduce.async.bulk", "cp.async.bulk.prefetch".
#[derive(Clone, Debug)]
pub struct BulkCopy {
    /// The slice of global memory.
    pub global: GlobalRef,
    /// The index of the first element.
    pub index: Expr,
    /// The number of elements (`u32`).
    pub count: Expr,
    /// The cache policy, a [`Type::CachePolicy`](super::Type::CachePolicy).
    pub hint: Option<Expr>,
    /// The direction, with the range in shared memory.
    pub kind: CopyKind<SharedRange>,
}

/// A copy of `from[at..at + count]` to the same elements of `to` in the shared memory of another
/// block of the cluster, or a reduction into them. Traps out of bounds on either side.
///
/// Source: PTX ISA, "cp.async.bulk", "cp.reduce.async.bulk".
#[derive(Clone, Debug)]
pub struct RemoteCopy {
    /// The reduction; `None` for a plain copy.
    pub op: Option<ReduceOp>,
    /// The source: a shared array, or a tile without a swizzle.
    pub from: Expr,
    /// The destination: a shared array, or a tile without a swizzle, of another block.
    pub to: Expr,
    /// The index (`u32`, row-major) of the first element.
    pub at: Expr,
    /// The number of elements (`u32`).
    pub count: Expr,
    /// The barrier of the other block that the copied bytes complete on.
    pub barrier: Expr,
}

/// The direction of a copy between global and shared memory. `S` is the shared-memory side.
#[derive(Clone, Debug)]
pub enum CopyKind<S> {
    /// Global to shared; the bytes complete on a barrier.
    Load {
        /// The destination.
        to: S,
        /// The barrier that the bytes complete on.
        barrier: Expr,
        /// The other blocks of the cluster that also receive the data.
        multicast: Option<Multicast>,
    },
    /// Shared to global; part of the next bulk group of this thread.
    Store {
        /// The source.
        from: S,
    },
    /// Shared into global, combined element by element; part of the next bulk group of this thread.
    Reduce {
        /// The operation on the old and the new element.
        op: ReduceOp,
        /// The source.
        from: S,
    },
    /// Global to the L2 cache.
    Prefetch,
}

/// The blocks of the cluster that a load fills. Each receives the data at the same shared address
/// and completes it on its own barrier.
#[derive(Clone, Debug)]
pub enum Multicast {
    /// The blocks whose bits are set in a mask (`u16`).
    Mask(Box<Expr>),
    /// All blocks along an axis. Each loads one slice for all of them; in total, the barrier of
    /// each receives the bytes of the whole tile. The map's box is the slice, the coordinates are
    /// those of the tile.
    Sliced(ClusterAxis),
}

/// A range of elements of a shared array or of a tile without a swizzle.
#[derive(Clone, Debug)]
pub struct SharedRange {
    /// The array or tile.
    pub array: Expr,
    /// The index (`u32`, row-major) of the first element.
    pub at: Expr,
}

/// A tensor map: a parameter, or one of the maps of a parameter.
#[derive(Clone, Debug)]
pub struct MapRef {
    /// The parameter.
    pub param: ParamId,
    /// The index (`u32`) among its maps, if it has several. For maps that kernels make it traps out
    /// of bounds; for those of a team it is a rank.
    pub index: Option<Expr>,
}

/// A slice of global memory: a parameter, or the slice of a rank.
#[derive(Clone, Debug)]
pub struct GlobalRef {
    /// The parameter.
    pub param: ParamId,
    /// The rank (`u32`), if the parameter has a slice of each.
    pub rank: Option<Box<Expr>>,
}

impl GlobalRef {
    /// Returns the location of an element: the rank, if there is one, and the index.
    pub fn at<'e>(&'e self, index: &'e Expr) -> Vec<&'e Expr> {
        self.rank.as_deref().into_iter().chain([index]).collect()
    }
}

impl From<ParamId> for GlobalRef {
    fn from(param: ParamId) -> Self {
        Self { param, rank: None }
    }
}

impl<S> CopyKind<S> {
    /// Returns the shared-memory side.
    pub fn shared(&self) -> Option<&S> {
        match self {
            Self::Load { to: place, .. }
            | Self::Store { from: place }
            | Self::Reduce { from: place, op: _ } => Some(place),
            Self::Prefetch => None,
        }
    }

    /// Returns the blocks that a load fills, unless it is this one alone.
    pub fn multicast(&self) -> Option<&Multicast> {
        match self {
            Self::Load { multicast, .. } => multicast.as_ref(),
            Self::Store { .. } | Self::Reduce { .. } | Self::Prefetch => None,
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
