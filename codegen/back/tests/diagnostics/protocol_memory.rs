// Shared memory that threads and copies use in no order, or without a fence.

#[tma_kernel(threads = 128)]
fn nothing_between_write_and_read(out: Global<u32>) {
    let row: SharedArray<u32, 128> = shared();
    row.set(thread_idx().x, 1);
    out.set(thread_idx().x, row.get(127 - thread_idx().x)); //~ TMA0704
}

#[tma_kernel(threads = 32)]
fn a_warp_is_not_in_step(out: Global<u32>) {
    let row: SharedArray<u32, 32> = shared();
    for turn in 0..2u32 {
        row.set(lane_idx(), turn); //~ TMA0704
        sync_warp();
        out.set(lane_idx(), row.get(31 - lane_idx()));
    }
}

#[tma_kernel(threads = 32)]
fn the_elected_lane_is_not_lane_0(out: Global<u32>) {
    let value: SharedArray<u32, 1> = shared();
    if lane_idx() == 0 { value.set(0, 7); }
    if elect_one() { out.set(0, value.get(0)); } //~ TMA0704
}

#[tma_kernel(threads = 64)]
fn read_before_the_wait(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>) {
    let tile: Tile<f32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 { full.init(1); fence_barrier_init(); }
    sync_threads();
    if thread_idx().x == 0 {
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, [0, 0], full);
    }
    out.set(thread_idx().x, tile.get([0, lane_idx()])); //~ TMA0705
    full.wait(0);
}

#[tma_kernel(threads = 64)]
fn filled_again_too_early(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>, tiles: u32) {
    let tile: Tile<f32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 { full.init(1); fence_barrier_init(); }
    sync_threads();
    for k in 0..tiles {
        if thread_idx().x == 0 {
            full.arrive_expect_tx(tile.bytes());
            src.load(tile, [k * 32, 0], full);
        }
        full.wait(k & 1); //~ TMA0709
        out.set(k * 64 + thread_idx().x, tile.get([0, lane_idx()]));
        fence_proxy_async();
    }
}

#[tma_kernel(threads = 64)]
fn no_fence_between_reads_and_the_next_load(
    src: TensorMap<Tile<f32, Shape2<32, 32>>>,
    out: Global<f32>,
    tiles: u32,
) {
    let tile: Tile<f32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 { full.init(1); fence_barrier_init(); }
    sync_threads();
    for k in 0..tiles {
        if thread_idx().x == 0 {
            full.arrive_expect_tx(tile.bytes());
            src.load(tile, [k * 32, 0], full); //~ TMA0707
        }
        full.wait(k & 1);
        out.set(k * 64 + thread_idx().x, tile.get([0, lane_idx()]));
        sync_threads();
    }
}

#[tma_kernel(threads = 32)]
fn stored_without_a_fence(dst: TensorMap<Tile<f32, Shape2<32, 32>>>) {
    let tile: Tile<f32, Shape2<32, 32>> = shared();
    for row in 0..32 { tile.set([row, thread_idx().x], 1.0); }
    sync_threads();
    if thread_idx().x == 0 {
        dst.store([0, 0], tile); //~ TMA0707
        bulk_commit_group();
        bulk_wait_group::<0>();
    }
}

#[tma_kernel(threads = 32)]
fn a_fence_before_the_loop(dst: TensorMap<Tile<f32, Shape2<32, 32>>>) {
    let tile: Tile<f32, Shape2<32, 32>> = shared();
    fence_proxy_async();
    for turn in 0..4u32 {
        for row in 0..32 { tile.set([row, thread_idx().x], 1.0); }
        sync_threads();
        if thread_idx().x == 0 {
            dst.store([turn * 32, 0], tile); //~ TMA0707
            bulk_commit_group();
            bulk_wait_group_read::<0>();
        }
        sync_threads();
    }
}

#[tma_kernel(threads = 32)]
fn a_wait_for_one_group_too_few(dst: TensorMap<Tile<f32, Shape2<32, 32>>>) {
    let tiles: Stages<Tile<f32, Shape2<32, 32>>, 2> = shared();
    for turn in 0..4u32 {
        if thread_idx().x == 0 { bulk_wait_group_read::<2>(); }
        sync_threads();
        for row in 0..32 {
            tiles[turn % 2].set([row, thread_idx().x], 1.0); //~ TMA0706
        }
        fence_proxy_async();
        sync_threads();
        if thread_idx().x == 0 {
            dst.store([turn * 32, 0], tiles[turn % 2]);
            bulk_commit_group();
        }
    }
    bulk_wait_group_read::<0>();
}

#[tma_kernel(threads = 32)]
fn a_store_that_nobody_waits_for(dst: TensorMap<Tile<f32, Shape2<32, 32>>>) {
    let tile: Tile<f32, Shape2<32, 32>> = shared();
    for row in 0..32 { tile.set([row, thread_idx().x], 1.0); }
    fence_proxy_async();
    sync_threads();
    if thread_idx().x == 0 {
        dst.store([0, 0], tile); //~ TMA0710
        bulk_commit_group();
    }
}

#[tma_kernel(threads = 32)]
fn a_load_that_nobody_waits_for(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>) {
    let tile: Tile<f32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, [0, 0], full); //~ TMA0710
    }
    out.set(thread_idx().x, 1.0);
}

#[tma_kernel(threads = 32, cluster = 2)]
fn a_block_that_may_have_ended(out: Global<u32>) {
    let value: SharedArray<u32, 32> = shared();
    value.set(lane_idx(), 1);
    sync_cluster();
    out.set(block_idx().x * 32 + lane_idx(), remote(value, 1 - cluster_rank()).get(lane_idx())); //~ TMA0711
}

#[tma_kernel(threads = 32, cluster = 2)]
fn only_the_own_block_met(out: Global<u32>) {
    let full: Barrier = shared();
    if thread_idx().x == 0 { full.init(32); }
    sync_threads();
    remote(full, 1 - cluster_rank()).arrive(); //~ TMA0708
    full.wait(0);
    out.set(thread_idx().x, 1);
    sync_cluster();
}

#[tma_kernel(threads = 64)]
fn written_by_another_name(src: TensorMap<Tile<f32, Shape2<64, 32>>>, out: Global<f32>) {
    let tile: Tile<f32, Shape2<64, 32>> = shared();
    let sums: SharedArray<f32, 64> = reuse(tile);
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, [0, 0], full);
    }
    sync_threads();
    full.wait(0);
    let sum = tile.get([thread_idx().x, 0]) + tile.get([thread_idx().x, 31]);
    sums.set(thread_idx().x, sum); //~ TMA0704
    sync_threads();
    out.set(thread_idx().x, sums.get(63 - thread_idx().x));
}

#[tma_kernel(threads = 64)]
fn loaded_by_another_name(src: TensorMap<Tile<f32, Shape2<64, 32>>>, out: Global<f32>) {
    let sums: SharedArray<f32, 2048> = shared();
    let tile: Tile<f32, Shape2<64, 32>> = reuse(sums);
    let full: Barrier = shared();
    if thread_idx().x == 0 { full.init(1); fence_barrier_init(); }
    sums.set(thread_idx().x, out.get(thread_idx().x));
    sync_threads();
    out.set(thread_idx().x, sums.get(63 - thread_idx().x));
    sync_threads();
    if thread_idx().x == 0 {
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, [0, 0], full); //~ TMA0707
    }
    full.wait(0);
    out.set(thread_idx().x, tile.get([thread_idx().x, 0]));
}
