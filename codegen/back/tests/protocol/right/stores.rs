//! Stores, their groups, and fences.

/// Two buffers in alternation, with one group of stores always in flight.
#[tma_kernel(threads = 32)]
fn one_group_open(dst: TensorMap<Tile<f32, Shape2<32, 32>>>, turns: u32) {
    let tiles: Stages<Tile<f32, Shape2<32, 32>>, 2> = shared();
    for turn in 0..turns {
        if thread_idx().x == 0 { bulk_wait_group_read::<1>(); }
        sync_threads();
        for row in 0..32 { tiles[turn % 2].set([row, thread_idx().x], 1.0); }
        fence_proxy_async();
        sync_threads();
        if thread_idx().x == 0 {
            dst.store([turn * 32, 0], tiles[turn % 2]);
            bulk_commit_group();
        }
    }
    bulk_wait_group_read::<0>();
}

/// In place: loaded, changed, stored, and loaded again.
#[tma_kernel(threads = 32)]
fn in_place(map: TensorMap<Tile<f32, Shape2<32, 32>>>, tiles: u32) {
    let tile: Tile<f32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 { full.init(1); fence_barrier_init(); }
    sync_threads();
    for k in 0..tiles {
        if thread_idx().x == 0 {
            full.arrive_expect_tx(tile.bytes());
            map.load(tile, [k * 32, 0], full);
        }
        full.wait(k % 2);
        for row in 0..32 {
            tile.set([row, lane_idx()], tile.get([row, lane_idx()]) * 2.0);
        }
        fence_proxy_async();
        sync_threads();
        if thread_idx().x == 0 {
            map.store([k * 32, 0], tile);
            bulk_commit_group();
            bulk_wait_group_read::<0>();
        }
    }
    bulk_wait_group::<0>();
}

/// Each thread stores the elements that it has written.
#[tma_kernel(threads = 32)]
fn each_its_own(dst: Global<u32>) {
    let rows: SharedArray<u32, 128> = shared();
    for i in 0..4 { rows.set(lane_idx() * 4 + i, i); }
    fence_proxy_async();
    dst.bulk_store(lane_idx() * 4, rows, lane_idx() * 4, 4);
    bulk_commit_group();
    bulk_wait_group::<0>();
}

/// Several stores are one group.
#[tma_kernel(threads = 64)]
fn several_in_a_group(dst: TensorMap<Tile<f32, Shape2<8, 32>>>) {
    let tiles: Stages<Tile<f32, Shape2<8, 32>>, 4> = shared();
    for i in 0..4 {
        for row in 0..4 { tiles[i].set([warp_idx() * 4 + row, lane_idx()], 1.0); }
    }
    fence_proxy_async();
    sync_threads();
    if warp_idx() == 0 && elect_one() {
        for i in 0..4 { dst.store([i * 8, 0], tiles[i]); }
        bulk_commit_group();
        bulk_wait_group::<0>();
    }
}

/// Reductions read their tile as stores do.
#[tma_kernel(threads = 32)]
fn reduced(dst: TensorMap<Tile<f32, Shape2<8, 32>>>, turns: u32) {
    let tile: Tile<f32, Shape2<8, 32>> = shared();
    for turn in 0..turns {
        for row in 0..8 { tile.set([row, lane_idx()], 1.0); }
        fence_proxy_async();
        sync_warp();
        if lane_idx() == 0 {
            dst.reduce_add([turn * 8, 0], tile);
            bulk_commit_group();
            bulk_wait_group_read::<0>();
        }
        sync_warp();
    }
}

/// The thread that stores is not the one that waits for the readers: a barrier is between them.
#[tma_kernel(threads = 96)]
fn a_warp_that_stores(dst: TensorMap<Tile<f32, Shape2<32, 32>>>, tiles: u32) {
    let tile: Stages<Tile<f32, Shape2<32, 32>>, 2> = shared();
    let written: Stages<Barrier, 2> = shared();
    let stored: Stages<Barrier, 2> = shared();
    if thread_idx().x == 0 {
        for stage in 0..2 { written[stage].init(64); stored[stage].init(1); }
    }
    sync_threads();
    if warp_idx() < 2 {
        for k in 0..tiles {
            stored[k % 2].wait(k / 2 % 2 ^ 1);
            for row in 0..16 { tile[k % 2].set([warp_idx() * 16 + row, lane_idx()], 1.0); }
            fence_proxy_async();
            written[k % 2].arrive();
        }
    } else if lane_idx() == 0 {
        for k in 0..tiles {
            written[k % 2].wait(k / 2 % 2);
            dst.store([k * 32, 0], tile[k % 2]);
            bulk_commit_group();
            bulk_wait_group_read::<0>();
            stored[k % 2].arrive();
        }
        bulk_wait_group::<0>();
    }
}

/// Half of an array is filled by a copy while the other half is read.
#[tma_kernel(threads = 32)]
fn halves(src: Global<f32>, out: Global<f32>) {
    let both: SharedArray<f32, 256> = shared();
    let full: Barrier = shared();
    if lane_idx() == 0 { full.init(1); fence_barrier_init(); }
    for i in 0..4 { both.set(lane_idx() * 4 + i, 1.0); }
    sync_warp();
    if lane_idx() == 0 {
        full.arrive_expect_tx(512);
        src.bulk_load(both, 128, 128, 0, full);
    }
    out.set(lane_idx(), both.get(127 - lane_idx()));
    full.wait(0);
    out.set(32 + lane_idx(), both.get(128 + lane_idx()));
}

/// Each warp elects a thread, and stores a tile of its own.
#[tma_kernel(threads = 64)]
fn each_warp_stores(dst: TensorMap<Tile<f32, Shape2<8, 32>>>) {
    let tiles: Stages<Tile<f32, Shape2<8, 32>>, 2> = shared();
    let warp = thread_idx().x / 32;
    for r in 0..8 { tiles[warp].set([r, lane_idx()], 1.0); }
    fence_proxy_async();
    sync_warp();
    if elect_one() {
        dst.store([(block_idx().x * 2 + warp) as i32 * 8, 0], tiles[warp]);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// The same box in each iteration. The wait is for the writes, too.
#[tma_kernel(threads = 32)]
fn one_box_in_each_iteration(dst: TensorMap<Tile<f32, Shape2<8, 32>>>, n: u32) {
    let tile: Tile<f32, Shape2<8, 32>> = shared();
    for _ in 0..n {
        for r in 0..8 { tile.set([r, lane_idx()], 1.0); }
        fence_proxy_async();
        sync_warp();
        if lane_idx() == 0 {
            dst.store([0, 0], tile);
            bulk_commit_group();
            bulk_wait_group::<0>();
        }
        sync_warp();
    }
}

/// Boxes one below the other.
#[tma_kernel(threads = 32)]
fn boxes_side_by_side(dst: TensorMap<Tile<f32, Shape2<8, 32>>>) {
    let tiles: Stages<Tile<f32, Shape2<8, 32>>, 2> = shared();
    for r in 0..8 { tiles[0].set([r, lane_idx()], 1.0); tiles[1].set([r, lane_idx()], 2.0); }
    fence_proxy_async();
    sync_warp();
    if lane_idx() == 0 {
        dst.store([0, 0], tiles[0]);
        bulk_commit_group();
        dst.store([8, 0], tiles[1]);
        bulk_commit_group();
        bulk_wait_group::<0>();
    }
}

/// Two threads store to one box, one after the other.
#[tma_kernel(threads = 64)]
fn one_warp_after_the_other(dst: TensorMap<Tile<f32, Shape2<8, 32>>>) {
    let tiles: Stages<Tile<f32, Shape2<8, 32>>, 2> = shared();
    let t = thread_idx().x;
    for r in 0..8 { tiles[t / 32].set([r, lane_idx()], 1.0); }
    fence_proxy_async();
    sync_threads();
    let row = block_idx().x as i32 * 8;
    if t == 0 { dst.store([row, 0], tiles[0]); bulk_commit_group(); bulk_wait_group::<0>(); }
    sync_threads();
    if t == 32 { dst.store([row, 0], tiles[1]); bulk_commit_group(); bulk_wait_group::<0>(); }
}
