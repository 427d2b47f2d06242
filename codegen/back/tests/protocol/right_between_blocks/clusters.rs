//! Clusters whose blocks pass global memory to each other, by flags and barriers of either memory.

/// A buffer in global memory that the two blocks update in alternation.
#[tma_kernel(threads = 32, cluster = 2)]
fn asked_and_answered(buffer: Global<u32>, turn: Global<u32>, out: Global<u32>, rounds: u32) {
    let cluster = cluster_idx().x;
    let i = cluster * 32 + lane_idx();
    for round in 0..rounds {
        let mine = 2 * round + cluster_rank();
        if lane_idx() == 0 {
            while turn.load(cluster, Order::Acquire, Scope::Cluster) != mine {}
        }
        sync_warp();
        buffer.set(i, buffer.get(i) + mine);
        sync_warp();
        if lane_idx() == 0 {
            turn.store(cluster, mine + 1, Order::Release, Scope::Cluster);
        }
    }
    out.set(block_idx().x * 32 + lane_idx(), rounds);
}

/// A histogram whose bins are shared among the blocks of a cluster, then added to that of the grid.
#[tma_kernel(threads = 64, cluster = 2)]
fn bins_of_a_cluster(values: Global<u32>, bins: Global<u32>) {
    let own: SharedArray<u32, 32> = shared();
    if warp_idx() == 0 {
        own.set(lane_idx(), 0);
    }
    sync_cluster();
    let bin = (values.get(block_idx().x * 64 + thread_idx().x) * 21 + lane_idx()) % 64;
    remote(own, bin / 32).fetch_add(bin % 32, 1, Order::Relaxed, Scope::Cluster);
    sync_cluster();
    if warp_idx() == 1 {
        bins.fetch_add(cluster_rank() * 32 + lane_idx(), own.get(lane_idx()), Order::Relaxed, Scope::Device);
    }
}

/// Both blocks write, and one thread counts the cluster: the last cluster reads all writes.
#[tma_kernel(threads = 64, cluster = 2)]
fn last_cluster(parts: Global<u32>, count: Global<u32>, out: Global<u32>) {
    let is_last: SharedArray<bool, 1> = shared();
    parts.set(block_idx().x * 64 + thread_idx().x, block_idx().x);
    sync_cluster();
    if cluster_rank() == 1 && thread_idx().x == 0 {
        let before = count.fetch_add(0, 1, Order::AcqRel, Scope::Device);
        let last = before + 1 == grid_dim().x / 2;
        is_last.set(0, last);
        remote(is_last, 0).set(0, last);
    }
    sync_cluster();
    if is_last.get(0) {
        let mut sum = 0;
        for block in 0..grid_dim().x {
            sum += parts.get(block * 64 + 63 - thread_idx().x);
        }
        out.set(cluster_rank() * 64 + thread_idx().x, sum);
    }
}

/// A lock in the shared memory of one block guards global memory of the cluster.
#[tma_kernel(threads = 32, cluster = 2)]
fn lock_of_a_cluster(guarded: Global<u32>) {
    let lock: SharedArray<u32, 1> = shared();
    if lane_idx() == 0 {
        lock.store(0, 0, Order::Relaxed, Scope::Cluster);
    }
    sync_cluster();
    if lane_idx() == 0 {
        while remote(lock, 0).compare_exchange(0, 0, 1, Order::Acquire, Scope::Cluster) != 0 {}
        guarded.set(cluster_idx().x, guarded.get(cluster_idx().x) + cluster_rank() + 1);
        remote(lock, 0).store(0, 0, Order::Release, Scope::Cluster);
    }
    sync_cluster();
}

/// A flag in the other block's shared memory orders global memory.
#[tma_kernel(threads = 32, cluster = 2)]
fn remote_flag_for_global_memory(rows: Global<u32>, out: Global<u32>) {
    let flag: SharedArray<u32, 1> = shared();
    let other = cluster_idx().x * 2 + 1 - cluster_rank();
    if lane_idx() == 0 {
        flag.store(0, 0, Order::Relaxed, Scope::Cluster);
    }
    sync_cluster();
    rows.set(block_idx().x * 32 + lane_idx(), block_idx().x + 1);
    sync_warp();
    if lane_idx() == 0 {
        remote(flag, 1 - cluster_rank()).store(0, 1, Order::Release, Scope::Cluster);
    }
    while flag.load(0, Order::Acquire, Scope::Cluster) == 0 {}
    out.set(block_idx().x * 32 + lane_idx(), rows.get(other * 32 + lane_idx()));
    sync_cluster();
}

/// Global memory is written before the cluster's arrival, and read after its wait.
#[tma_kernel(threads = 64, cluster = 4)]
fn halves_around_global_memory(rows: Global<u32>, out: Global<u32>) {
    let own: SharedArray<u32, 64> = shared();
    rows.set(block_idx().x * 64 + thread_idx().x, block_idx().x);
    cluster_arrive();
    own.set(thread_idx().x, thread_idx().x);
    sync_threads();
    let mut sum = own.get(63 - thread_idx().x);
    cluster_wait();
    for rank in 0..4 {
        sum += rows.get((cluster_idx().x * 4 + rank) * 64 + thread_idx().x);
    }
    out.set(block_idx().x * 64 + thread_idx().x, sum);
}

/// Arrivals at the other block's mbarrier make global memory visible after its wait.
#[tma_kernel(threads = 32, cluster = 2)]
fn mbarrier_for_global_memory(rows: Global<u32>, out: Global<u32>, rounds: u32) {
    // With one, a block could complete the next phase before the other has seen this one.
    let full: Stages<Barrier, 2> = shared();
    if lane_idx() == 0 {
        full[0].init(32);
        full[1].init(32);
        fence_barrier_init();
    }
    sync_cluster();
    let other = cluster_idx().x * 2 + 1 - cluster_rank();
    for round in 0..rounds {
        rows.set((round * 32 + block_idx().x) * 32 + lane_idx(), round);
        remote(full[round % 2], 1 - cluster_rank()).arrive();
        full[round % 2].wait(round / 2 % 2);
        out.set((round * 32 + block_idx().x) * 32 + lane_idx(), rows.get((round * 32 + other) * 32 + 31 - lane_idx()));
    }
    sync_cluster();
}

/// A token goes around the blocks of a cluster: its owner appends to a list in global memory.
#[tma_kernel(threads = 32, cluster = 4)]
fn token_for_a_list(list: Global<u32>, rounds: u32) {
    let token: SharedArray<u32, 1> = shared();
    if lane_idx() == 0 {
        token.store(0, 0, Order::Relaxed, Scope::Cluster);
    }
    sync_cluster();
    if lane_idx() == 0 {
        let first = cluster_idx().x * 256;
        for round in 0..rounds {
            if cluster_rank() > 0 || round > 0 {
                let before = if cluster_rank() == 0 { round } else { round + 1 };
                while token.load(0, Order::Acquire, Scope::Cluster) != before {}
            }
            let length = list.get(first);
            list.set(first + 1 + length, cluster_rank());
            list.set(first, length + 1);
            remote(token, (cluster_rank() + 1) % 4).store(0, round + 1, Order::Release, Scope::Cluster);
        }
    }
    sync_cluster();
}
