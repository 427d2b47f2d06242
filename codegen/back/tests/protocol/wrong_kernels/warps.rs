//! Operations of a warp that not all of its lanes reach, or that do not match.

#[tma_kernel(threads = 64)]
fn shuffle_in_half_a_warp(out: Global<u32>) {
    let mut r = lane_idx();
    if lane_idx() < 16 { r = shuffle_xor(r, 1); }
    sync_threads();
    out.set(thread_idx().x, r);
}

#[tma_kernel(threads = 64)]
fn reduction_in_half_a_warp(out: Global<u32>) {
    let mut r = lane_idx();
    if lane_idx() < 16 { r = warp_reduce_max(r); }
    sync_threads();
    out.set(thread_idx().x, r);
}

#[tma_kernel(threads = 64)]
fn ballot_in_half_a_warp(out: Global<u32>) {
    let mut r = lane_idx();
    if lane_idx() < 16 { r = ballot(r > 3); }
    sync_threads();
    out.set(thread_idx().x, r);
}

#[tma_kernel(threads = 64)]
fn vote_in_half_a_warp(out: Global<u32>) {
    let mut r = true;
    if lane_idx() < 16 { r = vote_any(lane_idx() == 3); }
    sync_threads();
    if r { out.set(thread_idx().x, 1); }
}

#[tma_kernel(threads = 64)]
fn match_in_half_a_warp(out: Global<u32>) {
    let mut r = lane_idx();
    if lane_idx() < 16 { r = match_any(r / 2); }
    sync_threads();
    out.set(thread_idx().x, r);
}

#[tma_kernel(threads = 64)]
fn election_in_half_a_warp(out: Global<u32>) {
    if lane_idx() < 16 {
        if elect_one() { out.set(warp_idx(), 1); }
    }
    sync_threads();
}

/// Half a warp at one operation, the other half at another.
#[tma_kernel(threads = 32)]
fn sync_warp_beside_a_vote(out: Global<u32>) {
    if lane_idx() < 16 {
        sync_warp();
    } else {
        let any = vote_any(lane_idx() == 17);
        if any { out.set(lane_idx(), 1); }
    }
}

#[tma_kernel(threads = 32)]
fn shuffle_beside_a_reduction(out: Global<u32>) {
    let mut r = lane_idx();
    if lane_idx() < 16 { r = shuffle_xor(r, 1); } else { r = warp_reduce_add(r); }
    out.set(lane_idx(), r);
}

#[tma_kernel(threads = 32)]
fn vote_beside_a_ballot(out: Global<u32>) {
    let mut r = 0;
    if lane_idx() < 16 {
        if vote_all(lane_idx() < 40) { r = 1; }
    } else {
        r = ballot(lane_idx() > 20);
    }
    out.set(lane_idx(), r);
}

/// The elected lane is not known to be lane 19, nor any other.
#[tma_kernel(threads = 32)]
fn the_elected_lane_is_named(out: Global<u32>) {
    let row: SharedArray<u32, 32> = shared();
    let never: Barrier = shared();
    if elect_one() { row.set(0, 1); }
    if lane_idx() == 19 { out.set(0, row.get(0)); }
}

/// The lane that waits is another one than the elected lane.
#[tma_kernel(threads = 32)]
fn the_elected_lane_arrives_and_lane_19_waits(out: Global<u32>) {
    let met: Barrier = shared();
    if lane_idx() == 0 { met.init(1); }
    sync_warp();
    if lane_idx() == 19 { met.wait(0); }
    if elect_one() { met.arrive(); }
}

/// Lanes that have returned provide no value.
#[tma_kernel(threads = 64)]
fn count_from_a_lane_that_returned(out: Global<u32>, n: u32) {
    let met: Barrier = shared();
    if thread_idx().x == 0 { met.init(1); }
    sync_threads();
    if lane_idx() == 5 { return; }
    let mut count = shuffle_idx(lane_idx() + 1, 5);
    if thread_idx().x == 0 { met.arrive_many(count - 5); }
    met.wait(0);
}

/// The value of a lane that has returned decides whether a thread waits.
#[tma_kernel(threads = 32)]
fn condition_from_a_lane_that_returned(out: Global<u32>, n: u32) {
    let never: Barrier = shared();
    if lane_idx() == 0 { never.init(1); }
    sync_warp();
    if lane_idx() == 5 { return; }
    let told = shuffle_idx(n - n, 5);
    if told != 0 { never.wait(0); }
}

/// The elected lane waits for an arrival of lanes that wait for it.
#[tma_kernel(threads = 32)]
fn the_elected_lane_waits_for_the_others(out: Global<u32>) {
    let met: Barrier = shared();
    if lane_idx() == 0 { met.init(31); }
    sync_warp();
    if elect_one() { met.wait(0); }
    let r = shuffle_xor(lane_idx(), 1);
    if lane_idx() > 0 { met.arrive(); }
    out.set(lane_idx(), r);
}

/// The other half of the warp does not come: it exits.
#[tma_kernel(threads = 32)]
fn shuffle_when_the_others_have_ended(out: Global<u32>) {
    let mut r = lane_idx();
    if lane_idx() < 15 { r = shuffle_xor(r, 1); }
    out.set(lane_idx(), r);
}
