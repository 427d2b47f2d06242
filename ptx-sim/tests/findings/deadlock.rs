// The barrier counts two arrivals, but there is only one.
use tma_runtime::prelude::*;

#[tma_kernel(threads = 64)]
pub fn k(
    src: TensorMap<Tile<u32, Shape2<32, 32>>>,
    dst: TensorMap<Tile<u32, Shape2<32, 32>>>,
    out: Global<u32>,
) {
    let met: Barrier = shared();
    let leader = thread_idx().x == 0;
    if leader {
        met.init(2);
    }
    sync_threads();
    if leader {
        met.arrive();
    }
    met.wait(0);
    out.set(thread_idx().x, 1);
}
