// Exactly as many threads arrive at `empty` as it counts, so it is not part of the deadlock.
use tma_runtime::prelude::*;

#[tma_kernel(threads = 64)]
pub fn k(
    src: TensorMap<Tile<u32, Shape2<32, 32>>>,
    dst: TensorMap<Tile<u32, Shape2<32, 32>>>,
    out: Global<u32>,
) {
    let full: Barrier = shared();
    let empty: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        empty.init(32);
    }
    sync_threads();
    if thread_idx().x < 32 {
        empty.arrive();
    } else {
        full.wait(0);
    }
}
