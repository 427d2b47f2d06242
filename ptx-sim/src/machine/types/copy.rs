//! Asynchronous copies, in the form in which the executing side issues them.

use tma_model::ReduceOp as Reduction;

use crate::isa::Space;
use crate::machine::index::{MapId, ThreadId};
use crate::tensor_map::DataType;

/// The kind of a tensor copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorAction {
    /// Global to shared memory; completes on an mbarrier.
    Load {
        /// State space of `tile` and of `barrier`.
        space: Space,
        /// The tile.
        tile: u64,
        /// The mbarrier that counts the bytes.
        barrier: u64,
        /// `.multicast::cluster`: the blocks that receive the tile and the bytes, at the same
        /// offsets.
        multicast: Option<u16>,
    },
    /// Shared to global memory; completes with a bulk group.
    Store {
        /// The tile, in the thread's own block.
        tile: u64,
    },
    /// Like `Store`, combining the data with the contents of global memory.
    Reduce {
        /// The tile, in the thread's own block.
        tile: u64,
        /// The combining operation.
        with: Reduction,
    },
    /// To the L2 cache only.
    Prefetch,
}

/// `cp.async.bulk.tensor`, `cp.reduce.async.bulk.tensor`, `cp.async.bulk.prefetch.tensor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorCopy {
    /// The map, registered with [`Machine::map_number`](crate::machine::Machine::map_number).
    pub map: MapId,
    /// The address of the map in global memory; `None` for one in the kernel's parameters.
    pub descriptor: Option<u64>,
    /// The coordinates, innermost first. Those beyond the rank are ignored.
    pub at: [i32; 5],
    /// The number of coordinates.
    pub rank: u32,
    /// `.im2col` or `.im2col_no_offs`, as opposed to `.tile`.
    pub im2col: bool,
    /// The offsets of `.im2col`, innermost first; zeros otherwise.
    pub offsets: [u16; 3],
    /// The kind of copy.
    pub action: TensorAction,
}

/// The operation that combines the elements of a copy with the contents of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Combination {
    /// The operation.
    pub with: Reduction,
    /// The type of the elements.
    pub element: DataType,
}

/// `cp.async.bulk`, `cp.reduce.async.bulk`: a copy of contiguous bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkCopy {
    /// The number of bytes, a multiple of 16.
    pub bytes: u32,
    /// The source and destination.
    pub action: BulkAction,
}

/// The source and destination of a [`BulkCopy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkAction {
    /// Global to shared memory; completes on an mbarrier.
    Load {
        /// The source.
        global: u64,
        /// State space of `to` and of `barrier`.
        space: Space,
        /// The destination.
        to: u64,
        /// The mbarrier that counts the bytes.
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
        /// The combining operation; `None` for a plain copy.
        reduce: Option<Combination>,
    },
    /// From the shared memory of the thread's own block to that of another; completes on an
    /// mbarrier there.
    ToCluster {
        /// The source, in the thread's own block.
        from: u64,
        /// The destination, of space `shared::cluster`.
        to: u64,
        /// The mbarrier that counts the bytes, of space `shared::cluster`.
        barrier: u64,
        /// The combining operation; `None` for a plain copy.
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
    pub thread: ThreadId,
    /// The destination, in the thread's own block.
    pub to: u64,
    /// The source, in global memory.
    pub from: u64,
    /// The number of bytes written: 4, 8 or 16.
    pub bytes: u32,
    /// The number of bytes read. The rest are written as zeros.
    pub read: u32,
}

/// `st.async` of one thread, or `red.async` if `reduce` is present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteStore {
    /// State space of `to` and of `barrier`: `shared::cluster` or generic.
    pub space: Space,
    /// The destination.
    pub to: u64,
    /// The value.
    pub value: [u8; 16],
    /// The number of bytes in the value: 4, 8 or 16.
    pub bytes: u32,
    /// The mbarrier that counts the bytes, in the same block.
    pub barrier: u64,
    /// The combining operation; `None` for a plain store.
    pub reduce: Option<Combination>,
}
