//! The exchange of partial sums in a cluster: device functions of kernels for few rows.

use tma_runtime::tma_module;

/// The blocks of a cluster add up a tile of C whose products they divide along K. Each finishes its
/// share of the tile's columns.
#[tma_module]
pub mod shares {
    use tma_runtime::prelude::*;

    /// The maximum number of blocks of a cluster, and so of the parts of a sum.
    pub const MOST_PARTS: u32 = 8;

    /// Elements after each row of sums: the threads of a warp that store columns of several rows
    /// access different banks.
    const PADDING: u32 = 4;

    /// Returns the number of elements that a block receives at most: the sums of its share of a tile
    /// of `bm` rows and `bn` columns, from each block.
    pub const fn received(bm: u32, bn: u32) -> u32 {
        bm * (bn + MOST_PARTS * PADDING)
    }

    /// Sends a warpgroup's sums to the blocks that finish them. The columns of C are the rows of the
    /// accumulator, and of its columns, which are the rows of C, only the first `rows` are sent.
    ///
    /// All blocks of the cluster must have started. When they have synchronised afterwards, the sums
    /// are [complete](total).
    #[tma_device]
    pub fn send_sums<const BM: u32, const BN: u32, const RECEIVED: u32>(
        sum: &Accumulator<f32, 64, BM>,
        received: SharedArray<f32, RECEIVED>,
        warpgroup: u32,
        rows: u32,
    ) {
        let share = BN / cluster_dim().x;
        let pitch = share + PADDING;
        // A thread has sums of two columns. They alternate with every two elements.
        for i in unroll(0..2usize) {
            let column = warpgroup * 64 + sum.at(2 * i)[0];
            let to = remote(received, column / share);
            let first = cluster_rank() * BM * pitch + column % share;
            for j in unroll((0..sum.len()).step_by(4)) {
                for e in unroll(0..2usize) {
                    let row = sum.at(2 * i + j + e)[1];
                    if row < rows {
                        to.set(first + row * pitch, sum[2 * i + j + e]);
                    }
                }
            }
        }
    }

    /// Returns the sum of all parts of an element of this block's share, by the order of the blocks.
    /// `at` is the element's row, and its column within the share.
    #[tma_device]
    pub fn total<const BM: u32, const BN: u32, const RECEIVED: u32>(
        received: SharedArray<f32, RECEIVED>,
        at: [u32; 2],
    ) -> f32 {
        let parts = cluster_dim().x;
        let pitch = BN / parts + PADDING;
        let place = at[0] * pitch + at[1];
        let mut total = received.get(place);
        for part in unroll(1..MOST_PARTS) {
            if part < parts {
                total += received.get(part * BM * pitch + place);
            }
        }
        total
    }
}
