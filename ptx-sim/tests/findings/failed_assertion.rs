// An assertion fails.
use tma_runtime::prelude::*;

#[tma_kernel(threads = 32)]
pub fn k(
    src: TensorMap<Tile<u32, Shape2<32, 32>>>,
    dst: TensorMap<Tile<u32, Shape2<32, 32>>>,
    out: Global<u32>,
) {
    assert!(out.len() == 1000, "1000 elements are wanted");
    out.set(lane_idx(), 0);
}
