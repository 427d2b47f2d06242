// Threads write to a tile while a load still fills it.
use tma_runtime::prelude::*;

#[tma_kernel(threads = 32)]
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
    if leader {
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, [0, 0], full);
    }
    tile.set([0, lane_idx()], 1);
    full.wait(0);
}
