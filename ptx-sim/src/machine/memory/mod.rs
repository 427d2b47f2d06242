//! Memory: the bytes of shared and of global memory, and what is remembered of who accessed them.
//!
//! Nothing here reports or knows threads: what is wrong with an access is returned as data.

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
pub(super) use stores::{Store, Stretch, UnfinishedStores, joined};
pub(super) use tile::{LoadedTile, TileChunk};

use super::address::{Target, resolve};
use super::global::GlobalAccesses;
use super::index::{BlockRank, PerBlock, Shape};
use super::types::{MachineConfig, Pointer};

/// The memory of a cluster.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) shared: PerBlock<SharedMemory>,
    /// Where the shared memory is that a block may use.
    pub(super) window: Range<u32>,
    pub(super) global: Arc<GlobalMemory>,
    pub(super) maps: Maps,
    /// What bulk stores are writing to global memory.
    pub(super) stores: UnfinishedStores,
    /// The accesses to global memory.
    pub(super) accesses: GlobalAccesses,
}

/// A place in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    Global(u64),
    Shared(SharedPlace),
}

/// An offset in the shared memory of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct SharedPlace {
    pub(super) rank: BlockRank,
    pub(super) at: u32,
}

/// Bytes, and what their address has to be a multiple of, a power of two.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub(super) bytes: u32,
    pub(super) align: u32,
}

impl Extent {
    /// Bytes that are aligned to all of them.
    #[inline]
    pub(super) const fn natural(bytes: u32) -> Self {
        Self { bytes, align: bytes }
    }
}

/// Why an access is refused before it is made.
#[derive(Clone, Copy, Debug)]
pub(super) enum PlaceFault {
    Misaligned,
    /// A rank that the cluster does not have.
    NoBlock(BlockRank),
    /// Before the start of shared memory, or beyond its end.
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

    /// Where a pointer leads, in a thread of block `own`.
    #[inline(always)]
    pub(super) fn locate(
        &self,
        pointer: Pointer,
        own: BlockRank,
        extent: Extent,
    ) -> Result<Place, PlaceFault> {
        if pointer.address & u64::from(extent.align.saturating_sub(1)) != 0 {
            return Err(PlaceFault::Misaligned);
        }
        match resolve(pointer, own) {
            Target::Global(address) => Ok(Place::Global(address)),
            Target::Shared(rank, _) if self.shared.get(rank).is_none() => Err(PlaceFault::NoBlock(rank)),
            Target::Shared(rank, at) => {
                let end = at.saturating_add(extent.bytes.into());
                if at < u64::from(self.window.start) || end > u64::from(self.window.end) {
                    return Err(PlaceFault::OutsideShared { at });
                }
                Ok(Place::Shared(SharedPlace { rank, at: at as u32 }))
            }
        }
    }
}
