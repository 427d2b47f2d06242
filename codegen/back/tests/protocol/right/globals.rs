//! Global memory that only one block accesses.

/// One thread writes an element that the block reads after a barrier.
#[tma_kernel(threads = 64)]
fn handed_to_the_block(g: Global<u32>, out: Global<u32>) {
    let t = thread_idx().x;
    if t == 0 { g.set(block_idx().x, 7); }
    sync_threads();
    out.set(block_idx().x * 64 + t, g.get(block_idx().x));
}

/// Each thread changes its own element, or leaves it.
#[tma_kernel(threads = 64)]
fn changed_in_place(g: Global<u32>, n: u32) {
    let i = block_idx().x * 64 + thread_idx().x;
    let x = g.get(i);
    if x > n { g.set(i, x - n); }
}

/// One thread of each block counts in an element of the block.
#[tma_kernel(threads = 64)]
fn counted_by_one(g: Global<u32>) {
    if thread_idx().x == 0 {
        let x = g.get(block_idx().x);
        g.set(block_idx().x, x + 1);
    }
}

/// One loop reads what another writes, over the same range.
#[tma_kernel(threads = 64)]
fn two_loops_over_a_range(g: Global<u32>) {
    let mut sum = 0;
    for i in (thread_idx().x..512).step_by(64) { sum += g.get(block_idx().x * 512 + i); }
    for i in (thread_idx().x..512).step_by(64) { g.set(block_idx().x * 512 + i, sum); }
}

/// Plain and strong accesses to elements that are certainly different.
#[tma_kernel(threads = 32)]
fn beside_a_counter(g: Global<u32>) {
    if thread_idx().x == 0 && block_idx().x == 0 { g.set(0, 3); }
    g.fetch_add(1, 1, Order::Relaxed, Scope::Device);
}
