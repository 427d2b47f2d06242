//! The copies of rows that stay in shared memory, in pieces.

#![allow(clippy::collapsible_if, reason = "kernels have no chains of `if let`")]

use tma_runtime::tma_module;

/// Pieces of rows, and the slots of shared memory that they pass through.
#[tma_module]
pub mod slots {
    use tma_runtime::prelude::*;

    use crate::model::cross_entropy::kernel::rows::{Row, row_at};

    /// Vectors of a piece at most: four for each thread that computes.
    pub const VECTORS: u32 = 1024;

    /// Slots of a block.
    pub const SLOTS: u32 = 6;

    /// Pieces of a share at most. The other slots have the next row.
    pub const MOST_PIECES: u32 = 5;

    /// How a row is divided.
    #[derive(Clone, Copy)]
    pub struct Shares {
        /// The number of rows.
        pub rows: u32,
        /// The columns of a row.
        pub columns: u32,
        /// The vectors of a block's share.
        pub vectors: u32,
        /// The pieces of a block's share.
        pub pieces: u32,
        /// The distance between rows.
        pub stride: u64,
        /// The label of rows that do not count.
        pub ignored: u32,
    }

    /// Adjacent columns of a row.
    #[derive(Clone, Copy)]
    pub struct Piece {
        /// The first column.
        pub column: u32,
        /// The number of columns: whole vectors.
        pub count: u32,
    }

    /// Orders this thread's accesses to the block's slots before those of copies. In a kernel that
    /// writes to arrays of other blocks, `fence_proxy_async()` is for the shared memory of the
    /// cluster, and waits for all earlier accesses to global memory as well. No other block uses
    /// the slots.
    #[tma_device]
    pub fn fence_slots() {
        // SAFETY: the instruction only orders accesses.
        unsafe { ptx!("fence.proxy.async.shared::cta;", volatile) };
    }

    /// Waits as `barrier.wait(parity)` does, for copies and threads of this block. In a kernel with
    /// clusters, that is for threads of other blocks as well, and invalidates the L1 cache each
    /// time.
    #[tma_device]
    pub fn wait_in_block(barrier: Barrier, parity: u32) {
        // SAFETY: the instructions wait for a barrier, and access nothing else.
        unsafe {
            ptx!(
                "{{",
                ".reg .pred done;",
                "again:",
                "mbarrier.try_wait.parity.shared::cta.b64 done, [{barrier}], {parity};",
                "@!done bra again;",
                "}}",
                in barrier,
                in parity,
                reads(barrier),
                volatile
            );
        }
    }

    /// Returns a piece of this block's share of a row. The last ones may be empty.
    #[tma_device]
    pub fn piece_of(shares: Shares, row: Row, piece: u32, vector: u32) -> Piece {
        let first = cluster_rank() * shares.vectors;
        let column = min(row.head + (first + piece * VECTORS) * vector, row.end);
        let after = first + min((piece + 1) * VECTORS, shares.vectors);
        Piece { column, count: min(row.head + after * vector, row.end) - column }
    }

    /// Returns the slot after this one.
    #[tma_device]
    pub fn next_slot(slot: u32) -> u32 {
        if slot + 1 == SLOTS { 0 } else { slot + 1 }
    }

    /// Loads the pieces of all rows of the cluster that count, once their slots are free. One
    /// thread calls it.
    #[tma_device]
    pub fn load_pieces<T: TileElement, const LEN: u32, const V: usize>(
        from: Global<T>,
        labels: Global<u32>,
        shares: Shares,
        slots: Stages<SharedArray<T, LEN>, SLOTS>,
        free: Stages<Barrier, SLOTS>,
        full: Stages<Barrier, SLOTS>,
    ) {
        let clusters = grid_dim().x / cluster_dim().x;
        let mut slot = 0;
        let mut parity = 1; // all slots are free at first
        let mut index = block_idx().x / cluster_dim().x;
        let mut label = labels.get(index);
        while index < shares.rows {
            // The next label arrives while the row is loaded.
            let next = index + clusters;
            let next_label = labels.get(min(next, shares.rows - 1));
            if label != shares.ignored {
                let row = row_at(index as u64 * shares.stride, shares.columns, V as u32);
                for piece in 0..shares.pieces {
                    let of_piece = piece_of(shares, row, piece, V as u32);
                    wait_in_block(free[slot], parity);
                    full[slot].arrive_expect_tx(of_piece.count * size_of::<T>() as u32);
                    if of_piece.count > 0 {
                        let start = row.start + of_piece.column as u64;
                        from.bulk_load(slots[slot], 0, of_piece.count, start, full[slot]);
                    }
                    slot = next_slot(slot);
                    if slot == 0 {
                        parity ^= 1;
                    }
                }
            }
            index = next;
            label = next_label;
        }
    }

    /// Stores the pieces of gradients, once they are done, and frees their slots. One thread calls
    /// it.
    #[tma_device]
    pub fn store_pieces<T: TileElement, const LEN: u32, const V: usize>(
        to: Global<T>,
        stride: u64,
        labels: Global<u32>,
        shares: Shares,
        slots: Stages<SharedArray<T, LEN>, SLOTS>,
        done: Stages<Barrier, SLOTS>,
        free: Stages<Barrier, SLOTS>,
    ) {
        let clusters = grid_dim().x / cluster_dim().x;
        let mut slot = 0;
        let mut parity = 0;
        let mut is_first = true;
        let mut index = block_idx().x / cluster_dim().x;
        let mut label = labels.get(index);
        while index < shares.rows {
            let next = index + clusters;
            let next_label = labels.get(min(next, shares.rows - 1));
            if label != shares.ignored {
                let row = row_at(index as u64 * shares.stride, shares.columns, V as u32);
                for piece in 0..shares.pieces {
                    let of_piece = piece_of(shares, row, piece, V as u32);
                    wait_in_block(done[slot], parity);
                    if of_piece.count > 0 {
                        let start = index as u64 * stride + of_piece.column as u64;
                        to.bulk_store(start, slots[slot], 0, of_piece.count);
                    }
                    bulk_commit_group();
                    // The store of the previous piece has read its slot.
                    bulk_wait_group_read::<1>();
                    if !is_first {
                        free[if slot == 0 { SLOTS - 1 } else { slot - 1 }].arrive();
                    }
                    is_first = false;
                    slot = next_slot(slot);
                    if slot == 0 {
                        parity ^= 1;
                    }
                }
            }
            index = next;
            label = next_label;
        }
        bulk_wait_group_read::<0>();
    }

    /// Signals that this thread's warp has used a slot for the last time.
    #[tma_device]
    pub fn release(done: Barrier) {
        fence_slots();
        sync_warp();
        if lane_idx() == 0 {
            done.arrive();
        }
    }
}
