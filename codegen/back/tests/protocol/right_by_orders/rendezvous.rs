//! Barriers, rings and clusters that are as unusual as possible.

/// A load is issued before another thread announces its bytes and makes the missing arrival.
#[tma_kernel(threads = 64)]
fn load_before_the_announcement(src: Global<f32>, out: Global<f32>) {
    let row: SharedArray<f32, 32> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 { full.init(2); fence_barrier_init(); }
    sync_threads();
    if thread_idx().x == 0 { src.bulk_load(row, 0, 32, 0, full); full.arrive(); }
    if thread_idx().x == 32 { full.arrive_expect_tx(128); }
    full.wait(0);
    out.set(thread_idx().x, row.get(lane_idx()));
}

/// Blocks of a cluster exit after different numbers of barriers: exited blocks are not waited for.
#[tma_kernel(threads = 32, cluster = 2)]
fn one_meets_more_often(n: u32) {
    for k in 0..n { if cluster_rank() == 0 || k % 2 == 0 { sync_cluster(); } }
}

/// One barrier per tile of the block.
#[tma_kernel(threads = 32, cluster = 2)]
fn meetings_by_tile(tiles: u32) {
    for k in (block_idx().x..tiles).step_by(grid_dim().x as usize) { sync_cluster(); }
}

/// Halves of a warp synchronise from two statements.
#[tma_kernel(threads = 32)]
fn halves_meet_from_two_places(out: Global<u32>) {
    let row: SharedArray<u32, 32> = shared();
    row.set(lane_idx(), 1);
    if lane_idx() < 16 { sync_warp(); } else { out.set(64, 1); sync_warp(); }
    out.set(lane_idx(), row.get(31 - lane_idx()));
}

/// The last block sums, by AcqRel.
#[tma_kernel(threads = 64)]
fn last_block_acq_rel(parts: Global<u32>, done: Global<u32>, total: Global<u32>) {
    let last: SharedArray<bool, 1> = shared();
    parts.set(block_idx().x * 64 + thread_idx().x, thread_idx().x);
    sync_threads();
    if thread_idx().x == 0 {
        let before = done.fetch_add(0, 1, Order::AcqRel, Scope::Device);
        last.set(0, before == grid_dim().x - 1);
    }
    sync_threads();
    if last.get(0) {
        let mut sum = 0;
        for b in 0..grid_dim().x { sum += parts.get(b * 64 + thread_idx().x); }
        total.set(thread_idx().x, sum);
    }
}

/// The last block, by AcqRel, loads the writes of another block by a copy.
#[tma_kernel(threads = 32)]
fn last_block_loads(parts: Global<u32>, done: Global<u32>, out: Global<u32>) {
    let row: SharedArray<u32, 32> = shared();
    let full: Barrier = shared();
    let last: SharedArray<bool, 1> = shared();
    if lane_idx() == 0 { full.init(1); fence_barrier_init(); }
    parts.set(block_idx().x * 32 + lane_idx(), 1);
    sync_threads();
    if lane_idx() == 0 {
        let before = done.fetch_add(0, 1, Order::AcqRel, Scope::Device);
        last.set(0, before == grid_dim().x - 1);
    }
    sync_threads();
    if last.get(0) {
        if lane_idx() == 0 {
            fence_proxy_async_global();
            full.arrive_expect_tx(128);
            parts.bulk_load(row, 0, 32, 0, full);
        }
        full.wait(0);
        out.set(lane_idx(), row.get(lane_idx()));
    }
}

/// Tickets number the blocks in the order in which they begin, and each waits for the one before.
#[tma_kernel(threads = 32)]
fn in_order_of_tickets(tickets: Global<u32>, turn: Global<u32>, log: Global<u32>) {
    if lane_idx() == 0 {
        let mine = tickets.fetch_add(0, 1, Order::Relaxed, Scope::Device);
        while turn.load(0, Order::Acquire, Scope::Device) != mine {}
        log.set(mine, block_idx().x);
        turn.store(0, mine + 1, Order::Release, Scope::Device);
    }
}

/// A decoupled look-back: partial sums and flags.
#[tma_kernel(threads = 32)]
fn look_back(tickets: Global<u32>, flags: Global<u32>, sums: Global<u32>, out: Global<u32>) {
    let place: SharedArray<u32, 1> = shared();
    if lane_idx() == 0 { place.set(0, tickets.fetch_add(0, 1, Order::Relaxed, Scope::Device)); }
    sync_warp();
    let at = place.get(0);
    let total = warp_reduce_add(lane_idx());
    if lane_idx() == 0 {
        let mut before = 0;
        if at > 0 {
            while flags.load(at - 1, Order::Acquire, Scope::Device) == 0 {}
            before = sums.get(at - 1);
        }
        sums.set(at, before + total);
        flags.store(at, 1, Order::Release, Scope::Device);
        out.set(at, before);
    }
}

/// A lock in shared memory, by compare and exchange.
#[tma_kernel(threads = 64)]
fn lock_in_shared_memory(out: Global<u32>) {
    let lock: SharedArray<u32, 1> = shared();
    let sum: SharedArray<u32, 1> = shared();
    if thread_idx().x == 0 { lock.store(0, 0, Order::Relaxed, Scope::Block); sum.set(0, 0); }
    sync_threads();
    if lane_idx() == 0 {
        while lock.compare_exchange(0, 0, 1, Order::Acquire, Scope::Block) != 0 {}
        sum.set(0, sum.get(0) + warp_idx());
        lock.store(0, 0, Order::Release, Scope::Block);
    }
    sync_threads();
    out.set(thread_idx().x, sum.get(0));
}

/// A flag that two warps advance in alternation.
#[tma_kernel(threads = 64)]
fn ping_pong_by_flags(out: Global<u32>, n: u32) {
    let flag: SharedArray<u32, 1> = shared();
    let row: SharedArray<u32, 1> = shared();
    if thread_idx().x == 0 { flag.store(0, 0, Order::Relaxed, Scope::Block); row.set(0, 0); }
    sync_threads();
    if lane_idx() == 0 {
        for k in 0..n {
            while flag.load(0, Order::Acquire, Scope::Block) != 2 * k + warp_idx() {}
            row.set(0, row.get(0) + 1);
            flag.store(0, 2 * k + warp_idx() + 1, Order::Release, Scope::Block);
        }
    }
}

/// A histogram in shared memory, added to global memory.
#[tma_kernel(threads = 128)]
fn histogram(values: Global<u32>, bins: Global<u32>, n: u32) {
    let local: SharedArray<u32, 128> = shared();
    local.set(thread_idx().x, 0);
    sync_threads();
    for i in (thread_idx().x..n).step_by(128) { local.fetch_add(values.get(i) % 128, 1, Order::Relaxed, Scope::Block); }
    sync_threads();
    bins.atomic_add(thread_idx().x, local.get(thread_idx().x));
}

/// A compaction: indices by a shared counter.
#[tma_kernel(threads = 128)]
fn compaction(values: Global<u32>, out: Global<u32>, len: Global<u32>) {
    let count: SharedArray<u32, 1> = shared();
    let kept: SharedArray<u32, 128> = shared();
    if thread_idx().x == 0 { count.store(0, 0, Order::Relaxed, Scope::Block); }
    kept.set(thread_idx().x, 0);
    sync_threads();
    let value = values.get(block_idx().x * 128 + thread_idx().x);
    if value > 0 { let at = count.fetch_add(0, 1, Order::Relaxed, Scope::Block); kept.set(at, value); }
    sync_threads();
    if thread_idx().x < count.get(0) { out.set(block_idx().x * 128 + thread_idx().x, kept.get(thread_idx().x)); }
    if thread_idx().x == 0 { len.set(block_idx().x, count.get(0)); }
}

/// A compaction by ballots.
#[tma_kernel(threads = 32)]
fn compaction_by_ballot(values: Global<u32>, out: Global<u32>) {
    let kept: SharedArray<u32, 32> = shared();
    kept.set(lane_idx(), 0);
    sync_warp();
    let value = values.get(lane_idx());
    let all = ballot(value > 0);
    let at = (all & ((1 << lane_idx()) - 1)).count_ones();
    if value > 0 { kept.set(at, value); }
    sync_warp();
    out.set(lane_idx(), kept.get(lane_idx()));
}

/// A tree of mbarriers: pairs of warps, then pairs of pairs.
#[tma_kernel(threads = 128)]
fn tree(out: Global<u32>) {
    let pair: Stages<Barrier, 2> = shared();
    let all: Barrier = shared();
    let row: SharedArray<u32, 128> = shared();
    if thread_idx().x == 0 { pair[0].init(64); pair[1].init(64); all.init(2); }
    sync_threads();
    row.set(thread_idx().x, 1);
    pair[warp_idx() / 2].arrive();
    if thread_idx().x % 64 == 0 { pair[warp_idx() / 2].wait(0); all.arrive(); }
    all.wait(0);
    out.set(thread_idx().x, row.get(127 - thread_idx().x));
}

/// A barrier is invalidated, initialised with another count, and used again.
#[tma_kernel(threads = 64)]
fn used_again(out: Global<u32>) {
    let met: Barrier = shared();
    let row: SharedArray<u32, 64> = shared();
    if thread_idx().x == 0 { met.init(64); }
    sync_threads();
    row.set(thread_idx().x, 1);
    met.arrive();
    met.wait(0);
    out.set(thread_idx().x, row.get(63 - thread_idx().x));
    sync_threads();
    if thread_idx().x == 0 { met.invalidate(); met.init(32); }
    sync_threads();
    if warp_idx() == 0 { row.set(lane_idx(), 2); met.arrive(); }
    met.wait(0);
    out.set(thread_idx().x, row.get(lane_idx()));
}

/// Tokens: arrives now, works, waits later.
#[tma_kernel(threads = 64)]
fn arrives_works_waits(out: Global<u32>, n: u32) {
    let met: Barrier = shared();
    let row: Stages<SharedArray<u32, 64>, 2> = shared();
    if thread_idx().x == 0 { met.init(64); }
    sync_threads();
    for k in 0..n {
        row[k % 2].set(thread_idx().x, k);
        let token = met.arrive_token();
        out.set(1000 + thread_idx().x, k);
        met.wait_token(token);
        out.set(thread_idx().x, row[k % 2].get(63 - thread_idx().x));
    }
}

/// A warp drops out of the barrier in its first phase.
#[tma_kernel(threads = 64)]
fn one_drops_out(out: Global<u32>) {
    let met: Barrier = shared();
    if thread_idx().x == 0 { met.init(64); }
    sync_threads();
    if warp_idx() == 1 { met.arrive_drop(); return; }
    for k in 0..5 { met.arrive(); met.wait(k % 2); }
}

/// Parity by the sign of an alternating number.
#[tma_kernel(threads = 32)]
fn parity_by_sign(n: u32) {
    let met: Barrier = shared();
    if lane_idx() == 0 { met.init(32); }
    sync_warp();
    let mut sign = 1i32;
    for k in 0..n {
        met.arrive();
        met.wait(if sign > 0 { 0 } else { 1 });
        sign = -sign;
    }
}

/// Stages backwards, by a remainder computed by hand, and phases by xor.
#[tma_kernel(threads = 64)]
fn backwards(src: TensorMap<Tile<f32, Shape2<8, 32>>>, out: Global<f32>, n: u32) {
    let tile: Stages<Tile<f32, Shape2<8, 32>>, 3> = shared();
    let full: Stages<Barrier, 3> = shared();
    let empty: Stages<Barrier, 3> = shared();
    if thread_idx().x == 0 { for s in 0..3 { full[s].init(1); empty[s].init(32); } fence_barrier_init(); }
    sync_threads();
    if thread_idx().x == 0 {
        let mut stage = 2;
        let mut parity = 1;
        let mut k = n;
        while k > 0 {
            k -= 1;
            empty[stage].wait(parity);
            full[stage].arrive_expect_tx(tile[0].bytes());
            src.load(tile[stage], [k * 8, 0], full[stage]);
            if stage == 0 { stage = 2; parity ^= 1; } else { stage -= 1; }
        }
    }
    if warp_idx() == 1 {
        for k in 0..n {
            let stage = 2 - k % 3;
            full[stage].wait(k / 3 & 1);
            out.set(k, tile[stage].get([0, lane_idx()]));
            fence_proxy_async();
            empty[stage].arrive();
        }
    }
}

/// The elected lane passes its index on through shared memory, without a shuffle.
#[tma_kernel(threads = 32)]
fn elected_tells_its_number(out: Global<u32>) {
    let who: SharedArray<u32, 1> = shared();
    if elect_one() { who.set(0, lane_idx()); }
    sync_warp();
    if lane_idx() == who.get(0) { out.set(0, 1); }
}

/// An elected lane stores, and an elected lane waits, twice.
#[tma_kernel(threads = 64)]
fn elected_stores_twice(dst: Global<u32>) {
    let row: Stages<SharedArray<u32, 32>, 2> = shared();
    for k in 0..2 {
        row[warp_idx()].set(lane_idx(), k);
        fence_proxy_async();
        sync_warp();
        if elect_one() { dst.bulk_store((warp_idx() * 2 + k) * 32, row[warp_idx()], 0, 32); bulk_commit_group(); }
        if elect_one() { bulk_wait_group_read::<0>(); }
        sync_warp();
    }
}
