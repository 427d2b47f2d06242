//! Instructions that all threads of a warp must reach at one location.

#[tma_kernel(threads = 64, cluster = 2)]
fn sync_cluster_at_two_places(out: Global<u32>) {
    if lane_idx() < 16 { sync_cluster(); } else { sync_cluster(); }
}

#[tma_kernel(threads = 64)]
fn sync_grid_at_two_places(counter: Global<u32>) {
    if lane_idx() < 16 { sync_grid(counter); } else { sync_grid(counter); }
}

#[tma_kernel(threads = 64)]
fn sync_threads_at_two_places(out: Global<u32>) {
    if lane_idx() < 16 { sync_threads(); } else { sync_threads(); }
}


/// Each half of the warp arrives in an iteration of its own of the outer loop.
#[tma_kernel(threads = 32)]
fn halves_in_iterations_of_the_outer_loop(out: Global<u32>) {
    for half in 0..2 {
        for _ in 0..1 {
            if lane_idx() / 16 == half { sync_threads(); }
        }
    }
    out.set(lane_idx(), 1);
}
