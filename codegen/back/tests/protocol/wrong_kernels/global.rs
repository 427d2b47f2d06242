//! Global memory that several blocks, or several threads, access without an order.

/// Each block reads its neighbour's writes.
#[tma_kernel(threads = 32)]
fn a_neighbour(parts: Global<u32>, out: Global<u32>) {
    let block = block_idx().x;
    parts.set(block * 32 + lane_idx(), block + lane_idx());
    let next = (block + 1) % grid_dim().x;
    out.set(block * 32 + lane_idx(), parts.get(next * 32 + lane_idx()));
}

/// The counter determines which block is last, but orders nothing.
#[tma_kernel(threads = 32)]
fn a_last_block_without_orders(parts: Global<u32>, count: Global<u32>, out: Global<u32>) {
    let last: SharedArray<u32, 1> = shared();
    if lane_idx() == 0 {
        parts.set(block_idx().x, block_idx().x + 7);
        last.set(0, count.fetch_add(0, 1, Order::Relaxed, Scope::Device));
    }
    sync_threads();
    if last.get(0) + 1 == grid_dim().x && lane_idx() == 0 {
        let mut sum = 0;
        for block in 0..grid_dim().x { sum += parts.get(block); }
        out.set(0, sum);
    }
}

/// The barrier comes before the reads, but none separates them from the next round's writes.
#[tma_kernel(threads = 32)]
fn one_meeting_a_round(counter: Global<u32>, sums: Global<u32>, out: Global<u32>) {
    let block = block_idx().x;
    let mut sum = 0;
    for round in 0..4u32 {
        sums.set(block * 32 + lane_idx(), round + block);
        sync_grid(counter);
        sum += sums.get((block + 1) % grid_dim().x * 32 + lane_idx());
    }
    out.set(block * 32 + lane_idx(), sum);
}

/// A plain write resets a counter that others add to.
#[tma_kernel(threads = 32)]
fn a_plain_reset(count: Global<u32>) {
    if lane_idx() == 0 { count.set(0, 0); }
    count.fetch_add(0, 1, Order::Relaxed, Scope::Device);
}

#[tma_kernel(threads = 32)]
fn all_write_one(out: Global<u32>) {
    out.set(0, thread_idx().x);
}

/// All threads read the element that the first one writes.
#[tma_kernel(threads = 64)]
fn a_place_of_one_thread(g: Global<u32>, out: Global<u32>) {
    if thread_idx().x == 0 { g.set(0, 7); }
    out.set(block_idx().x * 64 + thread_idx().x, g.get(0));
}

/// The first block writes the elements that the others read.
#[tma_kernel(threads = 64)]
fn a_place_of_one_block(g: Global<u32>, out: Global<u32>) {
    let t = thread_idx().x;
    if block_idx().x == 0 { g.set(t, 7); } else { out.set(block_idx().x * 64 + t, g.get(t)); }
}

/// The second warp reads the elements that the first one writes, by the same expression.
#[tma_kernel(threads = 64)]
fn a_place_of_another_warp(g: Global<u32>, out: Global<u32>) {
    let t = thread_idx().x;
    if t < 32 { g.set(block_idx().x * 32 + t % 32, 7); }
    if t >= 32 { out.set(block_idx().x * 64 + t, g.get(block_idx().x * 32 + t % 32)); }
}

/// Each block goes over the words of all blocks, from the last, which may not have started.
#[tma_kernel(threads = 32)]
fn looks_at_later_blocks(words: Global<u32>, out: Global<u32>) {
    if lane_idx() == 0 {
        words.store(block_idx().x, 1, Order::Relaxed, Scope::Device);
        let mut at = grid_dim().x;
        while at > 0 {
            if words.load(at - 1, Order::Relaxed, Scope::Device) != 0 { at -= 1; }
        }
        out.set(block_idx().x, 1);
    }
}

/// The same, where an iteration continues with the next one before it counts.
#[tma_kernel(threads = 32)]
fn counts_later_blocks(words: Global<u32>, out: Global<u32>) {
    if lane_idx() == 0 {
        words.fetch_add(block_idx().x, 1, Order::Relaxed, Scope::Device);
        let mut at = grid_dim().x;
        loop {
            if words.load(at - 1, Order::Relaxed, Scope::Device) == 0 { continue; }
            at -= 1;
            if at == 0 { break; }
        }
        out.set(block_idx().x, 1);
    }
}

/// Each block polls the words in rotation, until all blocks have come, which may not have started.
#[tma_kernel(threads = 32)]
fn looks_at_blocks_in_turn(words: Global<u32>, out: Global<u32>) {
    if lane_idx() == 0 {
        words.store(block_idx().x, 1, Order::Relaxed, Scope::Device);
        let mut at = 0;
        let mut come = 0;
        while come != (1 << grid_dim().x) - 1 {
            if words.load(at, Order::Relaxed, Scope::Device) != 0 { come |= 1 << at; }
            at = (at + 1) % grid_dim().x;
        }
        out.set(block_idx().x, 1);
    }
}
