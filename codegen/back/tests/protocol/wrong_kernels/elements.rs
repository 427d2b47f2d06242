//! Elements of global memory that belong to no single thread, and scopes that leave out other
//! threads that access them.

#[tma_kernel(threads = 32)]
fn one_block_writes_another_reads(x: Global<u32>, out: Global<u32>) {
    if block_idx().x == 0 && thread_idx().x == 0 { x.set(0, 1); }
    if block_idx().x == 1 && thread_idx().x == 0 { out.set(0, x.get(0)); }
}

#[tma_kernel(threads = 64)]
fn one_warp_writes_another_reads(x: Global<u32>, out: Global<u32>) {
    let b = block_idx().x;
    if thread_idx().x == 0 { x.set(b, 1); }
    if thread_idx().x == 32 { out.set(b, x.get(b)); }
}

/// The barrier comes too late.
#[tma_kernel(threads = 64)]
fn two_warps_write(x: Global<u32>) {
    let b = block_idx().x;
    if thread_idx().x == 0 { x.set(b, 1); }
    if thread_idx().x == 32 { x.set(b, 2); }
    sync_threads();
}

/// Another thread in each iteration.
#[tma_kernel(threads = 64)]
fn a_thread_in_each_turn(x: Global<u32>, out: Global<u32>) {
    let b = block_idx().x;
    for i in 0..64 {
        if thread_idx().x == i { x.set(b, i); }
        if thread_idx().x == i { out.set(b * 64 + i, x.get(b)); }
    }
}

/// The tickets are taken in some order, and nothing orders the writes that follow.
#[tma_kernel(threads = 64)]
fn a_relaxed_ticket(tickets: Global<u32>, x: Global<u32>) {
    let b = block_idx().x;
    if thread_idx().x == 0 {
        let ticket = tickets.fetch_add(b, 1, Order::Relaxed, Scope::Device);
        if ticket == 0 { x.set(b, 1); }
    }
    if thread_idx().x == 32 {
        let ticket = tickets.fetch_add(b, 1, Order::Relaxed, Scope::Device);
        if ticket == 1 { x.set(b, 2); }
    }
}

#[tma_kernel(threads = 32)]
fn a_count_for_a_block_alone(count: Global<u32>, out: Global<u32>) {
    if lane_idx() == 0 {
        out.set(block_idx().x, count.fetch_add(0, 1, Order::Relaxed, Scope::Block));
    }
}

/// The index determines the thread of a block, but not the block.
#[tma_kernel(threads = 32)]
fn only_the_first_block_writes(x: Global<u32>, out: Global<u32>) {
    let t = thread_idx().x;
    if block_idx().x == 0 { x.set(t, 7); }
    out.set(block_idx().x * 32 + t, x.get(t));
}

/// Two blocks have the same index.
#[tma_kernel(threads = 32)]
fn blocks_in_pairs(x: Global<u32>, out: Global<u32>) {
    let i = block_idx().x / 2 * 32 + thread_idx().x;
    if block_idx().x % 2 == 0 { x.set(i, 7); } else { out.set(block_idx().x * 32 + thread_idx().x, x.get(i)); }
}

/// The barrier of the block does not order the blocks of a pair.
#[tma_kernel(threads = 32)]
fn blocks_in_pairs_behind_a_barrier(x: Global<u32>, out: Global<u32>) {
    let i = block_idx().x / 2;
    if block_idx().x % 2 == 0 && thread_idx().x == 0 { x.set(i, 1); }
    sync_threads();
    if block_idx().x % 2 == 1 && thread_idx().x == 0 { out.set(i, x.get(i)); }
}

/// Thread 1 of a block and thread 0 of the next have the same index.
#[tma_kernel(threads = 32)]
fn neighbours(x: Global<u32>, out: Global<u32>) {
    let t = thread_idx().x;
    let i = block_idx().x + t;
    if t == 0 { x.set(i, 1); }
    if t == 1 { out.set(i, x.get(i)); }
}

/// Thread 256 has the index of thread 0.
#[tma_kernel(threads = 512)]
fn an_index_of_eight_bits(x: Global<u32>, out: Global<u32>) {
    let t = thread_idx().x;
    let i = block_idx().x * 256 + t as u8 as u32;
    if t < 256 { x.set(i, 1); }
    if t >= 256 { out.set(block_idx().x * 256 + t, x.get(i)); }
}

/// Blocks of a pair count in one element.
#[tma_kernel(threads = 32)]
fn a_count_of_a_pair(x: Global<u32>) {
    x.fetch_add(block_idx().x / 2, 1, Order::Relaxed, Scope::Block);
}

/// The last thread reads an element that the next block writes.
#[tma_kernel(threads = 128)]
fn parts_of_blocks_that_overlap(x: Global<u32>, out: Global<u32>) {
    let t = thread_idx().x;
    let first = block_idx().x * 128;
    x.set(first + t, t);
    sync_threads();
    out.set(first + t, x.get(first + t + 1));
}

/// The copy reads more than the part of its block.
#[tma_kernel(threads = 64)]
fn a_copy_of_more_than_the_part(x: Global<u32>, out: Global<u32>) {
    let row: SharedArray<u32, 128> = shared();
    let full: Barrier = shared();
    let t = thread_idx().x;
    let first = block_idx().x * 64;
    if t == 0 {
        full.init(1);
        fence_barrier_init();
    }
    x.set(first + t, t);
    fence_proxy_async_global();
    sync_threads();
    if t == 0 {
        full.arrive_expect_tx(128 * 4);
        x.bulk_load(row, 0, 128, first, full);
    }
    full.wait(0);
    out.set(first + t, row.get(t + 64));
}

/// Blocks of a cluster that differ along y have the same index along x.
#[tma_kernel(threads = 64, cluster = [1, 2, 1])]
fn blocks_of_one_place_along_x(x: Global<u32>, out: Global<u32>) {
    let t = thread_idx().x;
    let first = block_idx().x * 64;
    if cluster_rank() == 0 { x.set(first + t, t); }
    sync_threads();
    if cluster_rank() == 1 { out.set(first + t, x.get(first + 63 - t)); }
}

/// The wait is another thread's: it says nothing about this copy.
#[tma_kernel(threads = 64)]
fn a_copy_that_another_thread_waits_for(x: Global<u32>, out: Global<u32>, counter: Global<u32>) {
    let row: SharedArray<u32, 64> = shared();
    let t = thread_idx().x;
    row.set(t, t);
    fence_proxy_async();
    sync_threads();
    if block_idx().x > 0 {
        if t == 0 {
            x.bulk_store(block_idx().x * 64, row, 0, 64);
            bulk_commit_group();
            bulk_wait_group_read::<0>();
        }
        if t == 32 { bulk_wait_group::<0>(); }
    }
    sync_grid(counter);
    if block_idx().x == 0 { out.set(t, x.get(64 + t)); }
}
