//! More kernels with barriers, warps and copies.

/// The block index instead of the rank.
#[tma_kernel(threads = 32, cluster = 2)]
fn rank_by_block_number(out: Global<u32>) {
    let row: SharedArray<u32, 32> = shared();
    let full: Barrier = shared();
    if lane_idx() == 0 { full.init(32); }
    sync_cluster();
    if block_idx().x % 2 == 0 { remote(row, 1).set(lane_idx(), 1); remote(full, 1).arrive(); }
    else { full.wait(0); out.set(lane_idx(), row.get(31 - lane_idx())); }
    sync_cluster();
}

/// All block indices are below the size of the grid.
#[tma_kernel(threads = 64)]
fn never_beyond_the_grid(out: Global<u32>) {
    let met: Barrier = shared();
    if thread_idx().x == 0 { met.init(64); }
    sync_threads();
    if block_idx().x < grid_dim().x { met.arrive(); }
    met.wait(0);
}

/// The cluster index and the rank make the block index.
#[tma_kernel(threads = 32, cluster = 2)]
fn number_from_parts(out: Global<u32>) {
    let met: Barrier = shared();
    if lane_idx() == 0 { met.init(32); }
    sync_warp();
    if cluster_idx().x * 2 + cluster_rank() == block_idx().x { met.arrive(); }
    met.wait(0);
}

/// A token through all blocks of a cluster, in a ring of remote barriers.
#[tma_kernel(threads = 32, cluster = 4)]
fn token_ring(out: Global<u32>, n: u32) {
    let full: Barrier = shared();
    let value: SharedArray<u32, 1> = shared();
    if lane_idx() == 0 { full.init(1); fence_barrier_init(); }
    sync_cluster();
    if lane_idx() == 0 {
        let next = (cluster_rank() + 1) % 4;
        for k in 0..n {
            if cluster_rank() > 0 || k > 0 { full.wait((if cluster_rank() == 0 { k - 1 } else { k }) % 2); }
            if cluster_rank() != 3 || k + 1 < n {
                remote(value, next).set(0, k);
                remote(full, next).arrive();
            }
        }
    }
    sync_cluster();
}

/// Each block announces bytes at the other's barrier, and copies them there.
#[tma_kernel(threads = 32, cluster = 2)]
fn announces_for_the_other(out: Global<u32>) {
    let mine: SharedArray<u32, 32> = shared();
    let given: SharedArray<u32, 32> = shared();
    let full: Barrier = shared();
    if lane_idx() == 0 { full.init(1); fence_barrier_init(); }
    mine.set(lane_idx(), 1);
    fence_proxy_async();
    sync_cluster();
    if lane_idx() == 0 {
        remote(full, 1 - cluster_rank()).arrive_expect_tx(128);
        mine.bulk_copy_to(remote(given, 1 - cluster_rank()), 0, 32, remote(full, 1 - cluster_rank()));
    }
    full.wait(0);
    out.set(lane_idx(), given.get(lane_idx()));
    sync_cluster();
}

/// The halves of the cluster's barrier in a loop, with work between them.
#[tma_kernel(threads = 32, cluster = 2)]
fn halves_in_a_loop(out: Global<u32>, n: u32) {
    let row: Stages<SharedArray<u32, 32>, 2> = shared();
    sync_cluster();
    for k in 0..n {
        remote(row[k % 2], 1 - cluster_rank()).set(lane_idx(), k);
        cluster_arrive();
        out.set(100 + lane_idx(), k);
        cluster_wait();
        out.set(lane_idx(), row[k % 2].get(lane_idx()));
    }
    sync_cluster();
}

/// All blocks write, synchronise as a grid, and read others' values.
#[tma_kernel(threads = 32)]
fn grid_exchange(g: Global<u32>, counter: Global<u32>, out: Global<u32>, n: u32) {
    for k in 0..n {
        g.set(block_idx().x * 32 + lane_idx(), k);
        sync_grid(counter);
        out.set(block_idx().x * 32 + lane_idx(), g.get((block_idx().x + 1) % grid_dim().x * 32 + lane_idx()));
        sync_grid(counter);
    }
}

/// After a barrier of the grid, a copy loads the writes of other blocks, after a fence.
#[tma_kernel(threads = 32)]
fn grid_then_copy(g: Global<f32>, counter: Global<u32>, out: Global<f32>) {
    let row: SharedArray<f32, 32> = shared();
    let full: Barrier = shared();
    if lane_idx() == 0 { full.init(1); fence_barrier_init(); }
    g.set(block_idx().x * 32 + lane_idx(), 1.0);
    fence_proxy_async_global();
    sync_grid(counter);
    if lane_idx() == 0 {
        fence_proxy_async_global();
        full.arrive_expect_tx(128);
        g.bulk_load(row, 0, 32, (grid_dim().x - 1 - block_idx().x) * 32, full);
    }
    full.wait(0);
    out.set(block_idx().x * 32 + lane_idx(), row.get(lane_idx()));
}

/// Stored by a copy, complete, and read by all after a barrier.
#[tma_kernel(threads = 64)]
fn stored_and_read(g: Global<f32>, out: Global<f32>) {
    let row: SharedArray<f32, 64> = shared();
    row.set(thread_idx().x, 1.0);
    fence_proxy_async();
    sync_threads();
    if thread_idx().x == 0 { g.bulk_store(block_idx().x * 64, row, 0, 64); bulk_commit_group(); bulk_wait_group::<0>(); }
    sync_threads();
    out.set(block_idx().x * 64 + thread_idx().x, g.get(block_idx().x * 64 + 63 - thread_idx().x));
}

/// Odd and even elements by two warps, at the same time.
#[tma_kernel(threads = 64)]
fn odd_and_even(out: Global<u32>) {
    let row: SharedArray<u32, 64> = shared();
    row.set(lane_idx() * 2 + warp_idx(), 1);
    sync_warp();
    out.set(thread_idx().x, row.get((31 - lane_idx()) * 2 + warp_idx()));
}

/// Columns of a tile by lanes, rows by warps, with a swizzle.
#[tma_kernel(threads = 128)]
fn swizzled_rows(out: Global<f32>) {
    let tile: Tile<f32, Shape2<32, 32>, Swizzle128> = shared();
    for r in 0..8 { tile.set([warp_idx() * 8 + r, lane_idx()], 1.0); }
    sync_warp();
    for r in 0..8 { out.set(thread_idx().x, tile.get([warp_idx() * 8 + r, 31 - lane_idx()])); }
}

/// Vectors written, scalars read.
#[tma_kernel(threads = 32)]
fn vectors_and_scalars(out: Global<f32>) {
    let row: SharedArray<f32, 128> = shared();
    row.set_vec(lane_idx() * 4, [0.0, 1.0, 2.0, 3.0]);
    sync_warp();
    out.set(lane_idx(), row.get(lane_idx()));
}

/// Tickets and the end of the queue pass through two rings.
#[tma_kernel(threads = 96)]
fn work_by_queue_in_two_rings(queue: Global<u32>, out: Global<u32>, n: u32) {
    let a: Stages<SharedArray<u32, 1>, 2> = shared();
    let b: Stages<SharedArray<u32, 1>, 3> = shared();
    let af: Stages<Barrier, 2> = shared();
    let ae: Stages<Barrier, 2> = shared();
    let bf: Stages<Barrier, 3> = shared();
    let be: Stages<Barrier, 3> = shared();
    if thread_idx().x == 0 {
        for s in 0..2 { af[s].init(1); ae[s].init(1); }
        for s in 0..3 { bf[s].init(1); be[s].init(1); }
    }
    sync_threads();
    if thread_idx().x == 0 {
        let mut k = 0;
        loop {
            let at = queue.atomic_add(0, 1);
            ae[k % 2].wait(k / 2 % 2 ^ 1);
            a[k % 2].set(0, at);
            af[k % 2].arrive();
            if at >= n { break; }
            k += 1;
        }
    }
    if thread_idx().x == 32 {
        let mut k = 0;
        loop {
            af[k % 2].wait(k / 2 % 2);
            let at = a[k % 2].get(0);
            ae[k % 2].arrive();
            be[k % 3].wait(k / 3 % 2 ^ 1);
            b[k % 3].set(0, at);
            bf[k % 3].arrive();
            if at >= n { break; }
            k += 1;
        }
    }
    if thread_idx().x == 64 {
        let mut k = 0;
        loop {
            bf[k % 3].wait(k / 3 % 2);
            let at = b[k % 3].get(0);
            be[k % 3].arrive();
            if at >= n { break; }
            out.set(at, 1);
            k += 1;
        }
    }
}

/// Lanes alternate: each in its own iteration, with a barrier of the warp in each.
#[tma_kernel(threads = 32)]
fn lanes_in_turns(out: Global<u32>) {
    let sum: SharedArray<u32, 1> = shared();
    if lane_idx() == 0 { sum.set(0, 0); }
    sync_warp();
    for who in 0..32 {
        if who == lane_idx() { sum.set(0, sum.get(0) + who); }
        sync_warp();
    }
    out.set(lane_idx(), sum.get(0));
}

/// A named barrier with other warps in each round, ordered by a barrier of all.
#[tma_kernel(threads = 128)]
fn number_used_by_pairs_in_turns(out: Global<u32>) {
    for pair in 0..2 {
        if warp_idx() / 2 == pair { named_barrier_sync(1, 64); }
        sync_threads();
    }
}

/// Half of a warp exits, and the remaining lanes synchronise.
#[tma_kernel(threads = 32)]
fn half_a_warp_ends(out: Global<u32>) {
    let row: SharedArray<u32, 16> = shared();
    if lane_idx() >= 16 { return; }
    row.set(lane_idx(), 1);
    sync_warp();
    out.set(lane_idx(), row.get(15 - lane_idx()));
}

/// Registers passed on in a chain.
#[tma_kernel(threads = 384, max_registers = 168)]
fn registers_in_a_chain() {
    if warpgroup_idx() == 0 { setmaxnreg_dec::<24>(); named_barrier_arrive(1, 256); }
    else if warpgroup_idx() == 1 { named_barrier_sync(1, 256); setmaxnreg_inc::<240>(); }
    else { setmaxnreg_inc::<232>(); }
}

/// A message in a single strong access: data and flag are one word.
#[tma_kernel(threads = 64)]
fn data_in_the_flag(out: Global<u32>) {
    let word: SharedArray<u32, 1> = shared();
    if thread_idx().x == 0 { word.store(0, 0, Order::Relaxed, Scope::Block); }
    sync_threads();
    if thread_idx().x == 0 { word.store(0, 42, Order::Relaxed, Scope::Block); }
    if thread_idx().x == 32 {
        let mut seen = 0;
        while seen == 0 { seen = word.load(0, Order::Relaxed, Scope::Block); }
        out.set(0, seen);
    }
}

/// Release by a fence, acquire by a fence, in global memory between warps of a block.
#[tma_kernel(threads = 64)]
fn by_fences(data: Global<u32>, flag: Global<u32>, out: Global<u32>) {
    if thread_idx().x == 0 {
        data.set(block_idx().x, 1);
        fence();
        flag.store(block_idx().x, 1, Order::Relaxed, Scope::Device);
    }
    if thread_idx().x == 32 {
        while flag.load(block_idx().x, Order::Relaxed, Scope::Device) == 0 {}
        fence();
        out.set(block_idx().x, data.get(block_idx().x));
    }
}

/// Polls while it counts the attempts.
#[tma_kernel(threads = 64)]
fn works_while_it_waits(out: Global<u32>) {
    let met: Barrier = shared();
    let row: SharedArray<u32, 32> = shared();
    if thread_idx().x == 0 { met.init(32); }
    sync_threads();
    if warp_idx() == 0 { row.set(lane_idx(), 1); met.arrive(); }
    else {
        let mut tries = 0;
        while !met.try_wait(0) { tries += 1; }
        out.set(lane_idx(), row.get(lane_idx()) + tries);
    }
}

/// Two mbarriers in opposite directions, without a cycle.
#[tma_kernel(threads = 64)]
fn crossed_without_a_circle(out: Global<u32>) {
    let a: Barrier = shared();
    let b: Barrier = shared();
    if thread_idx().x == 0 { a.init(32); b.init(32); }
    sync_threads();
    if warp_idx() == 0 { a.arrive(); b.wait(0); } else { b.arrive(); a.wait(0); }
}

/// Bytes are announced in parts by several threads, each before its arrival.
#[tma_kernel(threads = 32)]
fn announced_in_parts(src: Global<f32>, out: Global<f32>) {
    let row: SharedArray<f32, 128> = shared();
    let full: Barrier = shared();
    if lane_idx() == 0 { full.init(4); fence_barrier_init(); }
    sync_warp();
    if lane_idx() < 4 {
        full.arrive_expect_tx(128);
        src.bulk_load(row, lane_idx() * 32, 32, lane_idx() * 32, full);
    }
    full.wait(0);
    out.set(lane_idx(), row.get(lane_idx() * 4));
}

/// A flag of the launch leaves out the exchange in all blocks of a cluster.
#[tma_kernel(threads = 32, cluster = launch)]
fn exchange_if_told(out: Global<u32>, exchange: bool) {
    let row: SharedArray<u32, 32> = shared();
    row.set(lane_idx(), cluster_rank());
    if exchange {
        sync_cluster();
        out.set(lane_idx(), remote(row, cluster_dim().x - 1 - cluster_rank()).get(lane_idx()));
        sync_cluster();
    }
}

/// One block reads a flag from memory, and passes it to the other one.
#[tma_kernel(threads = 32, cluster = 2)]
fn told_to_the_other(data: Global<u32>, out: Global<u32>) {
    let told: SharedArray<u32, 1> = shared();
    let met: Barrier = shared();
    if lane_idx() == 0 { met.init(1); fence_barrier_init(); }
    sync_cluster();
    if cluster_rank() == 0 { if lane_idx() == 0 { let f = data.get(cluster_idx().x); told.set(0, f); remote(told, 1).set(0, f); } }
    sync_cluster();
    if told.get(0) > 5 {
        if lane_idx() == 0 { remote(met, 1 - cluster_rank()).arrive(); }
        met.wait(0);
    }
    sync_cluster();
}
