// There is no proxy fence between the threads' writes to a tile and the store of the tile.
use tma_runtime::prelude::*;

#[tma_kernel(threads = 32)]
pub fn k(
    src: TensorMap<Tile<u32, Shape2<32, 32>>>,
    dst: TensorMap<Tile<u32, Shape2<32, 32>>>,
    out: Global<u32>,
) {
    let tile: Tile<u32, Shape2<32, 32>> = shared();
    let lane = lane_idx();
    for row in unroll(0..32) {
        tile.set([row, lane], row + lane);
    }
    sync_threads();
    if lane == 0 {
        dst.store([0, 0], tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}
