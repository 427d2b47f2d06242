// No thread arrives at the barrier of the second stage.
use tma_runtime::prelude::*;

#[tma_kernel(threads = 32)]
pub fn k(
    src: TensorMap<Tile<u32, Shape2<32, 32>>>,
    dst: TensorMap<Tile<u32, Shape2<32, 32>>>,
    out: Global<u32>,
) {
    let full: Stages<Barrier, 3> = shared();
    if thread_idx().x == 0 {
        full[1].init(1);
    }
    sync_threads();
    full[1].wait(0);
}
