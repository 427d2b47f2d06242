// The store starts before the tensor, which the copy engine refuses.
use tma_runtime::prelude::*;

#[tma_kernel(threads = 32)]
pub fn k(
    src: TensorMap<Tile<u32, Shape2<32, 32>>>,
    dst: TensorMap<Tile<u32, Shape2<32, 32>>>,
    out: Global<u32>,
) {
    let tile: Tile<u32, Shape2<32, 32>> = shared();
    for row in unroll(0..32) {
        tile.set([row, lane_idx()], row);
    }
    fence_proxy_async();
    sync_threads();
    if thread_idx().x == 0 {
        dst.store([block_idx().x as i32 - 1, 0], tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}
