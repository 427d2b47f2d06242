// Bulk copies to other blocks keep the rules of all bulk copies, and name another block of the
// cluster.
#[tma_kernel(threads = 64, cluster = 2)]
fn parsed(g: Global<u32>, n: u32) {
    let a: SharedArray<u32, 64> = shared();
    let s: SharedArray<u32, 32> = shared();
    let h: SharedArray<f16, 64> = shared();
    let b: Barrier = shared();
    a.bulk_copy_to(remote(h, 1), 0, 8, remote(b, 1));
    a.bulk_copy_to(s, 0, 8, remote(b, 1));
    a.bulk_copy_to(remote(s, 1), 0, 8, b);
    h.bulk_reduce_add_to(remote(h, 1), 0, 8, remote(b, 1));
}

#[tma_kernel(threads = 64, cluster = 2)]
fn checked(g: Global<u32>, n: u32) {
    let a: SharedArray<u32, 64> = shared();
    let s: SharedArray<u32, 32> = shared();
    let h: SharedArray<f16, 64> = shared();
    let b: Barrier = shared();
    a.bulk_copy_to(remote(s, 1), 0, 64, remote(b, 1));
    a.bulk_copy_to(remote(s, 1), 0, 6, remote(b, 1));
    a.bulk_copy_to(remote(s, 2), 0, 8, remote(b, 1));
    a.bulk_copy_to(remote(s, cluster_rank()), 0, 8, remote(b, cluster_rank()));
    g.bulk_load_multicast(a, 0, 64, 0, b, 0b100);
}

#[tma_kernel(threads = 64)]
fn alone(g: Global<u32>, n: u32) {
    let a: SharedArray<u32, 64> = shared();
    let s: SharedArray<u32, 32> = shared();
    let h: SharedArray<f16, 64> = shared();
    let b: Barrier = shared();
    g.bulk_load_multicast(a, 0, 64, 0, b, 1);
}
