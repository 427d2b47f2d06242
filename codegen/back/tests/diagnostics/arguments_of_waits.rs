// Waits for groups take a constant in angle brackets; a wait is told its parity, and `wait_next`
// its phase.
#[tma_kernel(threads = 32)]
fn k(out: Global<u32>) {
    let full: Barrier = shared();
    bulk_wait_group_read(0);
    bulk_wait_group();
    full.wait();
    full.arrive(1);
    full.wait_next(0);
    full.wait_next();
}
