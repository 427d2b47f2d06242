//! Blocks that take different branches, ordered in some way, or without a need for an order.

/// The block that reads comes first, and signals when it has read.
#[tma_kernel(threads = 32)]
fn the_reader_goes_first(data: Global<u32>, flag: Global<u32>, out: Global<u32>) {
    let block = block_idx().x;
    if block == 1 {
        if lane_idx() == 0 { while flag.load(0, Order::Acquire, Scope::Device) == 0 {} }
        sync_warp();
        data.set(lane_idx(), 7);
    } else if block == 0 {
        out.set(lane_idx(), data.get(lane_idx()));
        sync_warp();
        if lane_idx() == 0 { flag.store(0, 1, Order::Release, Scope::Device); }
    }
}

/// Even iterations of one block write, and odd ones of the others read, so elements differ.
#[tma_kernel(threads = 32)]
fn elements_by_parity(data: Global<u32>, out: Global<u32>) {
    let block = block_idx().x;
    for i in 0..4u32 {
        if block == 0 {
            if i % 2 == 0 && lane_idx() == 0 { data.set(i, 7); }
        } else if i % 2 == 1 {
            out.set((block * 4 + i) * 32 + lane_idx(), data.get(i));
        }
    }
}

/// Each block skips the iterations that the others do not.
#[tma_kernel(threads = 32)]
fn turns_that_are_left_out(data: Global<u32>, out: Global<u32>) {
    let block = block_idx().x;
    let t = thread_idx().x;
    if block == 0 {
        for i in 0..4u32 { if i % 2 == 0 { continue; } data.set(i * 32 + t, 7); }
    } else {
        for i in 0..4u32 { if i % 2 == 1 { continue; } out.set((block * 4 + i) * 32 + t, data.get(i * 32 + t)); }
    }
}

/// The last block reads its own part, after a barrier of the block.
#[tma_kernel(threads = 32)]
fn the_last_block_reads_its_own(parts: Global<u32>, count: Global<u32>, out: Global<u32>) {
    let last: SharedArray<u32, 1> = shared();
    parts.set(block_idx().x * 32 + lane_idx(), lane_idx());
    sync_threads();
    if lane_idx() == 0 { last.set(0, count.fetch_add(0, 1, Order::Relaxed, Scope::Device)); }
    sync_threads();
    if last.get(0) == grid_dim().x - 1 {
        out.set(lane_idx(), parts.get(block_idx().x * 32 + 31 - lane_idx()));
    }
}

/// Two forms of one condition: the same blocks write and read.
#[tma_kernel(threads = 32)]
fn the_same_threads_by_two_conditions(x: Global<u32>, out: Global<u32>) {
    match block_idx().x == 0 { false => { x.set(thread_idx().x, 1); } true => {} }
    if block_idx().x == 0 { } else { out.set(thread_idx().x, x.get(thread_idx().x)); }
}
