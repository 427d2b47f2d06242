// There is no barrier between a thread's write and its neighbour's read.
use tma_runtime::prelude::*;

#[tma_kernel(threads = 64)]
pub fn k(
    src: TensorMap<Tile<u32, Shape2<32, 32>>>,
    dst: TensorMap<Tile<u32, Shape2<32, 32>>>,
    out: Global<u32>,
) {
    let values: SharedArray<u32, 64> = shared();
    let i = thread_idx().x;
    values.set(i, i);
    out.set(i, values.get((i + 1) % 64));
}
