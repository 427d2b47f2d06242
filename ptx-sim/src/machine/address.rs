//! The layout of the state spaces.
//!
//! An address of shared memory, `.shared::cta` or `.shared::cluster`, holds the rank of its block
//! in the cluster above the offset in the block's memory. This is the layout of an H200: in the
//! SASS of ptxas 13 the address of a variable is its offset combined with `SR_CgaCtaId`, shifted by
//! 24 bits. An address therefore keeps its meaning when another block receives it, and an address
//! of `.shared::cta` is also one of `.shared::cluster`, as the PTX ISA requires ("State Spaces",
//! "Shared State Space"). Variables begin after the bytes that the system reserves
//! ([`RESERVED_SHARED_BYTES`](tma_model::limits::RESERVED_SHARED_BYTES)). Generic addresses have a
//! window for each space. An address outside every window is global.

use super::index::BlockRank;
use super::types::{Pointer, Space};

/// The width of the offset in a shared address: 16 MiB, more than any block has.
const OFFSET_BITS: u32 = 24;

/// Base of the generic addresses of shared memory, to which a `.shared` address of either kind is
/// added.
pub const SHARED_WINDOW: u64 = 0x7f00_0000_0000;
/// Base of the generic addresses of local memory, for the executing side.
pub const LOCAL_WINDOW: u64 = 0x7e00_0000_0000;
/// Base of the generic addresses of parameters, for the executing side.
pub const PARAM_WINDOW: u64 = 0x7d00_0000_0000;
/// Base of the generic addresses of constants, for the executing side.
pub const CONST_WINDOW: u64 = 0x7c00_0000_0000;
/// The size of each window.
pub const WINDOW_BYTES: u64 = 1 << 32;

/// Whether a generic address lies in `window`.
pub const fn in_window(window: u64, address: u64) -> bool {
    address >= window && address - window < WINDOW_BYTES
}

/// The greatest rank that an address can hold, far above those of any cluster. It also represents
/// every greater rank.
pub const NO_RANK: BlockRank = BlockRank(u32::MAX >> OFFSET_BITS);

/// `mapa`: returns the address in block `rank` that corresponds to `address`. If no cluster has
/// such a rank, the address belongs to no block. Compilers may compute such an address without
/// using it, so only its use is an error.
pub const fn map_to_rank(address: u32, rank: u32) -> u32 {
    let rank = if rank < NO_RANK.0 { rank } else { NO_RANK.0 };
    rank << OFFSET_BITS | offset_of(address)
}

/// `getctarank`: returns the block that `address` belongs to.
pub const fn rank_of(address: u32) -> BlockRank {
    BlockRank(address >> OFFSET_BITS)
}

/// Returns the offset of `address` in the memory of its block.
const fn offset_of(address: u32) -> u32 {
    address & ((1 << OFFSET_BITS) - 1)
}

/// The location of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Global memory.
    Global(u64),
    /// Shared memory, by rank and offset. Either may be out of range.
    Shared(BlockRank, u64),
}

/// Resolves `pointer` for a thread of block `own`.
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

/// Resolves an address in the thread's own block, which may be the offset alone. An address of
/// another block is out of bounds.
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
