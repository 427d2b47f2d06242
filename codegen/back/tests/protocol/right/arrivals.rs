//! All kinds of arrivals: tokens, drops, counts, and arrivals without a wait.

/// Each thread waits for the phase of its own arrival.
#[tma_kernel(threads = 64)]
fn tokens(out: Global<u32>, rounds: u32) {
    let met: Barrier = shared();
    let row: Stages<SharedArray<u32, 64>, 2> = shared();
    if thread_idx().x == 0 { met.init(64); }
    sync_threads();
    for round in 0..rounds {
        row[round % 2].set(thread_idx().x, round);
        let token = met.arrive_token();
        met.wait_token(token);
        out.set(thread_idx().x, row[round % 2].get(63 - thread_idx().x));
    }
}

/// Work between the arrival and the wait.
#[tma_kernel(threads = 64)]
fn split_in_two(out: Global<u32>) {
    let met: Barrier = shared();
    let row: SharedArray<u32, 64> = shared();
    if thread_idx().x == 0 { met.init(64); }
    sync_threads();
    row.set(thread_idx().x, 1);
    let token = met.arrive_token();
    out.set(64 + thread_idx().x, 5);
    met.wait_token(token);
    out.set(thread_idx().x, row.get(63 - thread_idx().x));
}

/// The producers arrive and go on, and one warp waits.
#[tma_kernel(threads = 96)]
fn arrivals_without_waits(out: Global<u32>) {
    let done: Barrier = shared();
    let row: SharedArray<u32, 64> = shared();
    if thread_idx().x == 0 { done.init(64); }
    sync_threads();
    if warp_idx() < 2 {
        row.set(thread_idx().x, 1);
        done.arrive();
    } else {
        done.wait(0);
        out.set(lane_idx(), row.get(lane_idx()) + row.get(32 + lane_idx()));
    }
}

/// A warp that has finished drops out of the following phases.
#[tma_kernel(threads = 96)]
fn a_warp_drops_out(out: Global<u32>) {
    let met: Barrier = shared();
    let row: Stages<SharedArray<u32, 96>, 2> = shared();
    if thread_idx().x == 0 { met.init(96); }
    sync_threads();
    row[0].set(thread_idx().x, 1);
    if warp_idx() == 2 {
        met.arrive_drop();
    } else {
        met.arrive();
        met.wait(0);
        row[1].set(thread_idx().x, row[0].get(95 - thread_idx().x));
        met.arrive();
        met.wait(1);
        out.set(thread_idx().x, row[1].get(63 - thread_idx().x));
    }
}

/// One lane arrives for its warp, which has synchronised before.
#[tma_kernel(threads = 128)]
fn one_for_its_warp(out: Global<u32>) {
    let met: Barrier = shared();
    let row: SharedArray<u32, 128> = shared();
    if thread_idx().x == 0 { met.init(4); }
    sync_threads();
    row.set(thread_idx().x, 1);
    sync_warp();
    if elect_one() { met.arrive(); }
    met.wait(0);
    out.set(thread_idx().x, row.get(127 - thread_idx().x));
}

/// One lane arrives once for each lane of its warp.
#[tma_kernel(threads = 64)]
fn as_often_as_lanes(out: Global<u32>) {
    let met: Barrier = shared();
    let row: SharedArray<u32, 64> = shared();
    if thread_idx().x == 0 { met.init(64); }
    sync_threads();
    row.set(thread_idx().x, 1);
    sync_warp();
    if lane_idx() == 0 { met.arrive_many(32); }
    met.wait(0);
    out.set(thread_idx().x, row.get(63 - thread_idx().x));
}

/// Bytes are announced before the arrival, in two parts.
#[tma_kernel(threads = 32)]
fn announced_in_parts(src: TensorMap<Tile<f32, Shape2<8, 32>>>, out: Global<f32>) {
    let tiles: Stages<Tile<f32, Shape2<8, 32>>, 2> = shared();
    let full: Barrier = shared();
    if lane_idx() == 0 {
        full.init(1);
        fence_barrier_init();
        full.expect_tx(tiles[0].bytes());
        src.load(tiles[0], [0, 0], full);
        full.expect_tx(tiles[1].bytes());
        src.load(tiles[1], [8, 0], full);
        full.arrive();
    }
    sync_warp();
    full.wait(0);
    out.set(lane_idx(), tiles[0].get([0, lane_idx()]) + tiles[1].get([0, lane_idx()]));
}

/// Four threads load a quarter each, and each announces its own bytes.
#[tma_kernel(threads = 128)]
fn each_announces_its_own(src: TensorMap<Tile<f32, Shape2<8, 32>>>, out: Global<f32>) {
    let tiles: Stages<Tile<f32, Shape2<8, 32>>, 4> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 { full.init(4); fence_barrier_init(); }
    sync_threads();
    if lane_idx() == 0 {
        full.arrive_expect_tx(tiles[warp_idx()].bytes());
        src.load(tiles[warp_idx()], [warp_idx() * 8, 0], full);
    }
    full.wait(0);
    out.set(thread_idx().x, tiles[3 - warp_idx()].get([0, lane_idx()]));
}

/// The barrier is invalidated, and its memory becomes another one.
#[tma_kernel(threads = 64)]
fn one_after_the_other(out: Global<u32>) {
    let met: Barrier = shared();
    let row: SharedArray<u32, 64> = shared();
    if thread_idx().x == 0 { met.init(64); }
    sync_threads();
    row.set(thread_idx().x, 1);
    met.arrive();
    met.wait(0);
    sync_threads();
    if thread_idx().x == 0 { met.invalidate(); met.init(32); }
    sync_threads();
    if warp_idx() == 1 { met.arrive(); }
    met.wait(0);
    out.set(thread_idx().x, row.get(63 - thread_idx().x));
}

/// A poll between other work.
#[tma_kernel(threads = 32)]
fn asked_now_and_then(src: TensorMap<Tile<f32, Shape2<8, 32>>>, out: Global<f32>) {
    let tile: Tile<f32, Shape2<8, 32>> = shared();
    let full: Barrier = shared();
    if lane_idx() == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, [0, 0], full);
    }
    sync_warp();
    let mut asked = 0.0;
    while !full.test_wait(0) { asked += 1.0; }
    out.set(lane_idx(), tile.get([0, lane_idx()]) + asked * 0.0);
}

/// A first try, and then the wait.
#[tma_kernel(threads = 32)]
fn tried_first(src: TensorMap<Tile<f32, Shape2<8, 32>>>, out: Global<f32>) {
    let tile: Tile<f32, Shape2<8, 32>> = shared();
    let full: Barrier = shared();
    if lane_idx() == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, [0, 0], full);
    }
    sync_warp();
    if !full.try_wait(0) { full.wait(0); }
    out.set(lane_idx(), tile.get([0, lane_idx()]));
}
