//! Kernels that an attack on the checker found to be proved.

/// The store of the second iteration need not be complete.
#[tma_kernel(threads = 32)]
fn box_loaded_after_a_loop_of_stores(map: TensorMap<Tile<f32, Shape2<8, 32>>>) {
    let tile: Stages<Tile<f32, Shape2<8, 32>>, 2> = shared();
    let full: Barrier = shared();
    for r in 0..8 { tile[0].set([r, lane_idx()], 1.0); }
    fence_proxy_async();
    sync_warp();
    if lane_idx() == 0 {
        full.init(1);
        fence_barrier_init();
        for k in 0..2 { map.store([k * 8, 0], tile[0]); bulk_commit_group(); bulk_wait_group_read::<0>(); }
        full.arrive_expect_tx(1024);
        map.load(tile[1], [8, 0], full);
        full.wait(0);
    }
}

/// The load that completes on the first barrier may still read.
#[tma_kernel(threads = 32)]
fn only_the_last_of_two_loads_is_waited_for(g: Global<f32>) {
    let rows: Stages<SharedArray<f32, 32>, 2> = shared();
    let full: Stages<Barrier, 2> = shared();
    if lane_idx() == 0 {
        full[0].init(1);
        full[1].init(1);
        fence_barrier_init();
        for k in 0..2 { full[k].arrive_expect_tx(128); g.bulk_load(rows[k], 0, 32, 0, full[k]); }
        full[1].wait(0);
        g.set(0, 5.0);
        full[0].wait(0);
    }
}

#[tma_kernel(threads = 32)]
fn two_stores_of_a_thread_to_the_same_elements(dst: Global<f32>) {
    let rows: Stages<SharedArray<f32, 32>, 2> = shared();
    rows[0].set(lane_idx(), 0.0);
    rows[1].set(lane_idx(), 1.0);
    fence_proxy_async();
    sync_warp();
    if lane_idx() == 0 {
        dst.bulk_store(0, rows[0], 0, 32);
        dst.bulk_store(0, rows[1], 0, 32);
        bulk_commit_group();
        bulk_wait_group::<0>();
    }
}

/// No proxy fence separates the two.
#[tma_kernel(threads = 32)]
fn loaded_what_accumulators_stored(g: Global<f32>) {
    let row: SharedArray<f32, 32> = shared();
    let full: Barrier = shared();
    let to = g.matrix(0, [16, 8], 8);
    let sum = WarpAccumulator::<f32, 16, 8>::zero();
    sum.store_to(to, [0, 0]);
    sync_warp();
    if lane_idx() == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(128);
        g.bulk_load(row, 0, 32, 0, full);
        full.wait(0);
    }
}

/// Warps may elect neighbouring lanes.
#[tma_kernel(threads = 64)]
fn places_of_elected_lanes() {
    let row: SharedArray<u32, 32> = shared();
    if warp_idx() == 0 { if elect_one() { row.set(lane_idx(), 1); } }
    if warp_idx() == 1 { if elect_one() { row.set((lane_idx() + 1) % 32, 1); } }
}

/// Blocks may elect other lanes.
#[tma_kernel(threads = 32, cluster = 2)]
fn elected_lanes_of_two_blocks() {
    let met: Stages<Barrier, 2> = shared();
    if lane_idx() == 0 { met[0].init(1); met[1].init(1); fence_barrier_init(); }
    sync_cluster();
    if cluster_rank() == 0 { if elect_one() { remote(met[lane_idx() % 2], 1).arrive(); } }
    if cluster_rank() == 1 { if elect_one() { met[lane_idx() % 2].wait(0); } }
    sync_cluster();
}

/// The halves of a warp reach one statement in different iterations.
#[tma_kernel(threads = 32)]
fn sync_threads_in_two_turns() {
    for turn in 0..2u32 { if turn == lane_idx() / 16 { sync_threads(); } }
}

#[tma_kernel(threads = 64)]
fn warps_at_two_sync_threads() {
    if warp_idx() == 0 { sync_threads(); } else { sync_threads(); }
}

#[tma_kernel(threads = 32, cluster = 2)]
fn two_arrivals_at_the_clusters_barrier() {
    cluster_arrive();
    sync_cluster();
}

/// The other block need not have started.
#[tma_kernel(threads = 32, cluster = 2)]
fn written_before_the_block_has_started() {
    let row: SharedArray<u32, 32> = shared();
    if cluster_rank() == 0 { remote(row, 1).set(lane_idx(), 1); }
    sync_cluster();
}

/// Number 0 is that of `sync_threads`.
#[tma_kernel(threads = 96, unchecked)]
fn named_barrier_zero() {
    if warp_idx() < 2 { named_barrier_sync(warp_idx() / 2, 64); }
    sync_threads();
}

/// The second warp waits forever.
#[tma_kernel(threads = 64)]
fn a_lock_that_nobody_gives_back() {
    let lock: SharedArray<u32, 1> = shared();
    if thread_idx().x == 0 { lock.store(0, 0, Order::Relaxed, Scope::Block); }
    sync_threads();
    if lane_idx() == 0 { while lock.swap(0, 1, Order::Relaxed, Scope::Block) != 0 {} }
    sync_threads();
}

/// No thread sets the flag.
#[tma_kernel(threads = 64)]
fn one_thread_asks_for_all(flags: Global<u32>) {
    let told: SharedArray<u32, 1> = shared();
    loop {
        if thread_idx().x == 0 { told.set(0, flags.load(0, Order::Relaxed, Scope::Device)); }
        sync_threads();
        let now = told.get(0);
        sync_threads();
        if now != 0 { break; }
    }
}

#[tma_kernel(threads = 32)]
fn a_plain_poll_that_writes(flag: Global<u32>, out: Global<u32>) {
    while flag.get(0) == 0 { out.set(0, 1); }
}

#[tma_kernel(threads = 32)]
fn a_map_in_memory_that_is_not_acquired(maps: Maps<Tile<f32, Shape2<8, 32>>>) {
    let tile: Tile<f32, Shape2<8, 32>> = shared();
    let full: Barrier = shared();
    if lane_idx() == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(1024);
        maps.at(0).load(tile, [0, 0], full);
        full.wait(0);
    }
}

/// Thread 128 is -128 as an `i8`, and -4 is not -3.
#[tma_kernel(threads = 256)]
fn a_quotient_that_parts_a_warp(out: Global<u32>) {
    if thread_idx().x as i8 / 32 == -3 { if elect_one() { out.set(0, 1); } }
    sync_threads();
}

/// Lanes may read different values.
#[tma_kernel(threads = 64)]
fn a_plain_read_that_parts_a_warp(flag: Global<u32>, out: Global<u32>) {
    let mut r = lane_idx();
    if flag.get(0) == 1 { r = shuffle_xor(r, 1); }
    out.set(thread_idx().x, r);
    flag.set(0, 1);
}

#[tma_kernel(threads = 32, cluster = 2)]
fn a_scope_of_one_block_for_two() {
    let count: SharedArray<u32, 32> = shared();
    count.store(lane_idx(), 0, Order::Relaxed, Scope::Cluster);
    sync_cluster();
    remote(count, 0).fetch_add(lane_idx(), 1, Order::Relaxed, Scope::Block);
    sync_cluster();
}

#[tma_kernel(threads = 32)]
fn the_grids_counter_is_counted_on(counter: Global<u32>) {
    counter.atomic_add(0, 1);
    sync_grid(counter);
}

/// A parity is 0 or 1.
#[tma_kernel(threads = 32)]
fn a_parity_beyond_one(n: u32) {
    let met: Barrier = shared();
    if lane_idx() == 0 {
        met.init(1);
        for k in 0..n { met.arrive(); met.wait(k); }
    }
}

/// Before thread 0 traps, the others may race.
#[tma_kernel(threads = 64)]
fn a_race_before_a_trap(out: Global<u32>, n: u32) {
    let row: SharedArray<u32, 64> = shared();
    if n == 4 {
        if thread_idx().x == 0 { trap(); }
        row.set(thread_idx().x, 1);
        out.set(thread_idx().x, row.get(63 - thread_idx().x));
    }
}

/// Half of each vector is the neighbour's element.
#[tma_kernel(threads = 64)]
fn a_vector_over_the_neighbours_element(g: Global<u32>, out: Global<u32>) {
    let at = block_idx().x * 64 + thread_idx().x;
    g.set(at, 7);
    if thread_idx().x % 2 == 0 { let both = g.get_vec::<2>(at); out.set(at, both[0] + both[1]); }
}

/// All blocks update one element, without an atomic operation.
#[tma_kernel(threads = 32)]
fn a_total_of_all_blocks(total: Global<u32>, values: Global<u32>) {
    if thread_idx().x == 0 { total.set(0, total.get(0) + values.get(block_idx().x)); }
}

/// One lane of each warp, instead of one thread of the block.
#[tma_kernel(threads = 64)]
fn a_lane_for_a_thread(total: Global<u32>, values: Global<u32>) {
    let part = warp_reduce_add(values.get(block_idx().x * 64 + thread_idx().x));
    if lane_idx() == 0 { total.set(block_idx().x, total.get(block_idx().x) + part); }
}

/// The warps update the same elements in different iterations, which nothing orders.
#[tma_kernel(threads = 64)]
fn warps_in_turns(g: Global<u32>) {
    let at = block_idx().x * 32 + lane_idx();
    for k in 0..2u32 { if warp_idx() == k { g.set(at, g.get(at) * 2 + k); } }
}

/// Other blocks may still add to the element that is read.
#[tma_kernel(threads = 32)]
fn a_sum_of_copies_that_is_read(sums: Global<u32>, out: Global<u32>) {
    let row: SharedArray<u32, 32> = shared();
    row.set(thread_idx().x, 1);
    fence_proxy_async();
    sync_threads();
    if thread_idx().x == 0 { sums.bulk_reduce_add(0, row, 0, 32); bulk_commit_group(); bulk_wait_group::<0>(); }
    sync_threads();
    out.set(block_idx().x * 32 + thread_idx().x, sums.get(0));
}

/// The store has only read its tile before the grid's barrier, and need not be complete.
#[tma_kernel(threads = 32)]
fn a_store_that_is_only_read(map: TensorMap<Tile<u32, Shape2<8, 32>>>, counter: Global<u32>, out: Global<u32>) {
    let from: Tile<u32, Shape2<8, 32>> = shared();
    let to: Tile<u32, Shape2<8, 32>> = shared();
    let full: Barrier = shared();
    for row in 0..8 { from.set([row, lane_idx()], row); }
    fence_proxy_async();
    if lane_idx() == 0 { full.init(1); fence_barrier_init(); }
    sync_threads();
    if lane_idx() == 0 { map.store([block_idx().x * 8, 0], from); bulk_commit_group(); bulk_wait_group_read::<0>(); }
    sync_grid(counter);
    if lane_idx() == 0 {
        full.arrive_expect_tx(to.bytes());
        map.load(to, [(block_idx().x + 1) % grid_dim().x * 8, 0], full);
    }
    full.wait(0);
    out.set(block_idx().x * 32 + lane_idx(), to.get([0, lane_idx()]));
}

/// A warp distributes the tile over its lanes in another way than its warpgroup.
#[tma_kernel(threads = 128)]
fn a_warp_over_its_warpgroup(out: Global<f32>) {
    let tile: Tile<f32, Shape2<64, 32>> = shared();
    let wide = Accumulator::<f32, 64, 32>::zero();
    wide.store(tile);
    if warp_idx() == 0 { let narrow = WarpAccumulator::<f32, 64, 32>::zero(); narrow.store(tile, [0, 0]); }
    sync_threads();
    out.set(block_idx().x * 128 + thread_idx().x, tile.get([thread_idx().x % 64, 0]));
}

/// The owner's scope does not include the other block.
#[tma_kernel(threads = 32, cluster = 2)]
fn a_scope_of_the_owner(out: Global<u32>) {
    let count: SharedArray<u32, 1> = shared();
    if lane_idx() == 0 { count.store(0, 0, Order::Relaxed, Scope::Cluster); }
    sync_cluster();
    if cluster_rank() == 0 {
        count.fetch_add(0, 1, Order::Relaxed, Scope::Block);
    } else {
        remote(count, 0).fetch_add(0, 1, Order::Relaxed, Scope::Cluster);
    }
    sync_cluster();
    if lane_idx() == 0 { out.set(block_idx().x, count.load(0, Order::Relaxed, Scope::Block)); }
}

/// The loop runs past the first array.
#[tma_kernel(threads = 64, unchecked)]
fn a_loop_past_an_array(out: Global<u32>) {
    let few: SharedArray<u32, 4> = shared();
    let more: SharedArray<u32, 64> = shared();
    more.set(thread_idx().x, 1);
    if thread_idx().x == 0 { for i in 0..8 { few.set(i, 2); } }
    sync_threads();
    out.set(block_idx().x * 64 + thread_idx().x, more.get(thread_idx().x));
}
