// The left neighbour of the first thread is in another array. The same line accesses that array
// too, but only writes to it.
use tma_runtime::prelude::*;

#[tma_kernel(threads = 32, unchecked)]
pub fn k(
    src: TensorMap<Tile<u32, Shape2<32, 32>>>,
    dst: TensorMap<Tile<u32, Shape2<32, 32>>>,
    out: Global<u32>,
) {
    let sums: SharedArray<u32, 32> = shared();
    let values: SharedArray<u32, 32> = shared();
    let i = thread_idx().x;
    sums.set(i, 0);
    values.set(i, i);
    sync_threads();
    sums.set(i, values.get(i - 1) + 1);
    sync_threads();
    out.set(i, sums.get(i));
}
