//! Asynchronous copies, as the executing side asks for them.

use tma_model::ReduceOp as Reduction;

use crate::isa::Space;
use crate::machine::index::{MapId, ThreadId};
use crate::tensor_map::DataType;

/// What a tensor copy does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorAction {
    /// Global to shared memory; completes on an mbarrier.
    Load {
        /// Space of `tile` and of `barrier`.
        space: Space,
        /// The tile.
        tile: u64,
        /// The mbarrier that gets the bytes.
        barrier: u64,
        /// `.multicast::cluster`: the blocks that get the tile and the bytes, at the same offsets.
        multicast: Option<u16>,
    },
    /// Shared to global memory; completes with a bulk group.
    Store {
        /// The tile, in the thread's own block.
        tile: u64,
    },
    /// As `Store`, combining with what is there.
    Reduce {
        /// The tile, in the thread's own block.
        tile: u64,
        /// How.
        with: Reduction,
    },
    /// To the L2 cache only.
    Prefetch,
}

/// `cp.async.bulk.tensor`, `cp.reduce.async.bulk.tensor`, `cp.async.bulk.prefetch.tensor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorCopy {
    /// The map: see [`Machine::know_map`](crate::machine::Machine::know_map).
    pub map: MapId,
    /// Where the map lies in global memory; none for one in the kernel's parameters.
    pub descriptor: Option<u64>,
    /// Innermost first; those beyond the rank are ignored.
    pub at: [i32; 5],
    /// The number of coordinates.
    pub rank: u32,
    /// `.im2col` or `.im2col_no_offs`, not `.tile`.
    pub im2col: bool,
    /// The offsets of `.im2col`, innermost first; zeros without.
    pub offsets: [u16; 3],
    /// What to do.
    pub action: TensorAction,
}

/// How the elements of a copy are combined with what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Combination {
    /// The operation.
    pub with: Reduction,
    /// The elements' type.
    pub element: DataType,
}

impl From<(Reduction, DataType)> for Combination {
    fn from((with, element): (Reduction, DataType)) -> Self {
        Self { with, element }
    }
}

/// `cp.async.bulk`, `cp.reduce.async.bulk`: bytes that lie together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkCopy {
    /// How many, a multiple of 16.
    pub bytes: u32,
    /// From where to where.
    pub action: BulkAction,
}

/// From where to where a [`BulkCopy`] goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkAction {
    /// Global to shared memory; completes on an mbarrier.
    Load {
        /// The source.
        global: u64,
        /// Space of `to` and of `barrier`.
        space: Space,
        /// The destination.
        to: u64,
        /// The mbarrier that gets the bytes.
        barrier: u64,
        /// `.multicast::cluster`.
        multicast: Option<u16>,
    },
    /// Shared to global memory; completes with a bulk group.
    Store {
        /// The source, in the thread's own block.
        from: u64,
        /// The destination.
        global: u64,
        /// How the bytes are combined with what is there; none of a plain copy.
        reduce: Option<Combination>,
    },
    /// The thread's own block's shared memory to that of another; completes on an mbarrier there.
    ToCluster {
        /// The source, in the thread's own block.
        from: u64,
        /// The destination, of space `shared::cluster`.
        to: u64,
        /// The mbarrier that gets the bytes, of space `shared::cluster`.
        barrier: u64,
        /// How the bytes are combined with what is there; none of a plain copy.
        reduce: Option<Combination>,
    },
    /// To the L2 cache only.
    Prefetch {
        /// The source.
        global: u64,
    },
}

/// `cp.async` of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyAsync {
    /// The thread.
    pub who: ThreadId,
    /// The destination, in the thread's own block.
    pub to: u64,
    /// The source, in global memory.
    pub from: u64,
    /// Bytes that are written: 4, 8 or 16.
    pub bytes: u32,
    /// Bytes that are read; the others become zero.
    pub read: u32,
}

/// `st.async`, and with `reduce` `red.async`, of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteStore {
    /// Space of `to` and of `barrier`: `shared::cluster` or generic.
    pub space: Space,
    /// The destination.
    pub to: u64,
    /// The value.
    pub value: [u8; 16],
    /// How many bytes it has: 4, 8 or 16.
    pub bytes: u32,
    /// The mbarrier that gets the bytes, in the same block.
    pub barrier: u64,
    /// How the value is combined with what is there.
    pub reduce: Option<Combination>,
}
