//! A matrix scaled by threads that read its tiles from a ring, to measure the cost of the proxy
//! fence of a release.

use tma_runtime::tma_module;

/// Tiles of 8 KiB.
#[tma_module]
pub mod scale {
    use tma_runtime::prelude::*;

    /// The number of rows of a tile.
    pub const ROWS: u32 = 32;
    /// The number of columns of a tile.
    pub const COLS: u32 = 64;
    type Part = Tile<f32, Shape2<ROWS, COLS>>;

    /// Four warps read the tiles that a fifth loads, and write the scaled elements to global
    /// memory. A slot is released by each thread, or by one lane of each warp.
    #[tma_kernel(threads = 160, instances(by_threads = <8, 128>, by_warps = <8, 4>))]
    pub fn scale_from_ring<const STAGES: u32, const RELEASES: u32>(
        src: TensorMap<Part>,
        dst: Global<f32>,
        factor: f32,
        across: u32,
        tiles: u32,
    ) {
        let ring: Pipeline<(Part,), STAGES> = shared();
        if thread_idx().x == 0 {
            ring.init(RELEASES);
            fence_barrier_init();
        }
        sync_threads();

        if warp_idx() == 4 {
            if elect_one() {
                let mut producer = ring.producer();
                for tile in (block_idx().x..tiles).step_by(grid_dim().x as usize) {
                    let slot = producer.acquire();
                    src.load(slot.0, [tile / across * ROWS, tile % across * COLS], slot.barrier());
                }
            }
        } else {
            let mut consumer = ring.consumer();
            for tile in (block_idx().x..tiles).step_by(grid_dim().x as usize) {
                let slot = consumer.wait();
                let first = tile / across * ROWS * (across * COLS) + tile % across * COLS;
                for row in (warp_idx()..ROWS).step_by(4) {
                    for half in unroll(0..2u32) {
                        let column = half * 32 + lane_idx();
                        dst.set(first + row * (across * COLS) + column, slot.0.get([row, column]) * factor);
                    }
                }
                if RELEASES == 128 {
                    slot.release();
                } else {
                    sync_warp();
                    if lane_idx() == 0 {
                        slot.release();
                    }
                }
            }
        }
    }
}
