//! Where the state spaces lie.
//!
//! An address of shared memory, of either kind, holds the rank of its block in the cluster above the
//! offset in the block's memory, as on an H200: SASS of ptxas 13 makes the address of a variable of
//! its offset and `SR_CgaCtaId`, 24 bits up. So what another block is told of an address means the
//! same there, and an address of `.shared::cta` is also one of `.shared::cluster`, as the PTX ISA
//! wants it ("State Spaces", "Shared State Space"). Variables begin behind what the system keeps
//! ([`RESERVED_SHARED_BYTES`](tma_model::limits::RESERVED_SHARED_BYTES)). Generic addresses are a
//! window for each space; what is in no window is global.

use super::index::BlockRank;
use super::types::{Pointer, Space};

/// Bits of a shared address that are the offset: 16 MiB, more than any block has.
const OFFSET_BITS: u32 = 24;

/// Generic addresses of shared memory: this, plus a `.shared` address of either kind.
pub const SHARED_WINDOW: u64 = 0x7f00_0000_0000;
/// Generic addresses of local memory, for the executing side: this, plus an offset.
pub const LOCAL_WINDOW: u64 = 0x7e00_0000_0000;
/// Generic addresses of parameters, for the executing side: this, plus an offset.
pub const PARAM_WINDOW: u64 = 0x7d00_0000_0000;
/// Generic addresses of constants, for the executing side: this, plus an offset.
pub const CONST_WINDOW: u64 = 0x7c00_0000_0000;
/// The size of each window.
pub const WINDOW_BYTES: u64 = 1 << 32;

/// Whether a generic address lies in `window`.
pub const fn in_window(window: u64, address: u64) -> bool {
    address >= window && address - window < WINDOW_BYTES
}

/// The greatest rank that an address can hold, far above those of any cluster; it stands for all
/// beyond it too.
pub const NO_RANK: BlockRank = BlockRank(u32::MAX >> OFFSET_BITS);

/// `mapa`: the address of what is at `address` in block `rank`. Where no cluster has such a rank, the
/// address is of no block: compilers may compute it and not use it, so that only a use is refused.
pub const fn map_to_rank(address: u32, rank: u32) -> u32 {
    let rank = if rank < NO_RANK.0 { rank } else { NO_RANK.0 };
    rank << OFFSET_BITS | offset_of(address)
}

/// `getctarank`: the block that `address` is of.
pub const fn rank_of(address: u32) -> BlockRank {
    BlockRank(address >> OFFSET_BITS)
}

/// Where `address` is in the memory of its block.
const fn offset_of(address: u32) -> u32 {
    address & ((1 << OFFSET_BITS) - 1)
}

/// Where an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Global memory.
    Global(u64),
    /// Shared memory: rank and offset, either of which may be out of range.
    Shared(BlockRank, u64),
}

/// Finds what `pointer` means to a thread of block `own`.
#[inline(always)]
pub(crate) fn resolve(pointer: Pointer, own: BlockRank) -> Target {
    let Pointer { space, address } = pointer;
    match space {
        Space::Shared => in_block(address, own),
        Space::Global => Target::Global(address),
        Space::SharedCluster => in_cluster(address),
        Space::Generic if in_window(SHARED_WINDOW, address) => in_cluster(address - SHARED_WINDOW),
        Space::Generic => Target::Global(address),
    }
}

/// In the thread's own block, also where an address is the offset alone. Others are out of bounds.
#[inline(always)]
fn in_block(address: u64, own: BlockRank) -> Target {
    match u32::try_from(address) {
        Ok(short) if rank_of(short) == own => Target::Shared(own, offset_of(short).into()),
        Ok(_) | Err(_) => Target::Shared(own, address),
    }
}

#[inline(always)]
fn in_cluster(address: u64) -> Target {
    match u32::try_from(address) {
        Ok(short) => Target::Shared(rank_of(short), offset_of(short).into()),
        Err(_) => Target::Shared(NO_RANK, address),
    }
}
