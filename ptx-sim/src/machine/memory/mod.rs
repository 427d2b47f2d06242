//! Memory: the bytes of shared and global memory, and the history of accesses to them.
//!
//! Nothing here reports findings or knows threads. Errors in an access are returned as data.

mod global;
mod maps;
mod shadow;
mod shared;
mod stores;
mod tile;

use std::ops::Range;
use std::sync::Arc;

pub use global::{GlobalFault, GlobalMemory};
pub(super) use maps::{MapMisuse, Maps};
pub(super) use shadow::{Conflict, IN_FLIGHT, Mark, OPAQUE, Problem, Shadow, ThreadAccess};
pub(super) use shared::{OutgoingCopy, POISON, SharedMemory};
pub(super) use stores::{BulkStore, UnfinishedStore, UnfinishedStores, merge_ranges};
pub(super) use tile::{LoadedTile, TileChunk};

use super::address::{Target, resolve};
use super::global::GlobalAccesses;
use super::index::{BlockRank, PerBlock, Shape};
use super::types::{MachineConfig, Pointer};

/// The memory of a cluster.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) shared: PerBlock<SharedMemory>,
    /// The range of shared memory that a block may use.
    pub(super) window: Range<u32>,
    pub(super) global: Arc<GlobalMemory>,
    pub(super) maps: Maps,
    /// Bulk stores to global memory that are in flight.
    pub(super) stores: UnfinishedStores,
    /// The accesses to global memory.
    pub(super) accesses: GlobalAccesses,
}

/// A location in global or shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum MemoryLocation {
    Global(u64),
    Shared(SharedLocation),
}

/// An offset in the shared memory of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct SharedLocation {
    pub(super) rank: BlockRank,
    pub(super) at: u32,
}

/// The size of an access, and its required alignment, a power of two.
#[derive(Clone, Copy, Debug)]
pub(super) struct AccessLayout {
    pub(super) bytes: u32,
    pub(super) align: u32,
}

impl AccessLayout {
    /// Returns an access of this size that is aligned to its size.
    #[inline]
    pub(super) const fn natural(bytes: u32) -> Self {
        Self { bytes, align: bytes }
    }
}

/// The reason why an access is refused before it is made.
#[derive(Clone, Copy, Debug)]
pub(super) enum LocationFault {
    Misaligned,
    /// The cluster has no block of this rank.
    NoBlock(BlockRank),
    /// The access is before the start of shared memory, or beyond its end.
    OutsideShared {
        at: u64,
    },
}

impl Memory {
    pub(super) fn new(shape: Shape, config: &MachineConfig) -> Self {
        Self {
            shared: PerBlock::new(shape, || SharedMemory::new(config.shared.end, shape)),
            window: config.shared.clone(),
            global: Arc::clone(&config.global),
            maps: Maps::default(),
            stores: UnfinishedStores::default(),
            accesses: GlobalAccesses::new(config),
        }
    }

    /// Resolves a pointer for a thread of block `own`.
    #[inline(always)]
    pub(super) fn locate(
        &self,
        pointer: Pointer,
        own: BlockRank,
        layout: AccessLayout,
    ) -> Result<MemoryLocation, LocationFault> {
        if pointer.address & u64::from(layout.align.saturating_sub(1)) != 0 {
            return Err(LocationFault::Misaligned);
        }
        match resolve(pointer, own) {
            Target::Global(address) => Ok(MemoryLocation::Global(address)),
            Target::Shared(rank, _) if self.shared.get(rank).is_none() => Err(LocationFault::NoBlock(rank)),
            Target::Shared(rank, at) => {
                let end = at.saturating_add(layout.bytes.into());
                if at < u64::from(self.window.start) || end > u64::from(self.window.end) {
                    return Err(LocationFault::OutsideShared { at });
                }
                Ok(MemoryLocation::Shared(SharedLocation { rank, at: at as u32 }))
            }
        }
    }
}
