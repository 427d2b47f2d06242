// The second phase may complete before all threads have waited for the first.
use tma_runtime::prelude::*;

#[tma_kernel(threads = 64)]
pub fn k(
    src: TensorMap<Tile<u32, Shape2<32, 32>>>,
    dst: TensorMap<Tile<u32, Shape2<32, 32>>>,
    out: Global<u32>,
) {
    let turn: Barrier = shared();
    let leader = thread_idx().x == 0;
    if leader {
        turn.init(1);
    }
    sync_threads();
    for parity in 0..2 {
        if leader {
            turn.arrive();
        }
        turn.wait(parity);
    }
}
