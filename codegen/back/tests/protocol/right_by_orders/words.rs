//! Counters, queues and locks in words with orders and scopes.

/// Warps exit one after the other; the others go on by named barriers of fewer warps.
#[tma_kernel(threads = 128)]
fn fewer_and_fewer(out: Global<u32>) {
    let row: SharedArray<u32, 128> = shared();
    row.set(thread_idx().x, 1);
    sync_threads();
    if warp_idx() == 3 { return; }
    named_barrier_sync(1, 96);
    if warp_idx() == 2 { return; }
    named_barrier_sync(2, 64);
    out.set(thread_idx().x, row.get(127 - thread_idx().x));
}

/// A hand-made barrier: fetch_add with AcqRel in shared memory.
#[tma_kernel(threads = 64)]
fn barrier_by_hand(out: Global<u32>) {
    let row: SharedArray<u32, 64> = shared();
    let count: SharedArray<u32, 1> = shared();
    if thread_idx().x == 0 { count.store(0, 0, Order::Relaxed, Scope::Block); }
    sync_threads();
    row.set(thread_idx().x, 1);
    sync_warp();
    if lane_idx() == 0 {
        count.fetch_add(0, 1, Order::AcqRel, Scope::Block);
        while count.load(0, Order::Acquire, Scope::Block) < 2 {}
    }
    sync_warp();
    out.set(thread_idx().x, row.get(63 - thread_idx().x));
}

/// A flag that is acquired prevents an overrun.
#[tma_kernel(threads = 64)]
fn no_overrun_by_a_flag(out: Global<u32>, n: u32) {
    let full: Barrier = shared();
    let seen: SharedArray<u32, 1> = shared();
    let word: SharedArray<u32, 1> = shared();
    if thread_idx().x == 0 { full.init(1); seen.store(0, 0, Order::Relaxed, Scope::Block); }
    sync_threads();
    if thread_idx().x == 0 {
        for k in 0..n {
            while seen.load(0, Order::Acquire, Scope::Block) < k {}
            word.set(0, k);
            full.arrive();
            full.wait(k % 2);
        }
    }
    if thread_idx().x == 32 {
        for k in 0..n {
            full.wait(k % 2);
            out.set(k, word.get(0));
            seen.store(0, k + 1, Order::Release, Scope::Block);
        }
    }
}

/// A tile is refilled when a flag says that it was read, after a fence.
#[tma_kernel(threads = 64)]
fn refilled_behind_an_acquire(src: TensorMap<Tile<f32, Shape2<8, 32>>>, out: Global<f32>) {
    let tile: Tile<f32, Shape2<8, 32>> = shared();
    let full: Barrier = shared();
    let read: SharedArray<u32, 1> = shared();
    if thread_idx().x == 0 { full.init(1); fence_barrier_init(); read.store(0, 0, Order::Relaxed, Scope::Block); full.arrive_expect_tx(tile.bytes()); src.load(tile, [0, 0], full); }
    sync_threads();
    if warp_idx() == 1 { full.wait(0); out.set(lane_idx(), tile.get([0, lane_idx()])); sync_warp(); if lane_idx() == 0 { read.store(0, 1, Order::Release, Scope::Block); } }
    if thread_idx().x == 0 {
        while read.load(0, Order::Acquire, Scope::Block) == 0 {}
        fence_proxy_async();
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, [8, 0], full);
        full.wait(1);
    }
}

/// A store's source is free when a flag says that its thread has waited.
#[tma_kernel(threads = 64)]
fn overwritten_behind_an_acquire(dst: Global<u32>) {
    let row: SharedArray<u32, 32> = shared();
    let free: SharedArray<u32, 1> = shared();
    if warp_idx() == 0 { row.set(lane_idx(), 1); fence_proxy_async(); }
    if thread_idx().x == 0 { free.store(0, 0, Order::Relaxed, Scope::Block); }
    sync_threads();
    if thread_idx().x == 0 { dst.bulk_store(0, row, 0, 32); bulk_commit_group(); bulk_wait_group_read::<0>(); free.store(0, 1, Order::Release, Scope::Block); }
    if warp_idx() == 1 { while free.load(0, Order::Acquire, Scope::Block) == 0 {} row.set(lane_idx(), 2); }
}

/// A tile that one thread waited for is read by others, which acquire its flag.
#[tma_kernel(threads = 64)]
fn loaded_and_told(src: TensorMap<Tile<f32, Shape2<8, 32>>>, out: Global<f32>) {
    let tile: Tile<f32, Shape2<8, 32>> = shared();
    let full: Barrier = shared();
    let told: SharedArray<u32, 1> = shared();
    if thread_idx().x == 0 { full.init(1); fence_barrier_init(); told.store(0, 0, Order::Relaxed, Scope::Block); }
    sync_threads();
    if thread_idx().x == 0 { full.arrive_expect_tx(tile.bytes()); src.load(tile, [0, 0], full); full.wait(0); told.store(0, 1, Order::Release, Scope::Block); }
    if warp_idx() == 1 { while told.load(0, Order::Acquire, Scope::Block) == 0 {} out.set(lane_idx(), tile.get([0, lane_idx()])); }
}

/// Fences and relaxed accesses order shared memory.
#[tma_kernel(threads = 64)]
fn fences_in_shared_memory(out: Global<u32>) {
    let row: SharedArray<u32, 32> = shared();
    let flag: SharedArray<u32, 1> = shared();
    if thread_idx().x == 0 { flag.store(0, 0, Order::Relaxed, Scope::Block); }
    sync_threads();
    if warp_idx() == 0 { row.set(lane_idx(), 1); sync_warp(); if lane_idx() == 0 { fence(); flag.store(0, 1, Order::Relaxed, Scope::Block); } }
    else { while flag.load(0, Order::Relaxed, Scope::Block) == 0 {} fence(); out.set(lane_idx(), row.get(lane_idx())); }
}

/// The last warp sums, by AcqRel of a shared count.
#[tma_kernel(threads = 128)]
fn last_warp_adds(out: Global<u32>) {
    let row: SharedArray<u32, 128> = shared();
    let count: SharedArray<u32, 1> = shared();
    if thread_idx().x == 0 { count.store(0, 0, Order::Relaxed, Scope::Block); }
    sync_threads();
    row.set(thread_idx().x, 1);
    sync_warp();
    let mut before = 0;
    if lane_idx() == 0 { before = count.fetch_add(0, 1, Order::AcqRel, Scope::Block); }
    before = shuffle_idx(before, 0);
    sync_warp();
    if before == 3 { for w in 0..4 { out.set(w * 32 + lane_idx(), row.get(w * 32 + lane_idx())); } }
}

/// The same by relaxed accesses with `fence` on both sides.
#[tma_kernel(threads = 128)]
fn last_warp_adds_by_fences(out: Global<u32>) {
    let row: SharedArray<u32, 128> = shared();
    let count: SharedArray<u32, 1> = shared();
    if thread_idx().x == 0 { count.store(0, 0, Order::Relaxed, Scope::Block); }
    sync_threads();
    row.set(thread_idx().x, 1);
    sync_warp();
    let mut before = 0;
    if lane_idx() == 0 { fence(); before = count.fetch_add(0, 1, Order::Relaxed, Scope::Block); fence(); }
    before = shuffle_idx(before, 0);
    sync_warp();
    if before == 3 { for w in 0..4 { out.set(w * 32 + lane_idx(), row.get(w * 32 + lane_idx())); } }
}

/// A cluster's flag in shared memory of the other block.
#[tma_kernel(threads = 32, cluster = 2)]
fn remote_flag(out: Global<u32>) {
    let row: SharedArray<u32, 32> = shared();
    let flag: SharedArray<u32, 1> = shared();
    if lane_idx() == 0 { flag.store(0, 0, Order::Relaxed, Scope::Cluster); }
    sync_cluster();
    remote(row, 1 - cluster_rank()).set(lane_idx(), 1);
    sync_warp();
    if lane_idx() == 0 { remote(flag, 1 - cluster_rank()).store(0, 1, Order::Release, Scope::Cluster); }
    while flag.load(0, Order::Acquire, Scope::Cluster) == 0 {}
    out.set(lane_idx(), row.get(31 - lane_idx()));
    sync_cluster();
}
