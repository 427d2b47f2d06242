//! Named barriers whose rounds may end by other arrivals than intended, or never.

/// Two teams of two warps at one barrier: two warps of different teams may release each other.
#[tma_kernel(threads = 128)]
fn two_teams_at_one_number(out: Global<u32>) {
    let row: SharedArray<u32, 128> = shared();
    let team = warp_idx() / 2;
    row.set(thread_idx().x, thread_idx().x);
    named_barrier_sync(1, 64);
    out.set(thread_idx().x, row.get(team * 64 + 63 - thread_idx().x % 64));
}

/// The same in a loop.
#[tma_kernel(threads = 128)]
fn two_teams_in_turns(out: Global<u32>, turns: u32) {
    let row: SharedArray<u32, 128> = shared();
    let team = warp_idx() / 2;
    for turn in 0..turns {
        row.set(thread_idx().x, turn);
        named_barrier_sync(1, 64);
        out.set(thread_idx().x, row.get(team * 64 + 63 - thread_idx().x % 64));
        named_barrier_sync(1, 64);
    }
}

/// Three warps at a barrier of two: the third waits forever.
#[tma_kernel(threads = 96)]
fn three_warps_of_two() {
    named_barrier_sync(1, 64);
}

/// A producer whose two arrivals may complete one round.
#[tma_kernel(threads = 96)]
fn arrivals_of_two_turns(out: Global<u32>) {
    let row: SharedArray<u32, 64> = shared();
    if warp_idx() == 0 {
        row.set(lane_idx(), 1);
        named_barrier_arrive(1, 96);
    } else if warp_idx() == 1 {
        named_barrier_arrive(1, 96);
        named_barrier_arrive(1, 96);
    } else {
        named_barrier_sync(1, 96);
        out.set(lane_idx(), row.get(lane_idx()));
    }
}

/// Barrier 16 does not exist, and the code after it is never checked.
#[tma_kernel(threads = 64, unchecked)]
fn barrier_sixteen(out: Global<u32>, id: u32) {
    let row: SharedArray<u32, 64> = shared();
    named_barrier_sync(16 + id % 2, 64);
    row.set(thread_idx().x, 1);
    out.set(thread_idx().x, row.get(63 - thread_idx().x));
}

/// 48 threads are not a whole number of warps.
#[tma_kernel(threads = 64, unchecked)]
fn forty_eight_threads(out: Global<u32>, half: u32) {
    let row: SharedArray<u32, 64> = shared();
    named_barrier_sync(1, 48 + half % 2);
    row.set(thread_idx().x, 1);
    out.set(thread_idx().x, row.get(63 - thread_idx().x));
}

/// Another count in the same round.
#[tma_kernel(threads = 128)]
fn two_counts() {
    if warp_idx() < 2 { named_barrier_sync(1, 64); } else { named_barrier_sync(1, 128); }
}

/// One of two warps reaches a round of its own before the other has left the last.
#[tma_kernel(threads = 64)]
fn a_round_of_one_warp_between() {
    for turn in 0..2u32 {
        named_barrier_sync(1, 64);
        named_barrier_sync(1, 32);
    }
    sync_warp();
}
