//! Device functions that GEMM kernels share.

use tma_runtime::tma_module;

/// The order of tiles, and what follows from a tile's extents.
#[tma_module]
pub mod schedule {
    use tma_runtime::prelude::*;

    /// Shared memory for a ring of tiles and the epilogue's buffers, in bytes. The barriers, and
    /// the alignment of tiles, take up to a kilobyte of the 227 that a block can have (PTX ISA,
    /// "Shared State Space"; CUDA C++ Programming Guide, "Compute Capability 9.x").
    const SHARED_BYTES: u32 = 226 * 1024;

    /// The stages after which a longer ring is no faster.
    const MOST_STAGES: u32 = 12;

    /// Returns how many stages of `bm` + `bn` rows of 128 bytes fit beside `buffers` buffers of 64
    /// such rows.
    pub const fn ring_stages(bm: u32, bn: u32, buffers: u32) -> u32 {
        let fit = (SHARED_BYTES - buffers * 64 * 128) / ((bm + bn) * 128);
        if fit < MOST_STAGES { fit } else { MOST_STAGES }
    }

    /// Clusters' tiles along M and N, and the rows of tiles that form a band. Clusters take tiles
    /// band by band: blocks that run at the same time then read the same parts of A and B, which
    /// the L2 cache holds.
    #[derive(Clone, Copy)]
    pub struct TileOrder {
        /// Clusters' tiles along M.
        pub tiles_down: u32,
        /// Clusters' tiles along N.
        pub tiles_across: u32,
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
        let tiles_down = m.div_ceil(CLUSTER_M * BM);
        let tiles_across = n.div_ceil(CLUSTER_N * BN);
        TileOrder { tiles_down, tiles_across, band }
    }

    /// Returns this block's part of its cluster's tile number `index`, counted through the batch.
    #[tma_device]
    pub fn tile_coords<const CLUSTER_M: u32, const CLUSTER_N: u32, const BM: u32, const BN: u32>(
        order: TileOrder,
        index: u32,
    ) -> TileCoords {
        let tiles = order.tiles_down * order.tiles_across;
        let tile = tile_of_matrix::<CLUSTER_M, CLUSTER_N, BM, BN>(order, index % tiles);
        TileCoords { batch: index / tiles, ..tile }
    }

    /// Returns this block's part of its cluster's tile number `tile` of the first matrix.
    #[tma_device]
    pub fn tile_of_matrix<const CLUSTER_M: u32, const CLUSTER_N: u32, const BM: u32, const BN: u32>(
        order: TileOrder,
        tile: u32,
    ) -> TileCoords {
        let band_start = tile / (order.band * order.tiles_across) * order.band;
        let height = min(order.tiles_down - band_start, order.band);
        let in_band = tile % (order.band * order.tiles_across);
        TileCoords {
            batch: 0,
            row: (CLUSTER_M * (band_start + in_band % height) + block_in_cluster().y) * BM,
            column: (CLUSTER_N * (in_band / height) + block_in_cluster().x) * BN,
        }
    }

    /// In place of a warpgroup's number, 0 or 1: neither.
    pub const NOBODY: u32 = 2;

    /// A cluster's tile, or the rows of one warpgroup of each of its blocks.
    #[derive(Clone, Copy)]
    pub struct WorkUnit {
        /// The tile's number.
        pub tile: u32,
        /// The idle warpgroup, or `NOBODY`.
        pub idle: u32,
    }

    /// Returns a work unit by its number. From `whole` on each tile is two units.
    #[tma_device]
    pub fn work_unit(unit: u32, whole: u32) -> WorkUnit {
        if unit < whole {
            WorkUnit { tile: unit, idle: NOBODY }
        } else {
            WorkUnit { tile: whole + (unit - whole) / 2, idle: (unit - whole) % 2 }
        }
    }

    /// Returns the coordinates of an operand's rows from `row` on, at `k` along K. If `MN`, its
    /// columns are stored contiguously.
    #[tma_device]
    pub fn operand_coords<const MN: bool>(batch: u32, row: u32, k: u32) -> [u32; 3] {
        if MN { [batch, k, row] } else { [batch, row, k] }
    }
}

/// The loop that loads.
#[tma_module]
pub mod producer {
    use tma_runtime::prelude::*;

    use super::schedule::{TileCoords, operand_coords};

    /// A tile of A or B in shared memory, or a block's slice of it.
    pub type Operand<AB, const ROWS: u32, const COLUMNS: u32> =
        Tile<AB, Shape3<1, ROWS, COLUMNS>, Swizzle128>;

    /// The steps along K that a work unit sums.
    #[derive(Clone, Copy)]
    pub struct Steps {
        /// The first step.
        pub first: u32,
        /// The number of steps.
        pub count: u32,
        /// The step to begin with, counted from the first. The last step is followed by the first.
        pub start: u32,
    }

    /// Returns the number of the `i`-th step in the order of loads.
    #[tma_device]
    pub fn nth_step(steps: Steps, i: u32) -> u32 {
        let step = steps.start % steps.count + i;
        steps.first + if step < steps.count { step } else { step - steps.count }
    }

    /// Loads the tiles of A and B for the tile of C at `at`, for each of the `steps`. Blocks side
    /// by side share their loads of A, and stacked blocks those of B.
    #[tma_device]
    pub fn load_steps<
        AB: TileElement,
        const BK: u32,
        const MN_A: bool,
        const MN_B: bool,
        const ROWS_A: u32,
        const COLUMNS_A: u32,
        const SLICE_A: u32,
        const ROWS_B: u32,
        const COLUMNS_B: u32,
        const SLICE_B: u32,
        const STAGES: u32,
    >(
        producer: &mut Producer<(Operand<AB, ROWS_A, COLUMNS_A>, Operand<AB, ROWS_B, COLUMNS_B>), STAGES>,
        a: TensorMap<Operand<AB, SLICE_A, COLUMNS_A>>,
        b: TensorMap<Operand<AB, SLICE_B, COLUMNS_B>>,
        at: TileCoords,
        steps: Steps,
    ) {
        for i in 0..steps.count {
            let k = nth_step(steps, i) * BK;
            let slot = producer.acquire();
            let of_a = operand_coords::<MN_A>(at.batch, at.row, k);
            let of_b = operand_coords::<MN_B>(at.batch, at.column, k);
            a.load_sliced(slot.0, of_a, slot.barrier(), ClusterAxis::X);
            b.load_sliced(slot.1, of_b, slot.barrier(), ClusterAxis::Y);
        }
    }
}

/// The loop that multiplies.
#[tma_module]
pub mod consumer {
    use tma_runtime::prelude::*;

    use super::producer::Operand;

    /// The hardware barrier at which one warpgroup waits for the other to be ahead.
    const LEAD: u32 = 1;

    /// Lets the first of two warpgroups finish a tile before the second: it stores while the second
    /// multiplies, and begins the next tile while that stores (docs/gemm-kernel.md, "Staggered
    /// finish"). Both call it after each step but the first. Tiles of up to 128 columns take steps
    /// too fast for memory to feed one warpgroup alone. The others have two warpgroups.
    ///
    /// The second stops before its last `STAGES - 1` steps, until the first has started its last
    /// one. It cannot stop earlier: the last step is loaded into the slot that the second released
    /// just before.
    #[tma_device]
    fn stagger_finish<const BN: u32, const STAGES: u32>(
        stagger: bool,
        warpgroup: u32,
        step: u32,
        steps: u32,
    ) {
        if BN > 128 && stagger && steps > STAGES {
            if warpgroup == 0 && step + 1 == steps {
                named_barrier_arrive(LEAD, 256); // both warpgroups
            } else if warpgroup == 1 && step + STAGES == steps {
                named_barrier_sync(LEAD, 256);
            }
        }
    }

    /// Adds the products of as many `steps` to the sums of a warpgroup: its 64 rows of the block's
    /// A times the block's B. If the blocks of a cluster have `SHARED` their loads, slots are
    /// released in all of them. Two warpgroups may `stagger` their finish.
    #[tma_device]
    pub fn multiply_steps<
        AB: Multiply<AB, SUM>,
        SUM: AccumulatorElement,
        const BN: u32,
        const BK: u32,
        const MN_A: bool,
        const MN_B: bool,
        const ROWS_A: u32,
        const COLUMNS_A: u32,
        const ROWS_B: u32,
        const COLUMNS_B: u32,
        const STAGES: u32,
        const SHARED: bool,
    >(
        sum: &mut Accumulator<SUM, 64, BN>,
        consumer: &mut Consumer<(Operand<AB, ROWS_A, COLUMNS_A>, Operand<AB, ROWS_B, COLUMNS_B>), STAGES>,
        warpgroup: u32,
        steps: u32,
        stagger: bool,
    ) where
        Transposed<Tile<AB, Shape2<64, BK>, Swizzle128>, MN_A>: Left<64, BK, Element = AB>,
        Transposed<Operand<AB, ROWS_B, COLUMNS_B>, MN_B>: Right<BN, BK, Element = AB>,
    {
        // This warpgroup's 64 rows of A. If MN_A, they are columns in memory, and BK is 64, too.
        let [across, down] = if MN_A { [warpgroup, 0] } else { [0, warpgroup] };
        // `mma` keeps the slot while it is read. The next one returns that slot when it is done.
        let slot = consumer.wait();
        let of_a = slot.0.batch(0).columns::<BK>(across).band::<64>(down);
        let mut flight = sum.mma(of_a.t_if::<MN_A>(), slot.1.t_if::<MN_B>(), slot);
        for step in 1..steps {
            let slot = consumer.wait();
            let of_a = slot.0.batch(0).columns::<BK>(across).band::<64>(down);
            let done = flight.mma(of_a.t_if::<MN_A>(), slot.1.t_if::<MN_B>(), slot);
            if elect_one() {
                if SHARED {
                    done.release_cluster();
                } else {
                    done.release();
                }
            }
            stagger_finish::<BN, STAGES>(stagger, warpgroup, step, steps);
        }
        let last = flight.wait();
        if elect_one() {
            if SHARED {
                last.release_cluster();
            } else {
                last.release();
            }
        }
    }

    /// Releases the slots of as many `steps`, for a warpgroup that has nothing to multiply.
    #[tma_device]
    pub fn release_steps<T: Tiles, const STAGES: u32>(consumer: &mut Consumer<T, STAGES>, steps: u32) {
        for _ in 0..steps {
            let slot = consumer.wait();
            sync_warp(); // all lanes have waited, as a matmul would ensure
            if elect_one() {
                slot.release_cluster();
            }
        }
    }
}

/// The end of a tile.
#[tma_module]
pub mod epilogue {
    use tma_runtime::prelude::*;

    use super::schedule::TileCoords;

    /// Stores a warpgroup's 64 rows of sums to C, in pieces of `COLUMNS` columns, through those of
    /// the `BUFFERS` that belong to the warpgroup. When a store starts, `IN_FLIGHT` others may
    /// still read their buffers. `BN / COLUMNS` must be a multiple of `IN_FLIGHT + 1`, because each
    /// tile begins with the first buffer.
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

/// Activation functions of one element.
#[tma_module]
pub mod activation {
    use tma_runtime::prelude::*;

    /// ReLU. A NaN stays a NaN.
    #[tma_device]
    pub fn relu(x: f32) -> f32 {
        if x < 0.0 { 0.0 } else { x }
    }

    /// Returns the numbers with which [`gated`] is GELU, 2, or SiLU, 3.
    #[tma_device]
    pub fn gate(activation: u32) -> [f32; 2] {
        // GELU: 2 · √(2/π), and 0.044715 times that. SiLU: 1 and 0.
        if activation == 2 { [1.595_769, 0.071_354_82] } else { [1.0f32, 0.0] }
    }

    /// Returns x · sigmoid(y). With y = x it is SiLU; with y = 2u it is x / 2 · (1 + tanh(u)), which
    /// is GELU if u is √(2/π) · (x + 0.044715 · x³).
    ///
    /// A NaN stays a NaN. The square is bounded because SiLU multiplies it by 0, and 0 · ∞ is NaN.
    #[tma_device]
    pub fn gated(x: f32, gate: [f32; 2]) -> f32 {
        // 1 / z is 2 to the power of -log2(z), which avoids the branches of a division.
        let square = min(x * x, f32::MAX);
        x * exp2(-log2(1.0 + exp(-x * fma(gate[1], square, gate[0]))))
    }

    /// Applies the activation of this number, as in [`Activation`](crate::gemm::Activation).
    #[tma_device]
    pub fn activated(x: f32, activation: u32) -> f32 {
        if activation == 1 {
            relu(x)
        } else if activation > 1 {
            gated(x, gate(activation))
        } else {
            x
        }
    }
}
