// No thread waits for the load before the tile is read.
use tma_runtime::prelude::*;

#[tma_kernel(threads = 128)]
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
    let lane = lane_idx();
    let mut sum = 0;
    for row in unroll(0..32) {
        sum += tile.get([row, lane]);
    }
    out.set(thread_idx().x, sum);
}
