//! Bulk groups, with which a thread waits for its stores and reductions.
//!
//! Loads signal their completion on a barrier. Stores and reductions signal it to the thread that
//! issued them, in groups, and groups complete in order.

mod copy;

pub use copy::{RemoteSequence, Sequence};

use super::device_only;

/// Commits the bulk stores and reductions that this thread has issued since its last group as a new
/// group. Groups are per thread: call it in the thread that issued the stores.
///
/// PTX: `cp.async.bulk.commit_group` (PTX ISA, "cp.async.bulk.commit_group").
#[doc(alias = "cp.async.bulk.commit_group")]
pub fn bulk_commit_group() {
    device_only()
}

/// Waits until at most `PENDING` of this thread's newest groups are pending. The writes of all
/// older groups to global memory are complete, and visible to this thread.
///
/// PTX: `cp.async.bulk.wait_group PENDING` (PTX ISA, "cp.async.bulk.wait_group").
#[doc(alias = "cp.async.bulk.wait_group")]
pub fn bulk_wait_group<const PENDING: u32>() {
    device_only()
}

/// Waits until at most `PENDING` of this thread's newest groups still *read* their tiles. It
/// returns earlier than [`bulk_wait_group`], and suffices before a tile is overwritten or the block
/// ends.
///
/// PTX: `cp.async.bulk.wait_group.read PENDING` (PTX ISA, "cp.async.bulk.wait_group").
///
/// Two alternating tiles, with one store always in flight:
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(dst: TensorMap<Tile<f32, Shape2<32, 32>>>, n: u32) {
/// let tiles: Stages<Tile<f32, Shape2<32, 32>>, 2> = shared();
/// for k in 0..n {
///     let tile = tiles[k % 2];
///     if thread_idx().x == 0 {
///         bulk_wait_group_read::<1>(); // the store before the last has read this tile
///     }
///     sync_threads();
///     tile.set([warp_idx(), lane_idx()], k as f32);
///     fence_proxy_async();
///     sync_threads();
///     if thread_idx().x == 0 {
///         dst.store([k * 32, 0], tile);
///         bulk_commit_group();
///     }
/// }
/// if thread_idx().x == 0 {
///     bulk_wait_group_read::<0>();
/// }
/// # }
/// ```
#[doc(alias = "cp.async.bulk.wait_group.read")]
pub fn bulk_wait_group_read<const PENDING: u32>() {
    device_only()
}
