//! Blocks that read all parts, but are not the last, or do not come after all others.

/// The last but one block.
#[tma_kernel(threads = 64)]
fn the_last_but_one_block_reads(parts: Global<u32>, count: Global<u32>, out: Global<u32>) {
    let is_last: SharedArray<bool, 1> = shared();
    parts.set(block_idx().x * 64 + thread_idx().x, 1);
    sync_threads();
    if thread_idx().x == 0 {
        let before = count.fetch_add(0, 1, Order::AcqRel, Scope::Device);
        is_last.set(0, before + 2 == grid_dim().x);
    }
    sync_threads();
    if is_last.get(0) {
        let mut sum = 0;
        for block in 0..grid_dim().x { sum += parts.get(block * 64 + thread_idx().x); }
        out.set(thread_idx().x, sum);
    }
}

/// Nothing orders the writes of other warps before the count.
#[tma_kernel(threads = 64)]
fn counted_before_all_have_written(parts: Global<u32>, count: Global<u32>, out: Global<u32>) {
    let is_last: SharedArray<bool, 1> = shared();
    parts.set(block_idx().x * 64 + thread_idx().x, 1);
    if thread_idx().x == 0 {
        let before = count.fetch_add(0, 1, Order::AcqRel, Scope::Device);
        is_last.set(0, before + 1 == grid_dim().x);
    }
    sync_threads();
    if is_last.get(0) {
        let mut sum = 0;
        for block in 0..grid_dim().x { sum += parts.get(block * 64 + thread_idx().x); }
        out.set(thread_idx().x, sum);
    }
}

/// A block that writes after it has counted itself.
#[tma_kernel(threads = 32)]
fn counted_and_then_written(parts: Global<u32>, count: Global<u32>, out: Global<u32>) {
    let is_last: SharedArray<bool, 1> = shared();
    if thread_idx().x == 0 {
        let before = count.fetch_add(0, 1, Order::AcqRel, Scope::Device);
        is_last.set(0, before + 1 == grid_dim().x);
    }
    parts.set(block_idx().x * 32 + thread_idx().x, 1);
    sync_threads();
    if is_last.get(0) {
        let mut sum = 0;
        for block in 0..grid_dim().x { sum += parts.get(block * 32 + thread_idx().x); }
        out.set(thread_idx().x, sum);
    }
}

/// Each block counts itself twice, so the block that reads comes in the middle.
#[tma_kernel(threads = 32)]
fn counted_twice(parts: Global<u32>, count: Global<u32>, out: Global<u32>) {
    let is_last: SharedArray<bool, 1> = shared();
    parts.set(block_idx().x * 32 + thread_idx().x, 1);
    sync_threads();
    if thread_idx().x == 0 {
        let before = count.fetch_add(0, 1, Order::AcqRel, Scope::Device);
        let _ = count.fetch_add(0, 1, Order::AcqRel, Scope::Device);
        is_last.set(0, before + 1 == grid_dim().x);
    }
    sync_threads();
    if is_last.get(0) {
        let mut sum = 0;
        for block in 0..grid_dim().x { sum += parts.get(block * 32 + thread_idx().x); }
        out.set(thread_idx().x, sum);
    }
}

/// Each block counts itself several times.
#[tma_kernel(threads = 32)]
fn counted_in_turns(parts: Global<u32>, count: Global<u32>, out: Global<u32>, turns: u32) {
    let is_last: SharedArray<bool, 1> = shared();
    parts.set(block_idx().x * 32 + thread_idx().x, 1);
    sync_threads();
    if thread_idx().x == 0 {
        let mut any = false;
        for _ in 0..turns {
            let before = count.fetch_add(0, 1, Order::AcqRel, Scope::Device);
            any = any || before + 1 == grid_dim().x;
        }
        is_last.set(0, any);
    }
    sync_threads();
    if is_last.get(0) {
        let mut sum = 0;
        for block in 0..grid_dim().x { sum += parts.get(block * 32 + thread_idx().x); }
        out.set(thread_idx().x, sum);
    }
}

/// The flag is set in the first block, too.
#[tma_kernel(threads = 32)]
fn told_by_two(parts: Global<u32>, count: Global<u32>, out: Global<u32>) {
    let is_last: SharedArray<bool, 1> = shared();
    parts.set(block_idx().x * 32 + thread_idx().x, 1);
    sync_threads();
    if thread_idx().x == 0 {
        let before = count.fetch_add(0, 1, Order::AcqRel, Scope::Device);
        is_last.set(0, before + 1 == grid_dim().x);
        if block_idx().x == 0 { is_last.set(0, true); }
    }
    sync_threads();
    if is_last.get(0) {
        let mut sum = 0;
        for block in 0..grid_dim().x { sum += parts.get(block * 32 + thread_idx().x); }
        out.set(thread_idx().x, sum);
    }
}

/// The fence before the count is missing, so the block does not release its part.
#[tma_kernel(threads = 32)]
fn counted_with_one_fence(parts: Global<u32>, count: Global<u32>, out: Global<u32>) {
    let is_last: SharedArray<bool, 1> = shared();
    parts.set(block_idx().x * 32 + thread_idx().x, 1);
    sync_threads();
    if thread_idx().x == 0 {
        let before = count.fetch_add(0, 1, Order::Relaxed, Scope::Device);
        fence();
        is_last.set(0, before + 1 == grid_dim().x);
    }
    sync_threads();
    if is_last.get(0) {
        let mut sum = 0;
        for block in 0..grid_dim().x { sum += parts.get(block * 32 + thread_idx().x); }
        out.set(thread_idx().x, sum);
    }
}

/// The branch in which the block is not the last.
#[tma_kernel(threads = 32)]
fn all_but_the_last(parts: Global<u32>, count: Global<u32>, out: Global<u32>) {
    let is_last: SharedArray<bool, 1> = shared();
    parts.set(block_idx().x * 32 + thread_idx().x, 1);
    sync_threads();
    if thread_idx().x == 0 {
        let before = count.fetch_add(0, 1, Order::AcqRel, Scope::Device);
        is_last.set(0, before + 1 == grid_dim().x);
    }
    sync_threads();
    match is_last.get(0) {
        false => {
            let mut sum = 0;
            for block in 0..grid_dim().x { sum += parts.get(block * 32 + thread_idx().x); }
            out.set(block_idx().x * 32 + thread_idx().x, sum);
        }
        true => {}
    }
}

/// The second fence comes after the other threads have been told.
#[tma_kernel(threads = 64)]
fn told_before_it_acquires(parts: Global<u32>, count: Global<u32>, out: Global<u32>) {
    let is_last: SharedArray<bool, 1> = shared();
    let told: Barrier = shared();
    parts.set(block_idx().x * 64 + thread_idx().x, 1);
    if thread_idx().x == 0 { told.init(1); }
    sync_threads();
    if thread_idx().x == 0 {
        fence();
        let before = count.fetch_add(0, 1, Order::Relaxed, Scope::Device);
        is_last.set(0, before + 1 == grid_dim().x);
        told.arrive();
        fence();
    }
    told.wait(0);
    if is_last.get(0) {
        let mut sum = 0;
        for block in 0..grid_dim().x { sum += parts.get(block * 64 + thread_idx().x); }
        out.set(thread_idx().x, sum);
    }
}

/// Each block that is not the last resets the counter, from which others still take tickets.
#[tma_kernel(threads = 32)]
fn tickets_that_are_handed_out_again(work: Global<u32>, out: Global<u32>) {
    if thread_idx().x == 0 {
        let ticket = work.fetch_add(0, 1, Order::Relaxed, Scope::Device);
        out.set(ticket, block_idx().x);
        if work.fetch_add(1, 1, Order::AcqRel, Scope::Device) != grid_dim().x - 1 {
            work.store(0, 0, Order::Relaxed, Scope::Device);
        }
    }
}

/// The block counts itself before it takes its ticket.
#[tma_kernel(threads = 32)]
fn tickets_taken_after_the_count(work: Global<u32>, out: Global<u32>) {
    if thread_idx().x == 0 {
        if work.fetch_add(1, 1, Order::AcqRel, Scope::Device) == grid_dim().x - 1 {
            work.store(0, 0, Order::Relaxed, Scope::Device);
        }
        let ticket = work.fetch_add(0, 1, Order::Relaxed, Scope::Device);
        out.set(ticket, block_idx().x);
    }
}
