//! Flags, fences and the accesses that they order, with orders and scopes.

/// Bytes are announced before a release, and the only arrival comes after the acquire.
#[tma_kernel(threads = 64)]
fn arrival_behind_an_acquire(src: Global<f32>, out: Global<f32>) {
    let row: SharedArray<f32, 32> = shared();
    let full: Barrier = shared();
    let flag: SharedArray<u32, 1> = shared();
    if thread_idx().x == 0 { full.init(1); fence_barrier_init(); flag.store(0, 0, Order::Relaxed, Scope::Block); }
    sync_threads();
    if thread_idx().x == 0 {
        full.expect_tx(128);
        src.bulk_load(row, 0, 32, 0, full);
        flag.store(0, 1, Order::Release, Scope::Block);
    }
    if thread_idx().x == 32 {
        while flag.load(0, Order::Acquire, Scope::Block) == 0 {}
        full.arrive();
    }
    full.wait(0);
    out.set(thread_idx().x, row.get(lane_idx()));
}

/// An mbarrier is made visible by release and acquire.
#[tma_kernel(threads = 64)]
fn mbarrier_by_a_flag(out: Global<u32>) {
    let met: Barrier = shared();
    let flag: SharedArray<u32, 1> = shared();
    if thread_idx().x == 0 { flag.store(0, 0, Order::Relaxed, Scope::Block); }
    sync_threads();
    if thread_idx().x == 0 { met.init(1); flag.store(0, 1, Order::Release, Scope::Block); met.wait(0); }
    if thread_idx().x == 32 { while flag.load(0, Order::Acquire, Scope::Block) == 0 {} met.arrive(); }
}

/// Invalidated when a flag says that the other thread has returned from its wait.
#[tma_kernel(threads = 64)]
fn invalidated_behind_an_acquire() {
    let met: Barrier = shared();
    let flag: SharedArray<u32, 1> = shared();
    if thread_idx().x == 0 { met.init(2); flag.store(0, 0, Order::Relaxed, Scope::Block); }
    sync_threads();
    if thread_idx().x == 32 { met.arrive(); met.wait(0); flag.store(0, 1, Order::Release, Scope::Block); }
    if thread_idx().x == 0 {
        met.arrive();
        met.wait(0);
        while flag.load(0, Order::Acquire, Scope::Block) == 0 {}
        met.invalidate();
    }
}

/// The next phase is completed when a flag says that the other thread has seen this one.
#[tma_kernel(threads = 64)]
fn next_phase_behind_an_acquire() {
    let met: Barrier = shared();
    let flag: SharedArray<u32, 1> = shared();
    if thread_idx().x == 0 { met.init(1); flag.store(0, 0, Order::Relaxed, Scope::Block); }
    sync_threads();
    if thread_idx().x == 32 { met.wait(0); flag.store(0, 1, Order::Release, Scope::Block); met.wait(1); }
    if thread_idx().x == 0 {
        met.arrive();
        while flag.load(0, Order::Acquire, Scope::Block) == 0 {}
        met.arrive();
    }
}

/// A remote write is complete when its flag is acquired; then block 1 ends.
#[tma_kernel(threads = 32, cluster = 2)]
fn ends_behind_an_acquire(flags: Global<u32>, out: Global<u32>) {
    let row: SharedArray<u32, 32> = shared();
    sync_cluster();
    if cluster_rank() == 0 {
        remote(row, 1).set(lane_idx(), lane_idx());
        sync_warp();
        if lane_idx() == 0 { flags.store(cluster_idx().x, 1, Order::Release, Scope::Cluster); }
    } else {
        while flags.load(cluster_idx().x, Order::Acquire, Scope::Cluster) == 0 {}
        out.set(lane_idx(), row.get(31 - lane_idx()));
    }
}

/// The proxy fence after the acquire, before the store.
#[tma_kernel(threads = 64)]
fn stored_behind_an_acquire(dst: Global<u32>) {
    let row: SharedArray<u32, 32> = shared();
    let flag: SharedArray<u32, 1> = shared();
    if thread_idx().x == 0 { flag.store(0, 0, Order::Relaxed, Scope::Block); }
    sync_threads();
    if warp_idx() == 0 {
        row.set(lane_idx(), 1);
        sync_warp();
        if lane_idx() == 0 { flag.store(0, 1, Order::Release, Scope::Block); }
    } else if lane_idx() == 0 {
        while flag.load(0, Order::Acquire, Scope::Block) == 0 {}
        fence_proxy_async();
        dst.bulk_store(0, row, 0, 32);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// Written to global memory, released, acquired, fenced, loaded by a copy.
#[tma_kernel(threads = 64)]
fn loaded_behind_an_acquire(g: Global<u32>, flags: Global<u32>, out: Global<u32>) {
    let row: SharedArray<u32, 32> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 32 { full.init(1); fence_barrier_init(); }
    sync_threads();
    if warp_idx() == 0 {
        g.set(lane_idx(), 1);
        sync_warp();
        if lane_idx() == 0 { flags.store(0, 1, Order::Release, Scope::Device); }
    } else {
        if lane_idx() == 0 {
            while flags.load(0, Order::Acquire, Scope::Device) == 0 {}
            fence_proxy_async_global();
            full.arrive_expect_tx(128);
            g.bulk_load(row, 0, 32, 0, full);
        }
        full.wait(0);
        out.set(lane_idx(), row.get(lane_idx()));
    }
}

/// A store is complete, released, acquired, and read.
#[tma_kernel(threads = 64)]
fn read_behind_an_acquire(g: Global<u32>, flags: Global<u32>, out: Global<u32>) {
    let row: SharedArray<u32, 32> = shared();
    row.set(lane_idx(), 1 + warp_idx() - warp_idx());
    sync_threads();
    if thread_idx().x == 0 {
        fence_proxy_async();
        g.bulk_store(0, row, 0, 32);
        bulk_commit_group();
        bulk_wait_group::<0>();
        flags.store(0, 1, Order::Release, Scope::Device);
    }
    if warp_idx() == 1 {
        while flags.load(0, Order::Acquire, Scope::Device) == 0 {}
        out.set(lane_idx(), g.get(lane_idx()));
    }
}

/// All threads write the same value.
#[tma_kernel(threads = 32)]
fn all_write_the_same(out: Global<u32>) {
    let word: SharedArray<u32, 1> = shared();
    word.store(0, 7, Order::Relaxed, Scope::Block);
    sync_warp();
    out.set(lane_idx(), word.get(0));
}

/// A last phase without a wait: the barrier is not used any more.
#[tma_kernel(threads = 64)]
fn last_arrival_without_wait(out: Global<u32>, n: u32) {
    let full: Barrier = shared();
    let empty: Barrier = shared();
    let row: SharedArray<u32, 1> = shared();
    if thread_idx().x == 0 { full.init(1); empty.init(1); }
    sync_threads();
    if thread_idx().x == 0 { for k in 0..n { empty.wait(k % 2 ^ 1); row.set(0, k); full.arrive(); } }
    if thread_idx().x == 32 { for k in 0..n { full.wait(k % 2); out.set(k, row.get(0)); empty.arrive(); } }
}

/// Waiters skip the first phase of a barrier, which another thread watches.
#[tma_kernel(threads = 96)]
fn skips_a_phase(out: Global<u32>) {
    let met: Barrier = shared();
    let go: Barrier = shared();
    if thread_idx().x == 0 { met.init(1); go.init(2); }
    sync_threads();
    if thread_idx().x == 0 { met.arrive(); met.wait(0); go.arrive(); go.wait(0); met.arrive(); }
    if thread_idx().x == 32 { go.arrive(); go.wait(0); met.wait(1); }
}

/// The index of the stage comes from memory that both sides read.
#[tma_kernel(threads = 64)]
fn stages_by_data(order: Global<u32>, out: Global<u32>) {
    let full: Stages<Barrier, 2> = shared();
    let row: Stages<SharedArray<u32, 1>, 2> = shared();
    if thread_idx().x == 0 { full[0].init(1); full[1].init(1); }
    sync_threads();
    let at = order.get(block_idx().x) % 2;
    if thread_idx().x == 0 { row[at].set(0, 1); full[at].arrive(); }
    if thread_idx().x == 32 { full[at].wait(0); out.set(0, row[at].get(0)); }
}

/// An elected lane loads, and the same warp reads with no barrier but the mbarrier.
#[tma_kernel(threads = 32)]
fn elected_loads(src: TensorMap<Tile<f32, Shape2<8, 32>>>, out: Global<f32>, n: u32) {
    let tile: Stages<Tile<f32, Shape2<8, 32>>, 2> = shared();
    let full: Stages<Barrier, 2> = shared();
    if elect_one() { for s in 0..2 { full[s].init(1); } fence_barrier_init(); }
    sync_warp();
    if elect_one() { if n > 0 { full[0].arrive_expect_tx(tile[0].bytes()); src.load(tile[0], [0, 0], full[0]); } }
    for k in 0..n {
        if k + 1 < n { if elect_one() { full[(k + 1) % 2].arrive_expect_tx(tile[0].bytes()); src.load(tile[(k + 1) % 2], [(k + 1) * 8, 0], full[(k + 1) % 2]); } }
        full[k % 2].wait(k / 2 % 2);
        out.set(k * 32 + lane_idx(), tile[k % 2].get([0, lane_idx()]));
        fence_proxy_async();
        sync_warp();
    }
}

/// Wider scopes than necessary, and mixed scopes that include each other.
#[tma_kernel(threads = 64)]
fn wider_scopes(out: Global<u32>) {
    let row: SharedArray<u32, 32> = shared();
    let flag: SharedArray<u32, 1> = shared();
    if thread_idx().x == 0 { flag.store(0, 0, Order::Relaxed, Scope::Cluster); }
    sync_threads();
    if warp_idx() == 0 { row.set(lane_idx(), 1); sync_warp(); if lane_idx() == 0 { flag.fetch_add(0, 1, Order::AcqRel, Scope::Cluster); } }
    else { while flag.load(0, Order::Acquire, Scope::Block) != 1 {} out.set(lane_idx(), row.get(31 - lane_idx())); }
}

/// Multiple buffering as usual in CUDA: written, one barrier per iteration, and read.
#[tma_kernel(threads = 64)]
fn one_meeting_a_turn(src: Global<u32>, out: Global<u32>, n: u32) {
    let row: Stages<SharedArray<u32, 64>, 3> = shared();
    for k in 0..n {
        row[k % 3].set(thread_idx().x, src.get(k * 64 + thread_idx().x));
        sync_threads();
        out.set(k * 64 + thread_idx().x, row[k % 3].get(63 - thread_idx().x));
    }
}

/// The count of a barrier comes from the launch, and equally many threads arrive.
#[tma_kernel(threads = 64)]
fn count_from_the_launch(n: u32) {
    let met: Barrier = shared();
    assume(n > 0);
    assume(n <= 64);
    if thread_idx().x == 0 { met.init(n); }
    sync_threads();
    if thread_idx().x < n { met.arrive(); }
    met.wait(0);
}

/// Roles of warps by a `match`, in a circle of barriers.
#[tma_kernel(threads = 96)]
fn roles_by_match(out: Global<u32>, n: u32) {
    let a: Barrier = shared();
    let b: Barrier = shared();
    let c: Barrier = shared();
    if thread_idx().x == 0 { a.init(1); b.init(1); c.init(1); }
    sync_threads();
    if lane_idx() == 0 {
        for k in 0..n {
            match warp_idx() {
                0 => { if k > 0 { c.wait((k - 1) % 2); } a.arrive(); }
                1 => { a.wait(k % 2); b.arrive(); }
                _ => { b.wait(k % 2); c.arrive(); }
            }
        }
    }
}
