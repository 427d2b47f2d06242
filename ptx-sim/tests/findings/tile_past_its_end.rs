// The row after the last one of the tile belongs to the next array.
use tma_runtime::prelude::*;

#[tma_kernel(threads = 32, unchecked)]
pub fn k(
    src: TensorMap<Tile<u32, Shape2<32, 32>>>,
    dst: TensorMap<Tile<u32, Shape2<32, 32>>>,
    out: Global<u32>,
) {
    let tile: Tile<u32, Shape2<8, 32>> = shared();
    let sums: SharedArray<u32, 32> = shared();
    let i = thread_idx().x;
    sums.set(i, 0);
    for row in 0..9 {
        tile.set([row, i], i);
    }
    out.set(i, sums.get(i) + tile.get([0, i]));
}
