// All threads read the tile before the second load into it, but without a proxy fence between.
use tma_runtime::prelude::*;

#[tma_kernel(threads = 64)]
pub fn k(
    src: TensorMap<Tile<u32, Shape2<32, 32>>>,
    dst: TensorMap<Tile<u32, Shape2<32, 32>>>,
    out: Global<u32>,
) {
    let tile: Tile<u32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    let leader = thread_idx().x == 0;
    if leader {
        full.init(1);
        fence_barrier_init();
    }
    sync_threads();
    let mut sum = 0;
    for step in 0..2 {
        if leader {
            full.arrive_expect_tx(tile.bytes());
            src.load(tile, [32 * step, 0], full);
        }
        full.wait(step as u32 & 1);
        sum += tile.get([0, lane_idx()]);
        sync_threads();
    }
    out.set(thread_idx().x, sum);
}
