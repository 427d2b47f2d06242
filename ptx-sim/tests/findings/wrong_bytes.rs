// The barrier expects fewer bytes than the load copies.
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
    if leader {
        full.arrive_expect_tx(1024);
        src.load(tile, [0, 0], full);
    }
    full.wait(0);
    out.set(thread_idx().x, tile.get([0, lane_idx()]));
}
