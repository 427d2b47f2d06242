//! Device functions for teams of GPUs.

use tma_runtime::tma_module;

/// A barrier over the ranks of a team.
#[tma_module]
pub mod barrier {
    use tma_runtime::prelude::*;

    /// The flags of a block: one for each rank that a team may have.
    pub const FLAGS_PER_BLOCK: u32 = 8;

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
        let block = (block_idx().z * grid_dim().y + block_idx().y) * grid_dim().x + block_idx().x;
        let first = block * FLAGS_PER_BLOCK;
        let own = flags.own();
        // No thread writes a flag before all have read this one.
        let round = own.load(first + rank(), Order::Relaxed, Scope::System).wrapping_add(1);
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
