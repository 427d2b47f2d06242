//! Copies that write one place in global memory several times, with no wait between them.

/// All threads but the first store the tile.
#[tma_kernel(threads = 128)]
fn stored_by_all_threads_but_one(dst: TensorMap<Tile<f32, Shape2<8, 32>>>) {
    let tile: Tile<f32, Shape2<8, 32>> = shared();
    let t = thread_idx().x;
    for r in 0..2 { tile.set([r * 4 + t / 32, t % 32], 1.0); }
    fence_proxy_async();
    sync_threads();
    if t != 0 {
        dst.store(dst.block_tile(), tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// Each warp elects a thread.
#[tma_kernel(threads = 64)]
fn stored_by_a_thread_of_each_warp(dst: TensorMap<Tile<f32, Shape2<8, 32>>>) {
    let tile: Tile<f32, Shape2<8, 32>> = shared();
    let t = thread_idx().x;
    for r in 0..4 { tile.set([r * 2 + t / 32, t % 32], 1.0); }
    fence_proxy_async();
    sync_threads();
    if elect_one() {
        dst.store([block_idx().x as i32 * 8, 0], tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// The wait is for reads of the tile alone.
#[tma_kernel(threads = 32)]
fn stored_to_one_box_in_each_iteration(dst: TensorMap<Tile<f32, Shape2<8, 32>>>, n: u32) {
    let tile: Tile<f32, Shape2<8, 32>> = shared();
    for _ in 0..n {
        for r in 0..8 { tile.set([r, lane_idx()], 1.0); }
        fence_proxy_async();
        sync_warp();
        if lane_idx() == 0 {
            dst.store([0, 0], tile);
            bulk_commit_group();
            bulk_wait_group_read::<0>();
        }
        sync_warp();
    }
}

/// The boxes overlap by four rows.
#[tma_kernel(threads = 32)]
fn stored_to_boxes_that_overlap(dst: TensorMap<Tile<f32, Shape2<8, 32>>>) {
    let tiles: Stages<Tile<f32, Shape2<8, 32>>, 2> = shared();
    for r in 0..8 { tiles[0].set([r, lane_idx()], 1.0); tiles[1].set([r, lane_idx()], 2.0); }
    fence_proxy_async();
    sync_warp();
    if lane_idx() == 0 {
        dst.store([0, 0], tiles[0]);
        bulk_commit_group();
        dst.store([4, 0], tiles[1]);
        bulk_commit_group();
        bulk_wait_group::<0>();
    }
}

/// Two warps store to one box, each behind its own condition.
#[tma_kernel(threads = 64)]
fn stored_by_two_warps(dst: TensorMap<Tile<f32, Shape2<8, 32>>>) {
    let tiles: Stages<Tile<f32, Shape2<8, 32>>, 2> = shared();
    let t = thread_idx().x;
    for r in 0..8 { tiles[t / 32].set([r, lane_idx()], 1.0); }
    fence_proxy_async();
    sync_threads();
    let row = block_idx().x as i32 * 8;
    if t == 0 { dst.store([row, 0], tiles[0]); }
    if t == 32 { dst.store([row, 0], tiles[1]); }
    bulk_commit_group();
    bulk_wait_group_read::<0>();
}
