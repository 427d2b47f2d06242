// Every thread initialises the barrier.
use tma_runtime::prelude::*;

#[tma_kernel(threads = 64)]
pub fn k(
    src: TensorMap<Tile<u32, Shape2<32, 32>>>,
    dst: TensorMap<Tile<u32, Shape2<32, 32>>>,
    out: Global<u32>,
) {
    let full: Barrier = shared();
    full.init(1);
    sync_threads();
    if thread_idx().x == 0 {
        full.arrive();
    }
    full.wait(0);
}
