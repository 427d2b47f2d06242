//! Elements of global memory whose accesses are ordered, or made by one thread.

#[tma_kernel(threads = 64)]
fn a_barrier_between(x: Global<u32>, out: Global<u32>) {
    let b = block_idx().x;
    if thread_idx().x == 0 { x.set(b, 1); }
    sync_threads();
    if thread_idx().x == 32 { out.set(b, x.get(b)); }
}

#[tma_kernel(threads = 64)]
fn the_same_thread(x: Global<u32>, out: Global<u32>) {
    let b = block_idx().x;
    let t = thread_idx().x;
    if t == 0 { x.set(b, 1); }
    if t == 0 { out.set(b, x.get(b)); }
}
