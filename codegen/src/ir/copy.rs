//! Copies: what the copy engine moves, from where to where.

use super::{ClusterAxis, Expr, ParamId, ReduceOp};

/// A copy of a box of a tensor, or of a column of its pixels, by a tensor map.
/// Source: PTX ISA, "cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor",
/// "cp.async.bulk.prefetch.tensor".
#[derive(Clone, Debug)]
pub struct TileCopy {
    /// The tensor map.
    pub map: MapRef,
    /// The coordinates of the box, outermost first.
    pub at: Vec<Expr>,
    /// How far the pixels of a column are moved: a `u16` for each dimension of pixels, outermost
    /// first. Empty where no column is loaded or prefetched.
    pub offsets: Vec<Expr>,
    /// A [`Type::CachePolicy`](super::Type::CachePolicy).
    pub hint: Option<Expr>,
    /// The direction, with the tile.
    pub kind: CopyKind<Expr>,
}

/// A copy of `global[index..index + count]`, without a tensor map; traps out of bounds on either
/// side.
/// Source: PTX ISA, "cp.async.bulk", "cp.reduce.async.bulk", "cp.async.bulk.prefetch".
#[derive(Clone, Debug)]
pub struct BulkCopy {
    /// The slice of global memory.
    pub global: ParamId,
    /// The element of it that the copy begins at.
    pub index: Expr,
    /// How many elements (`u32`).
    pub count: Expr,
    /// A [`Type::CachePolicy`](super::Type::CachePolicy).
    pub hint: Option<Expr>,
    /// The direction, with the place in shared memory.
    pub kind: CopyKind<SharedRange>,
}

/// A copy of `from[at..at + count]` to the same elements of `to`, in the shared memory of another
/// block of the cluster, or a reduction into them; traps out of bounds on either side.
/// Source: PTX ISA, "cp.async.bulk", "cp.reduce.async.bulk".
#[derive(Clone, Debug)]
pub struct RemoteCopy {
    /// The reduction; none for a plain copy.
    pub op: Option<ReduceOp>,
    /// A shared array, or a tile without a swizzle.
    pub from: Expr,
    /// The same in another block.
    pub to: Expr,
    /// The element (`u32`), in row-major order, that the copy begins at.
    pub at: Expr,
    /// How many elements (`u32`).
    pub count: Expr,
    /// The barrier of the other block, on which the bytes complete.
    pub barrier: Expr,
}

/// What a copy between global and shared memory does; `S` is the place in shared memory.
#[derive(Clone, Debug)]
pub enum CopyKind<S> {
    /// Global to shared; completes on a barrier with the bytes.
    Load {
        /// The place that is filled.
        to: S,
        /// The barrier that the bytes complete on.
        barrier: Expr,
        /// Which other blocks of the cluster get it too.
        multicast: Option<Multicast>,
    },
    /// Shared to global; part of the next bulk group of this thread.
    Store {
        /// The place that is read.
        from: S,
    },
    /// Shared into global, element by element; part of the next bulk group of this thread.
    Reduce {
        /// What becomes of the old element and the new one.
        op: ReduceOp,
        /// The place that is read.
        from: S,
    },
    /// Global to the L2 cache.
    Prefetch,
}

/// The blocks of the cluster that a load fills, each at the same place and on its own barrier.
#[derive(Clone, Debug)]
pub enum Multicast {
    /// Those whose bit is set in a mask (`u16`).
    Mask(Box<Expr>),
    /// All along an axis. Each loads one slice for all of them, so that the barrier of each gets
    /// the bytes of the whole tile. The map's box is the slice; the coordinates are those of the
    /// tile.
    Sliced(ClusterAxis),
}

/// Elements of a shared array or of a tile without a swizzle.
#[derive(Clone, Debug)]
pub struct SharedRange {
    /// The array or tile.
    pub array: Expr,
    /// The element of it (`u32`), in row-major order, that the copy begins at.
    pub at: Expr,
}

/// A tensor map: a parameter, or one of a parameter's maps.
#[derive(Clone, Debug)]
pub struct MapRef {
    /// The parameter.
    pub param: ParamId,
    /// Which of its maps (`u32`), where it has several; traps out of bounds.
    pub index: Option<Expr>,
}

impl<S> CopyKind<S> {
    /// The place in shared memory.
    pub fn shared(&self) -> Option<&S> {
        match self {
            Self::Load { to: place, .. }
            | Self::Store { from: place }
            | Self::Reduce { from: place, op: _ } => Some(place),
            Self::Prefetch => None,
        }
    }

    /// The blocks that a load fills, where it is not this one alone.
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
