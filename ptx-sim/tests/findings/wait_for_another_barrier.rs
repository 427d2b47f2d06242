// The threads wait for another barrier than the one that the load counts at.
use tma_runtime::prelude::*;

#[tma_kernel(threads = 32)]
pub fn k(
    src: TensorMap<Tile<u32, Shape2<32, 32>>>,
    dst: TensorMap<Tile<u32, Shape2<32, 32>>>,
    out: Global<u32>,
) {
    let tile: Tile<u32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    let other: Barrier = shared();
    let leader = thread_idx().x == 0;
    if leader {
        full.init(1);
        other.init(1);
        other.arrive();
        fence_barrier_init();
    }
    sync_threads();
    if leader {
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, [0, 0], full);
    }
    other.wait(0);
    out.set(lane_idx(), tile.get([1, lane_idx()]));
    full.wait(0);
}
