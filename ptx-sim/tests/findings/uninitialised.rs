// The threads read memory that was never written.
use tma_runtime::prelude::*;

#[tma_kernel(threads = 64)]
pub fn k(
    src: TensorMap<Tile<u32, Shape2<32, 32>>>,
    dst: TensorMap<Tile<u32, Shape2<32, 32>>>,
    out: Global<u32>,
) {
    let values: SharedArray<u32, 128> = shared();
    let i = thread_idx().x;
    values.set(i, i);
    sync_threads();
    out.set(i, values.get(i + 64));
}
