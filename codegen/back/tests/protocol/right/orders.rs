//! Accesses with an order and a scope.

/// Strong accesses do not race with each other, and a barrier orders them before plain ones.
#[tma_kernel(threads = 64)]
fn a_count_in_shared_memory(values: Global<u32>, out: Global<u32>) {
    let count: SharedArray<u32, 1> = shared();
    if thread_idx().x == 0 { count.set(0, 0); }
    sync_threads();
    if values.get(thread_idx().x) > 3 { count.fetch_add(0, 1, Order::Relaxed, Scope::Block); }
    sync_threads();
    if thread_idx().x == 0 { out.set(0, count.get(0)); }
}

/// A warp passes a row to another one by a flag.
#[tma_kernel(threads = 64)]
fn a_flag_in_shared_memory(out: Global<u32>) {
    let row: SharedArray<u32, 32> = shared();
    let flag: SharedArray<u32, 1> = shared();
    if thread_idx().x == 0 { flag.set(0, 0); }
    sync_threads();
    if warp_idx() == 0 {
        row.set(lane_idx(), lane_idx());
        sync_warp();
        if lane_idx() == 0 { flag.store(0, 1, Order::Release, Scope::Block); }
    } else {
        while flag.load(0, Order::Acquire, Scope::Block) == 0 {}
        out.set(lane_idx(), row.get(31 - lane_idx()));
    }
}

/// The same by global memory, between the blocks of a cluster.
#[tma_kernel(threads = 32, cluster = 2)]
fn a_flag_in_global_memory(flags: Global<u32>, out: Global<u32>) {
    let row: SharedArray<u32, 32> = shared();
    if cluster_rank() == 0 {
        remote(row, 1).set(lane_idx(), lane_idx());
        sync_warp();
        if lane_idx() == 0 { flags.store(cluster_idx().x, 1, Order::Release, Scope::Cluster); }
    } else {
        while flags.load(cluster_idx().x, Order::Acquire, Scope::Cluster) == 0 {}
        out.set(lane_idx(), row.get(31 - lane_idx()));
    }
    sync_cluster();
}

/// Blocks of a cluster count in each other's memory.
#[tma_kernel(threads = 32, cluster = 2)]
fn a_count_in_another_block(out: Global<u32>) {
    let count: SharedArray<u32, 2> = shared();
    if lane_idx() < 2 { count.store(lane_idx(), 0, Order::Relaxed, Scope::Cluster); }
    sync_cluster();
    remote(count, 1 - cluster_rank()).fetch_add(lane_idx() % 2, 1, Order::Relaxed, Scope::Cluster);
    sync_cluster();
    out.set(cluster_rank(), count.get(0) + count.get(1));
}
