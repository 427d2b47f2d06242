//! Collectives of a team of GPUs: sums and copies over its ranks; and a barrier for kernels of your
//! own.
//!
//! | function | what it computes |
//! | --- | --- |
//! | [`all_reduce`] | the sum of a tensor over all ranks, on each of them |
//! | [`reduce_scatter`] | the same, of which each rank keeps a piece |
//! | [`all_gather`] | the parts of all ranks, on each of them |
//! | [`barrier::sync_team`] | a barrier over the ranks, in a kernel |
//!
//! A collective is one kernel, which is queued on the streams of the team. Its blocks wait for those of
//! the other ranks.

mod error;
pub mod kernel;
mod launch;
mod workspace;

pub use self::error::CollectiveError;
pub use self::launch::{
    AllReduceMethod, AllReduceOptions, CollectiveOptions, all_gather, all_reduce, one_shot_bytes,
    reduce_scatter,
};
pub use self::workspace::TeamWorkspace;

use tma_runtime::tma_module;

/// A barrier over the ranks of a team.
#[tma_module]
pub mod barrier {
    use tma_runtime::prelude::*;

    /// The flags of a block: one for each rank that a team may have.
    pub const FLAGS_PER_BLOCK: u32 = 8;

    /// Returns the index of this block's first flag.
    #[tma_device]
    fn first_flag() -> u32 {
        let block = (block_idx().z * grid_dim().y + block_idx().y) * grid_dim().x + block_idx().x;
        block * FLAGS_PER_BLOCK
    }

    /// Returns the rounds of this block's barrier that have begun, in this launch and in those before,
    /// modulo 2^32. No thread of the block is in [`sync_team`] at the same time.
    #[tma_device]
    pub fn rounds(flags: Peers<Global<u32>>) -> u32 {
        flags.own().load(first_flag() + rank(), Order::Relaxed, Scope::System)
    }

    /// Synchronises the threads of this block with those of the same block of all ranks: what they
    /// did before is visible to each of them afterwards, also what they wrote to the memory of other
    /// ranks.
    ///
    /// `flags` has [`FLAGS_PER_BLOCK`] elements for each block of the grid, which are equal before
    /// the first launch. They count the rounds of the barrier, and only this function may change
    /// them, so that it needs no reset between rounds or launches. Flag `r` of a block is written by
    /// rank `r` alone, in the memory of every rank.
    ///
    /// All threads of a block of at least [`FLAGS_PER_BLOCK`] threads call it. As each block waits
    /// for the same block of other ranks, the grids of all ranks must run at the same time.
    ///
    /// Source: PTX ISA, "Release and acquire patterns": the release of one thread covers what the
    /// others wrote before the barrier of the block.
    #[tma_device]
    pub fn sync_team(flags: Peers<Global<u32>>) {
        sync_team_after(flags, rounds(flags));
    }

    /// Does the same as [`sync_team`], for a kernel that has read the number of [`rounds`] before. All
    /// threads pass this number.
    #[tma_device]
    pub fn sync_team_after(flags: Peers<Global<u32>>, rounds: u32) {
        let first = first_flag();
        let own = flags.own();
        let round = rounds.wrapping_add(1);
        // No thread writes a flag before all have read this rank's.
        sync_threads();
        let thread = (thread_idx().z * block_dim().y + thread_idx().y) * block_dim().x + thread_idx().x;
        if thread < ranks() {
            flags.of(thread).store(first + rank(), round, Order::Release, Scope::System);
            // Another rank may be one round ahead. The difference decides, since counters wrap.
            while (own.load(first + thread, Order::Acquire, Scope::System).wrapping_sub(round) as i32) < 0 {}
        }
        sync_threads();
    }
}
