// Mistakes of which a message has to say more than who does what: who is missing, which threads are
// at one statement, which parity was meant, and what shares a line with what is to be moved.

#[tma_kernel(threads = 64)]
fn a_meeting_inside_of_its_line(out: Global<u32>) {
    let row: SharedArray<u32, 64> = shared();
    row.set(thread_idx().x, 1);
    if thread_idx().x < 32 { sync_threads(); }
    out.set(thread_idx().x, row.get(63 - thread_idx().x)); //~ TMA0704
}

#[tma_kernel(threads = 32)]
fn a_commit_inside_of_its_line(dst: TensorMap<Tile<f32, Shape2<32, 32>>>) {
    let tile: Tile<f32, Shape2<32, 32>> = shared();
    for turn in 0..4u32 {
        for row in 0..32 { tile.set([row, thread_idx().x], 1.0); } //~ TMA0706
        fence_proxy_async();
        sync_threads();
        if thread_idx().x == 0 { dst.store([turn * 32, 0], tile); bulk_commit_group(); }
        sync_threads();
    }
    bulk_wait_group_read::<0>();
}

#[tma_module]
mod calls {
    #[tma_device]
    fn of_the_other(row: SharedArray<u32, 64>, value: u32) -> u32 {
        row.set(thread_idx().x, value);
        row.get(63 - thread_idx().x) //~ TMA0704
    }

    #[tma_kernel(threads = 64)]
    pub fn a_function_that_is_called_twice(out: Global<u32>) {
        let row: SharedArray<u32, 64> = shared();
        let first = of_the_other(row, 1);
        sync_threads();
        out.set(thread_idx().x, first + of_the_other(row, 2));
    }
}

#[tma_kernel(threads = 64)]
fn both_warps_load(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>) {
    let tile: Tile<f32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 { full.init(2); fence_barrier_init(); }
    sync_threads();
    if elect_one() {
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, [0, 0], full); //~ TMA0706
    }
    full.wait(0);
    out.set(thread_idx().x, tile.get([0, lane_idx()]));
}

#[tma_kernel(threads = 64, cluster = 2)]
fn both_blocks_write(out: Global<u32>) {
    let row: SharedArray<u32, 64> = shared();
    sync_cluster();
    remote(row, 0).set(thread_idx().x, cluster_rank()); //~ TMA0704
    sync_cluster();
    out.set(thread_idx().x, row.get(thread_idx().x));
}

#[tma_kernel(threads = 64)]
fn the_grid_waits_for_threads_that_returned(counter: Global<u32>, out: Global<u32>) {
    if thread_idx().x >= 32 { return; }
    sync_grid(counter); //~ TMA0701
    out.set(thread_idx().x, 2);
}

#[tma_kernel(threads = 64)]
fn the_grid_waits_for_lanes_that_returned(counter: Global<u32>, out: Global<u32>) {
    if lane_idx() > 0 { return; }
    sync_grid(counter); //~ TMA0701
    out.set(thread_idx().x, 2);
}

#[tma_kernel(threads = 64)]
fn the_grid_waits_for_threads_that_ended(counter: Global<u32>, out: Global<u32>) {
    if thread_idx().x < 32 {
        sync_grid(counter); //~ TMA0701
    }
    out.set(thread_idx().x, 2);
}

#[tma_kernel(threads = 64)]
fn the_grid_waits_for_a_block_that_returned(counter: Global<u32>, out: Global<u32>) {
    if block_idx().x == 1 { return; }
    sync_grid(counter); //~ TMA0701
    out.set(thread_idx().x, 2);
}

#[tma_kernel(threads = 64)]
fn the_block_waits_for_threads_that_returned(out: Global<u32>) {
    if thread_idx().x >= 32 { return; }
    sync_threads(); //~ TMA0712
    out.set(thread_idx().x, 2);
}

#[tma_kernel(threads = 32, cluster = 2)]
fn one_block_loads_its_slice(src: TensorMap<Tile<f32, Shape2<16, 32>>>, out: Global<f32>) {
    let tile: Tile<f32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 { full.init(1); fence_barrier_init(); }
    sync_cluster();
    if thread_idx().x == 0 {
        full.arrive_expect_tx(tile.bytes());
        if cluster_rank() == 0 {
            src.load_sliced(tile, [0, 0], full, ClusterAxis::All); //~ TMA0702
        }
    }
    full.wait(0);
    out.set(thread_idx().x, tile.get([0, lane_idx()]));
    sync_cluster();
}

#[tma_kernel(threads = 32)]
fn a_barrier_that_ends_before_its_copy(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>) {
    let tile: Tile<f32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, [0, 0], full);
        full.invalidate(); //~ TMA0710
    }
    sync_threads();
    out.set(thread_idx().x, 1.0);
}

#[tma_kernel(threads = 64)]
fn a_barrier_that_ends_before_others_wait(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>) {
    let tile: Tile<f32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 { full.init(1); fence_barrier_init(); }
    sync_threads();
    if thread_idx().x == 0 {
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, [0, 0], full);
    }
    full.wait(0);
    if thread_idx().x == 0 {
        full.invalidate(); //~ TMA0703
    }
    out.set(thread_idx().x, tile.get([0, lane_idx()]));
}

#[tma_kernel(threads = 64)]
fn the_first_phase_has_parity_0(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>) {
    let tile: Tile<f32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 { full.init(1); fence_barrier_init(); }
    sync_threads();
    if thread_idx().x == 0 {
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, [0, 0], full);
    }
    full.wait(1); //~ TMA0709
    out.set(thread_idx().x, tile.get([0, lane_idx()]));
}

#[tma_kernel(threads = 64)]
fn the_second_phase_has_parity_1(out: Global<u32>) {
    let met: Barrier = shared();
    if thread_idx().x == 0 { met.init(64); }
    sync_threads();
    met.arrive();
    met.wait(0);
    met.arrive();
    met.wait(0); //~ TMA0709
    out.set(thread_idx().x, 1);
}

#[tma_kernel(threads = 64)]
fn an_opposite_parity_in_each_turn(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>, tiles: u32) {
    let tile: Tile<f32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 { full.init(1); fence_barrier_init(); }
    sync_threads();
    for k in 0..tiles {
        if thread_idx().x == 0 {
            full.arrive_expect_tx(tile.bytes());
            src.load(tile, [k * 32, 0], full);
        }
        full.wait((k + 1) & 1); //~ TMA0709
        out.set(k * 64 + thread_idx().x, tile.get([0, lane_idx()]));
        fence_proxy_async();
        sync_threads();
    }
}

// The producer's parity is right: the consumer does not wait.
#[tma_kernel(threads = 64)]
fn an_opposite_parity_elsewhere(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>, tiles: u32) {
    let ring: Stages<Tile<f32, Shape2<32, 32>>, 2> = shared();
    let full: Stages<Barrier, 2> = shared();
    let empty: Stages<Barrier, 2> = shared();
    if thread_idx().x == 0 {
        for s in 0..2u32 { full[s].init(1); empty[s].init(32); }
        fence_barrier_init();
    }
    sync_threads();
    if thread_idx().x < 32 {
        for k in 0..tiles {
            full[k % 2].wait((k / 2 & 1) ^ 1); //~ TMA0709
            out.set(thread_idx().x, ring[k % 2].get([0, lane_idx()]));
            fence_proxy_async();
            empty[k % 2].arrive();
        }
    } else if thread_idx().x == 32 {
        for k in 0..tiles {
            empty[k % 2].wait((k / 2 & 1) ^ 1);
            full[k % 2].arrive_expect_tx(ring[0].bytes());
            src.load(ring[k % 2], [k * 32, 0], full[k % 2]);
        }
    }
}

#[tma_kernel(threads = 64)]
fn a_parity_that_lets_threads_race(out: Global<u32>) {
    let met: Barrier = shared();
    let row: SharedArray<u32, 64> = shared();
    if thread_idx().x == 0 { met.init(64); }
    sync_threads();
    for k in 0..4u32 {
        row.set(thread_idx().x, k); //~ TMA0704
        met.arrive();
        met.wait((k + 1) & 1);
        out.set(thread_idx().x, row.get(63 - thread_idx().x));
        sync_threads();
    }
}

/// The second store may overtake the reads of the first, whose values nothing has asked for yet.
#[tma_kernel(threads = 32)]
fn a_row_is_replaced_while_it_is_read(x: Global<u32>, out: Global<u32>) {
    let row: SharedArray<u32, 32> = shared();
    let first = block_idx().x * 32;
    row.set(lane_idx(), 1);
    fence_proxy_async();
    sync_warp();
    if lane_idx() == 0 {
        x.bulk_store(first, row, 0, 32);
        bulk_commit_group();
        bulk_wait_group::<0>();
    }
    sync_warp();
    let read = x.get(first + lane_idx());
    row.set(lane_idx(), 2);
    fence_proxy_async();
    sync_warp();
    if lane_idx() == 0 {
        x.bulk_store(first, row, 0, 32); //~ TMA0707
        bulk_commit_group();
        bulk_wait_group::<0>();
    }
    out.set(first + lane_idx(), read);
}
