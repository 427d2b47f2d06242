//! Barriers of blocks, warps and groups of warps.

/// A transposition through shared memory, with a barrier before and after.
#[tma_kernel(threads = 256)]
fn transposed(src: Global<f32>, out: Global<f32>, tiles: u32) {
    let tile: SharedArray<f32, 256> = shared();
    for k in 0..tiles {
        tile.set(thread_idx().x, src.get(k * 256 + thread_idx().x));
        sync_threads();
        out.set(k * 256 + thread_idx().x, tile.get(thread_idx().x % 16 * 16 + thread_idx().x / 16));
        sync_threads();
    }
}

/// A sum by halves, with a barrier for each.
#[tma_kernel(threads = 64)]
fn halved(src: Global<u32>, out: Global<u32>) {
    let sums: SharedArray<u32, 64> = shared();
    sums.set(thread_idx().x, src.get(thread_idx().x));
    sync_threads();
    let mut half = 32;
    while half > 0 {
        if thread_idx().x < half {
            sums.set(thread_idx().x, sums.get(thread_idx().x) + sums.get(thread_idx().x + half));
        }
        sync_threads();
        half /= 2;
    }
    if thread_idx().x == 0 { out.set(block_idx().x, sums.get(0)); }
}

/// Pairs of warps synchronise at their own barriers, by number.
#[tma_kernel(threads = 128)]
fn in_pairs(out: Global<u32>, turns: u32) {
    let row: SharedArray<u32, 128> = shared();
    let pair = warp_idx() / 2;
    for turn in 0..turns {
        row.set(thread_idx().x, turn);
        named_barrier_sync(pair + 1, 64);
        out.set(thread_idx().x, row.get(pair * 64 + 63 - thread_idx().x % 64));
        named_barrier_sync(pair + 1, 64);
    }
}

/// A producer warp arrives at a named barrier, and a consumer warp waits there, in alternation.
#[tma_kernel(threads = 64)]
fn to_and_fro(out: Global<u32>, turns: u32) {
    let row: SharedArray<u32, 32> = shared();
    for turn in 0..turns {
        if warp_idx() == 0 {
            if turn > 0 { named_barrier_sync(2, 64); }
            row.set(lane_idx(), turn);
            named_barrier_arrive(1, 64);
        } else {
            named_barrier_sync(1, 64);
            out.set(turn * 32 + lane_idx(), row.get(31 - lane_idx()));
            if turn + 1 < turns { named_barrier_arrive(2, 64); }
        }
    }
}

/// The lanes of each warp use their own part, and synchronise as a warp.
#[tma_kernel(threads = 128)]
fn warp_by_warp(out: Global<u32>, turns: u32) {
    let row: SharedArray<u32, 128> = shared();
    for turn in 0..turns {
        row.set(thread_idx().x, turn);
        sync_warp();
        out.set(thread_idx().x, row.get(warp_idx() * 32 + 31 - lane_idx()));
        sync_warp();
    }
}

/// With two buffers, one barrier per iteration is enough.
#[tma_kernel(threads = 64)]
fn two_buffers(out: Global<u32>, turns: u32) {
    let row: Stages<SharedArray<u32, 64>, 2> = shared();
    for turn in 0..turns {
        row[turn % 2].set(thread_idx().x, turn);
        sync_threads();
        out.set(thread_idx().x, row[turn % 2].get(63 - thread_idx().x));
    }
}

/// All threads write and then synchronise, in both branches.
#[tma_kernel(threads = 64)]
fn the_same_meeting_in_both(out: Global<u32>, flag: bool) {
    let row: SharedArray<u32, 64> = shared();
    if flag {
        row.set(thread_idx().x, 1);
        sync_threads();
    } else {
        row.set(63 - thread_idx().x, 2);
        sync_threads();
    }
    out.set(thread_idx().x, row.get((thread_idx().x + 1) % 64));
}

/// Each warpgroup synchronises by itself.
#[tma_kernel(threads = 256)]
fn warpgroup_by_warpgroup(out: Global<u32>) {
    let row: SharedArray<u32, 256> = shared();
    row.set(thread_idx().x, 1);
    sync_warpgroup();
    out.set(thread_idx().x, row.get(warpgroup_idx() * 128 + 127 - thread_idx().x % 128));
}
