// A block reads the memory of its neighbour, which does not wait for it and may have ended.
use tma_runtime::prelude::*;

#[tma_kernel(threads = 32, cluster = 2)]
pub fn k(
    src: TensorMap<Tile<u32, Shape2<32, 32>>>,
    dst: TensorMap<Tile<u32, Shape2<32, 32>>>,
    out: Global<u32>,
) {
    let values: SharedArray<u32, 32> = shared();
    values.set(lane_idx(), cluster_rank());
    sync_cluster();
    out.set(lane_idx(), remote(values, cluster_rank() ^ 1).get(lane_idx()));
}
