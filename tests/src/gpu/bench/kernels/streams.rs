//! Pairs of blocks read one stream of tiles, as the blocks of a GEMM that share an operand.
//!
//! Every pair reads the whole matrix, which fits the L2 cache, several times, each from another
//! tile on. Each thread sums one element of every tile, so that the result proves that all tiles
//! arrived. The time depends on how the tiles are loaded.

use tma_runtime::tma_module;

/// Tiles of 16 KiB, the size of 128 × 64 `f16`.
#[tma_module]
pub mod stream {
    use tma_runtime::prelude::*;

    /// The number of rows of a tile.
    pub const ROWS: u32 = 128;
    /// The number of columns of a tile.
    pub const COLS: u32 = 32;
    /// The number of passes over the matrix, enough that start and end hardly count.
    pub const PASSES: u32 = 4;
    type Slice = Tile<u32, Shape2<64, COLS>, Swizzle128>;
    type Whole = Tile<u32, Shape2<ROWS, COLS>, Swizzle128>;

    /// Returns the tile that this pair of blocks reads as the `k`-th of `tiles`.
    #[tma_device]
    fn turn(k: u32, tiles: u32) -> u32 {
        (block_idx().x / 2 * (tiles / (grid_dim().x / 2)) + k) % tiles
    }

    /// Sums this thread's elements. Each warp signals both blocks when it has read a tile.
    #[tma_device]
    fn sum_for_both<const STAGES: u32>(consumer: &mut Consumer<(Whole,), STAGES>, tiles: u32) -> u32 {
        let mut sum = 0;
        for k in 0..PASSES * tiles {
            let slot = consumer.wait();
            sum += slot.0.get([thread_idx().x, k % COLS]);
            sync_warp();
            if lane_idx() < 2 {
                slot.release_to(lane_idx());
            }
        }
        sum
    }

    /// The blocks alternate in loading a whole tile for both.
    #[tma_kernel(threads = 160, cluster = 2, instances(six = <6>, twelve = <12>))]
    pub fn multicast_in_turns<const STAGES: u32>(
        src: TensorMap<Whole>,
        sums: Global<u32>,
        across: u32,
        tiles: u32,
    ) {
        let ring: Pipeline<(Whole,), STAGES> = shared();
        if thread_idx().x == 0 {
            ring.init(2 * 4); // one arrival per warp of both blocks
            fence_barrier_init();
        }
        sync_cluster();

        if warp_idx() == 4 {
            if elect_one() {
                let mut producer = ring.producer();
                for k in 0..PASSES * tiles {
                    let tile = turn(k, tiles);
                    let slot = producer.acquire();
                    if k % 2 == cluster_rank() {
                        let at = [tile / across * ROWS, tile % across * COLS];
                        src.load_multicast(slot.0, at, slot.barrier(), 0b11);
                    }
                }
                producer.drain();
            }
        } else {
            let mut consumer = ring.consumer();
            let sum = sum_for_both::<STAGES>(&mut consumer, tiles);
            sums.set(block_idx().x * ROWS + thread_idx().x, sum);
        }
    }

    /// Each block loads half of each tile for both.
    #[tma_kernel(threads = 160, cluster = 2, instances(six = <6>, twelve = <12>))]
    pub fn multicast_in_slices<const STAGES: u32>(
        src: TensorMap<Slice>,
        sums: Global<u32>,
        across: u32,
        tiles: u32,
    ) {
        let ring: Pipeline<(Whole,), STAGES> = shared();
        if thread_idx().x == 0 {
            ring.init(2 * 4); // one arrival per warp of both blocks
            fence_barrier_init();
        }
        sync_cluster();

        if warp_idx() == 4 {
            if elect_one() {
                let mut producer = ring.producer();
                for k in 0..PASSES * tiles {
                    let tile = turn(k, tiles);
                    let slot = producer.acquire();
                    let at = [tile / across * ROWS, tile % across * COLS];
                    src.load_sliced(slot.0, at, slot.barrier(), ClusterAxis::X);
                }
                producer.drain();
            }
        } else {
            let mut consumer = ring.consumer();
            let sum = sum_for_both::<STAGES>(&mut consumer, tiles);
            sums.set(block_idx().x * ROWS + thread_idx().x, sum);
        }
    }

    /// Each block loads each tile for itself. The launch decides whether the blocks of a pair form
    /// a cluster.
    #[tma_kernel(threads = 160, cluster = launch, instances(six = <6>, twelve = <12>))]
    pub fn load_by_each<const STAGES: u32>(
        src: TensorMap<Whole>,
        sums: Global<u32>,
        across: u32,
        tiles: u32,
    ) {
        let ring: Pipeline<(Whole,), STAGES> = shared();
        if thread_idx().x == 0 {
            ring.init(4);
            fence_barrier_init();
        }
        sync_threads();

        if warp_idx() == 4 {
            if elect_one() {
                let mut producer = ring.producer();
                for k in 0..PASSES * tiles {
                    let tile = turn(k, tiles);
                    let slot = producer.acquire();
                    src.load(slot.0, [tile / across * ROWS, tile % across * COLS], slot.barrier());
                }
            }
        } else {
            let mut consumer = ring.consumer();
            let mut sum = 0;
            for k in 0..PASSES * tiles {
                let slot = consumer.wait();
                sum += slot.0.get([thread_idx().x, k % COLS]);
                sync_warp();
                if lane_idx() == 0 {
                    slot.release();
                }
            }
            sums.set(block_idx().x * ROWS + thread_idx().x, sum);
        }
    }
}
