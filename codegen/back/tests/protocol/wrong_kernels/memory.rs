//! Memory that no thread has written, or that another proxy may not see yet.

/// The copy engine may read old elements.
#[tma_kernel(threads = 32)]
fn loaded_without_a_proxy_fence(global: Global<f32>, out: Global<f32>) {
    let row: SharedArray<f32, 32> = shared();
    let full: Barrier = shared();
    if lane_idx() == 0 { full.init(1); fence_barrier_init(); }
    global.set(lane_idx(), 1.0);
    sync_warp();
    if lane_idx() == 0 {
        full.arrive_expect_tx(128);
        global.bulk_load(row, 0, 32, 0, full);
    }
    full.wait(0);
    out.set(lane_idx(), row.get(lane_idx()));
}

/// The store may not be complete.
#[tma_kernel(threads = 32)]
fn read_back_before_the_store_is_complete(global: Global<f32>, out: Global<f32>) {
    let row: SharedArray<f32, 32> = shared();
    row.set(lane_idx(), 1.0);
    fence_proxy_async();
    sync_warp();
    if lane_idx() == 0 {
        global.bulk_store(0, row, 0, 32);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
    sync_warp();
    out.set(lane_idx(), global.get(lane_idx()));
}

/// Odd elements are read, but even ones were written.
#[tma_kernel(threads = 32)]
fn odd_elements_that_nobody_wrote(out: Global<u32>) {
    let row: SharedArray<u32, 64> = shared();
    row.set(lane_idx() * 2, 1);
    sync_warp();
    out.set(lane_idx(), row.get(lane_idx() * 2 + 1));
}

/// Two threads store to the same elements.
#[tma_kernel(threads = 64)]
fn two_stores_to_the_same_elements(global: Global<f32>) {
    let row: SharedArray<f32, 32> = shared();
    if thread_idx().x < 32 { row.set(lane_idx(), 1.0); }
    fence_proxy_async();
    sync_threads();
    if lane_idx() == 0 {
        global.bulk_store(0, row, 0, 32);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// With `n` of 0 the slot that is read is the one that is written.
#[tma_kernel(threads = 64)]
fn a_slot_that_may_be_any(out: Global<u32>, n: u32) {
    let slots: Stages<SharedArray<u32, 32>, 2> = shared();
    slots[thread_idx().x / 32].set(lane_idx(), 1);
    sync_threads();
    if warp_idx() == 0 {
        slots[n % 2].set(lane_idx(), 2);
    } else {
        out.set(lane_idx(), slots[0].get(lane_idx()));
    }
}

/// The second store may overtake the reads of the first, whose values nothing has used yet.
#[tma_kernel(threads = 32)]
fn a_row_is_replaced_while_it_is_read(x: Global<u32>, out: Global<u32>) {
    let row: SharedArray<u32, 32> = shared();
    let first = block_idx().x * 32;
    row.set(lane_idx(), 1);
    fence_proxy_async();
    sync_warp();
    if lane_idx() == 0 {
        x.bulk_store(first, row, 0, 32);
        bulk_commit_group();
        bulk_wait_group::<0>();
    }
    sync_warp();
    let read = x.get(first + lane_idx());
    row.set(lane_idx(), 2);
    fence_proxy_async();
    sync_warp();
    if lane_idx() == 0 {
        x.bulk_store(first, row, 0, 32);
        bulk_commit_group();
        bulk_wait_group::<0>();
    }
    out.set(first + lane_idx(), read);
}
