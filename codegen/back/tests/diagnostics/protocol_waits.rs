// Waits that never end, and barriers that count something else than comes.

#[tma_kernel(threads = 64)]
fn two_tiles_and_bytes_of_one(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>) {
    let left: Tile<f32, Shape2<32, 32>> = shared();
    let right: Tile<f32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 { full.init(1); fence_barrier_init(); }
    sync_threads();
    if thread_idx().x == 0 {
        full.arrive_expect_tx(left.bytes()); //~ TMA0702
        src.load(left, [0, 0], full);
        src.load(right, [32, 0], full);
    }
    full.wait(0);
    out.set(thread_idx().x, left.get([0, lane_idx()]) + right.get([0, lane_idx()]));
}

#[tma_kernel(threads = 64)]
fn more_bytes_than_come(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>) {
    let tile: Tile<f32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 { full.init(1); fence_barrier_init(); }
    sync_threads();
    if thread_idx().x == 0 {
        full.arrive_expect_tx(2 * tile.bytes()); //~ TMA0702
        src.load(tile, [0, 0], full);
    }
    full.wait(0);
    out.set(thread_idx().x, tile.get([0, lane_idx()]));
}

#[tma_kernel(threads = 64)]
fn bytes_without_an_arrival(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>) {
    let tile: Tile<f32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 { full.init(1); fence_barrier_init(); }
    sync_threads();
    if thread_idx().x == 0 {
        full.expect_tx(tile.bytes());
        src.load(tile, [0, 0], full);
    }
    full.wait(0); //~ TMA0701
    out.set(thread_idx().x, tile.get([0, lane_idx()]));
}

#[tma_kernel(threads = 64)]
fn a_count_that_is_never_reached(out: Global<u32>) {
    let met: Barrier = shared();
    let row: SharedArray<u32, 64> = shared();
    if thread_idx().x == 0 { met.init(65); }
    sync_threads();
    row.set(thread_idx().x, 1);
    met.arrive();
    met.wait(0); //~ TMA0701
    out.set(thread_idx().x, row.get(63 - thread_idx().x));
}

#[tma_kernel(threads = 64)]
fn more_arrivals_than_are_counted(out: Global<u32>) {
    let met: Barrier = shared();
    let row: SharedArray<u32, 64> = shared();
    if thread_idx().x == 0 { met.init(32); }
    sync_threads();
    row.set(thread_idx().x, 1);
    met.arrive(); //~ TMA0703
    met.wait(0);
    out.set(thread_idx().x, row.get(63 - thread_idx().x));
}

#[tma_kernel(threads = 64)]
fn always_the_same_parity(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>, tiles: u32) {
    let tile: Tile<f32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 { full.init(1); fence_barrier_init(); }
    sync_threads();
    for k in 0..tiles {
        if thread_idx().x == 0 {
            full.arrive_expect_tx(tile.bytes());
            src.load(tile, [k * 32, 0], full);
        }
        full.wait(0); //~ TMA0709
        out.set(k * 64 + thread_idx().x, tile.get([0, lane_idx()]));
        fence_proxy_async();
        sync_threads();
    }
}

#[tma_kernel(threads = 64)]
fn a_phase_flipped_without_a_wait(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>) {
    let tile: Tile<f32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 { full.init(1); fence_barrier_init(); }
    sync_threads();
    let mut parity = 0;
    for turn in 0..4u32 {
        if turn == 2 { parity ^= 1; } else {
            if thread_idx().x == 0 {
                full.arrive_expect_tx(tile.bytes());
                src.load(tile, [turn * 32, 0], full);
            }
            full.wait(parity); //~ TMA0709
            parity ^= 1;
            out.set(thread_idx().x, tile.get([0, lane_idx()]));
            fence_proxy_async();
            sync_threads();
        }
    }
}

#[tma_kernel(threads = 64)]
fn a_meeting_that_some_do_not_come_to(out: Global<u32>) {
    let row: SharedArray<u32, 64> = shared();
    row.set(thread_idx().x, 1);
    if thread_idx().x < 40 {
        sync_threads(); //~ TMA0712
    }
    out.set(thread_idx().x, row.get(thread_idx().x));
}

#[tma_kernel(threads = 64)]
fn a_named_barrier_of_too_many(out: Global<u32>) {
    let row: SharedArray<u32, 64> = shared();
    row.set(thread_idx().x, 1);
    if warp_idx() == 0 {
        named_barrier_sync(1, 64); //~ TMA0701
        out.set(thread_idx().x, row.get(31 - thread_idx().x));
    }
}

#[tma_kernel(threads = 64)]
fn each_waits_for_the_other(out: Global<u32>) {
    let first: Barrier = shared();
    let second: Barrier = shared();
    if thread_idx().x == 0 { first.init(32); second.init(32); }
    sync_threads();
    if warp_idx() == 0 {
        second.wait(0); //~ TMA0701
        first.arrive();
    } else {
        first.wait(0);
        second.arrive();
    }
    out.set(thread_idx().x, 1);
}

#[tma_kernel(threads = 64)]
fn a_barrier_for_every_thread_at_once(out: Global<u32>) {
    let met: Barrier = shared();
    met.init(64); //~ TMA0703
    sync_threads();
    met.arrive();
    met.wait(0);
    out.set(thread_idx().x, 1);
}

#[tma_kernel(threads = 64)]
fn a_barrier_that_others_may_not_see_yet(out: Global<u32>) {
    let met: Barrier = shared();
    if thread_idx().x == 0 { met.init(64); }
    met.arrive(); //~ TMA0708
    met.wait(0);
    out.set(thread_idx().x, 1);
}

#[tma_kernel(threads = 64)]
fn no_fence_behind_the_initialisation(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>) {
    let tile: Tile<f32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 { full.init(1); }
    sync_threads();
    if thread_idx().x == 0 {
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, [0, 0], full); //~ TMA0708
    }
    full.wait(0);
    out.set(thread_idx().x, tile.get([0, lane_idx()]));
}

#[tma_kernel(threads = 64)]
fn a_wait_that_may_come_too_late(out: Global<u32>, turns: u32) {
    let ready: Barrier = shared();
    if thread_idx().x == 0 { ready.init(32); }
    sync_threads();
    for turn in 0..turns {
        if warp_idx() == 0 {
            ready.arrive();
            ready.wait(turn & 1);
        } else {
            ready.wait(turn & 1); //~ TMA0709
            out.set(turn * 32 + lane_idx(), turn);
        }
    }
}

#[tma_kernel(threads = 64)]
fn a_parity_that_does_not_alternate(out: Global<u32>) {
    let met: Barrier = shared();
    if thread_idx().x == 0 { met.init(64); }
    sync_threads();
    met.arrive();
    met.wait(0);
    met.arrive();
    met.wait(0);
    met.arrive(); //~ TMA0703
    met.wait(0);
    out.set(thread_idx().x, 1);
}

#[tma_kernel(threads = 128)]
fn an_inverted_parity(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>, tiles: u32) {
    let tile: Tile<f32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 { full.init(1); fence_barrier_init(); }
    sync_threads();
    for k in 0..tiles {
        if thread_idx().x == 0 {
            full.arrive_expect_tx(tile.bytes());
            src.load(tile, [k * 32, 0], full);
        }
        full.wait((k & 1) ^ 1); //~ TMA0709
        out.set(k * 128 + thread_idx().x, tile.get([warp_idx(), lane_idx()]));
        fence_proxy_async();
        sync_threads();
    }
}
