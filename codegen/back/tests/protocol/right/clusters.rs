//! Blocks of a cluster that pass data to each other.

/// Values go around: each block writes to the next one, and all synchronise.
#[tma_kernel(threads = 32, cluster = 4)]
fn around(out: Global<u32>, turns: u32) {
    let value: Stages<SharedArray<u32, 32>, 2> = shared();
    value[0].set(lane_idx(), cluster_rank());
    sync_cluster();
    for turn in 0..turns {
        remote(value[(turn + 1) % 2], (cluster_rank() + 1) % 4).set(lane_idx(), value[turn % 2].get(lane_idx()));
        sync_cluster();
    }
    out.set(block_idx().x * 32 + lane_idx(), value[turns % 2].get(lane_idx()));
}

/// A barrier of the other block signals a value, and a barrier of the cluster ends each round.
#[tma_kernel(threads = 32, cluster = 2)]
fn told_by_a_barrier(out: Global<u32>, rounds: u32) {
    let full: Barrier = shared();
    let value: SharedArray<u32, 32> = shared();
    if thread_idx().x == 0 { full.init(32); }
    sync_cluster();
    for round in 0..rounds {
        remote(value, 1 - cluster_rank()).set(lane_idx(), round);
        remote(full, 1 - cluster_rank()).arrive();
        full.wait(round % 2);
        out.set(lane_idx(), value.get(lane_idx()));
        sync_cluster();
    }
    sync_cluster();
}

/// One block sends to the other by a bulk copy.
#[tma_kernel(threads = 32, cluster = 2)]
fn sent(out: Global<u32>) {
    let mine: SharedArray<u32, 128> = shared();
    let given: SharedArray<u32, 128> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 { full.init(1); fence_barrier_init(); }
    for i in 0..4 { mine.set(i * 32 + lane_idx(), cluster_rank()); }
    fence_proxy_async();
    sync_cluster();
    if lane_idx() == 0 {
        full.arrive_expect_tx(512);
        mine.bulk_copy_to(remote(given, 1 - cluster_rank()), 0, 128, remote(full, 1 - cluster_rank()));
    }
    full.wait(0);
    out.set(block_idx().x * 32 + lane_idx(), given.get(lane_idx()));
    sync_cluster();
}

/// The two halves of the cluster's barrier, with work between them.
#[tma_kernel(threads = 32, cluster = 2)]
fn in_halves(out: Global<u32>) {
    let value: SharedArray<u32, 32> = shared();
    value.set(lane_idx(), cluster_rank());
    cluster_arrive();
    out.set(64 + block_idx().x * 32 + lane_idx(), 1);
    cluster_wait();
    out.set(block_idx().x * 32 + lane_idx(), remote(value, 1 - cluster_rank()).get(lane_idx()));
    sync_cluster();
}

/// Block 0 loads a tile for both, and each waits at its own barrier.
#[tma_kernel(threads = 32, cluster = 2)]
fn one_loads_for_both(src: TensorMap<Tile<f32, Shape2<8, 32>>>, out: Global<f32>) {
    let tile: Tile<f32, Shape2<8, 32>> = shared();
    let full: Barrier = shared();
    if lane_idx() == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
    }
    sync_cluster();
    if lane_idx() == 0 && cluster_rank() == 0 {
        src.load_multicast(tile, [0, 0], full, 3);
    }
    full.wait(0);
    out.set(block_idx().x * 32 + lane_idx(), tile.get([0, lane_idx()]));
}

/// Each block loads half of every tile for both, and they synchronise before the next one.
#[tma_kernel(threads = 32, cluster = 2)]
fn halves_for_both(src: TensorMap<Tile<f32, Shape2<8, 32>>>, out: Global<f32>, tiles: u32) {
    let tile: Stages<Tile<f32, Shape2<8, 32>>, 2> = shared();
    let full: Barrier = shared();
    if lane_idx() == 0 { full.init(1); fence_barrier_init(); }
    sync_cluster();
    for k in 0..tiles {
        if lane_idx() == 0 { full.arrive_expect_tx(2 * tile[0].bytes()); }
        sync_cluster();
        if lane_idx() == 0 {
            src.load_multicast(tile[cluster_rank()], [(k * 2 + cluster_rank()) * 8, 0], full, 3);
        }
        full.wait(k % 2);
        out.set(lane_idx(), tile[0].get([0, lane_idx()]) + tile[1].get([0, lane_idx()]));
        fence_proxy_async();
        sync_cluster();
    }
}

/// A leader gathers one number of each block.
#[tma_kernel(threads = 32, cluster = 4)]
fn gathered(out: Global<u32>) {
    let sums: SharedArray<u32, 4> = shared();
    let all: Barrier = shared();
    if lane_idx() == 0 { all.init(4); }
    sync_cluster();
    if lane_idx() == 0 {
        remote(sums, 0).set(cluster_rank(), cluster_rank());
        remote(all, 0).arrive();
    }
    if cluster_rank() == 0 {
        all.wait(0);
        out.set(lane_idx(), sums.get(lane_idx() % 4));
    }
    sync_cluster();
}

/// A cluster whose size the launch sets, with a barrier at each end.
#[tma_kernel(threads = 64, cluster = launch)]
fn of_any_size(out: Global<u32>) {
    let value: SharedArray<u32, 64> = shared();
    value.set(thread_idx().x, block_idx().x);
    sync_cluster();
    let next = (cluster_rank() + 1) % cluster_dim().x;
    out.set(block_idx().x * 64 + thread_idx().x, remote(value, next).get(thread_idx().x));
    sync_cluster();
}
