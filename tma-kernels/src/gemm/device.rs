//! Device functions that the GEMM kernels share.

use tma_runtime::tma_module;

/// The order of tiles, and what follows from a tile's extents.
#[tma_module]
pub mod schedule {
    use tma_runtime::prelude::*;

    /// Shared memory for a ring of tiles and the epilogue's buffers, in bytes. The barriers, and the
    /// alignment of tiles, take up to a kilobyte of the 227 that a block can have (PTX ISA, "Shared
    /// State Space"; CUDA C++ Programming Guide, "Compute Capability 9.x").
    const SHARED_BYTES: u32 = 226 * 1024;

    /// The stages after which a longer ring is no faster.
    const MOST_STAGES: u32 = 12;

    /// Returns the stages of a ring of `bm` and `bn` rows of 128 bytes, which fit beside `buffers`
    /// of 64 such rows.
    pub const fn ring_stages(bm: u32, bn: u32, buffers: u32) -> u32 {
        let fit = (SHARED_BYTES - buffers * 64 * 128) / ((bm + bn) * 128);
        if fit < MOST_STAGES { fit } else { MOST_STAGES }
    }

    /// Clusters' tiles along M and N, and the rows of tiles that form a band. Clusters take tiles
    /// band by band: blocks that run at the same time then read the same parts of A and B, which the
    /// L2 cache holds.
    #[derive(Clone, Copy)]
    pub struct TileOrder {
        /// Tiles along M.
        pub rows: u32,
        /// Tiles along N.
        pub columns: u32,
        /// Rows of tiles per band.
        pub band: u32,
    }

    /// A block's tile of C.
    #[derive(Clone, Copy)]
    pub struct TileCoords {
        /// The matrix of the batch.
        pub batch: u32,
        /// The first row.
        pub row: u32,
        /// The first column.
        pub column: u32,
    }

    /// Returns the order of the tiles of an M × N matrix.
    #[tma_device]
    pub fn tile_order<const CLUSTER_M: u32, const CLUSTER_N: u32, const BM: u32, const BN: u32>(
        m: u32,
        n: u32,
        band: u32,
    ) -> TileOrder {
        TileOrder { rows: m.div_ceil(CLUSTER_M * BM), columns: n.div_ceil(CLUSTER_N * BN), band }
    }

    /// Returns this block's part of its cluster's tile number `index`, counted through the batch.
    #[tma_device]
    pub fn tile_coords<const CLUSTER_M: u32, const CLUSTER_N: u32, const BM: u32, const BN: u32>(
        order: TileOrder,
        index: u32,
    ) -> TileCoords {
        let tile = index % (order.rows * order.columns);
        let first = tile / (order.band * order.columns) * order.band;
        let height = min(order.rows - first, order.band);
        let inside = tile % (order.band * order.columns);
        TileCoords {
            batch: index / (order.rows * order.columns),
            row: (CLUSTER_M * (first + inside % height) + block_in_cluster().y) * BM,
            column: (CLUSTER_N * (inside / height) + block_in_cluster().x) * BN,
        }
    }

    /// Returns the coordinates of an operand's rows from `row` on, at `k` along K. If `MN`, its
    /// columns are stored contiguously.
    #[tma_device]
    pub fn operand_coords<const MN: bool>(batch: u32, row: u32, k: u32) -> [u32; 3] {
        if MN { [batch, k, row] } else { [batch, row, k] }
    }
}

/// The end of a tile.
#[tma_module]
pub mod epilogue {
    use tma_runtime::prelude::*;

    use super::schedule::TileCoords;

    /// Stores a warpgroup's 64 rows of sums to C, in pieces of `COLUMNS` columns, through those of
    /// the `BUFFERS` that belong to the warpgroup. When a store starts, `IN_FLIGHT` others may still
    /// read their buffers.
    #[tma_device]
    pub fn store_rows<
        SUM: StoreAs<C>,
        C: TileElement,
        W: MatrixSwizzle,
        const BN: u32,
        const COLUMNS: u32,
        const BUFFERS: u32,
        const IN_FLIGHT: u32,
    >(
        sum: &Accumulator<SUM, 64, BN>,
        c: TensorMap<Tile<C, Shape3<1, 64, COLUMNS>, W>>,
        buffers: Stages<Tile<C, Shape3<1, 64, COLUMNS>, W>, BUFFERS>,
        warpgroup: u32,
        at: TileCoords,
    ) {
        for j in unroll(0..BN / COLUMNS) {
            let buffer = buffers[warpgroup * (IN_FLIGHT + 1) + j % (IN_FLIGHT + 1)];
            bulk_wait_group_read::<IN_FLIGHT>(); // the last store from this buffer has read it
            sync_warpgroup();
            sum.columns::<COLUMNS>(j).store(buffer);
            fence_proxy_async();
            sync_warpgroup();
            if thread_idx().x % 128 == 0 {
                c.store([at.batch, at.row, at.column + j * COLUMNS], buffer);
                bulk_commit_group();
            }
        }
    }
}
