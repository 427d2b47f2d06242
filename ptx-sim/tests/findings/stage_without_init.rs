// Two of three barriers are initialised, but the threads wait for the third.
use tma_runtime::prelude::*;

#[tma_kernel(threads = 32)]
pub fn k(
    src: TensorMap<Tile<u32, Shape2<32, 32>>>,
    dst: TensorMap<Tile<u32, Shape2<32, 32>>>,
    out: Global<u32>,
) {
    let full: Stages<Barrier, 3> = shared();
    if thread_idx().x == 0 {
        full[0].init(1);
        full[1].init(1);
    }
    sync_threads();
    full[2].wait(0);
}
