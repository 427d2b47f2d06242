//! Elements of global memory that belong to no thread, and scopes that leave out who else accesses
//! them.

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

/// Another thread in each turn.
#[tma_kernel(threads = 64)]
fn a_thread_in_each_turn(x: Global<u32>, out: Global<u32>) {
    let b = block_idx().x;
    for i in 0..64 {
        if thread_idx().x == i { x.set(b, i); }
        if thread_idx().x == i { out.set(b * 64 + i, x.get(b)); }
    }
}

/// The tickets are taken in some order, and nothing orders what follows.
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
