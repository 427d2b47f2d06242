// Clusters in the attribute.
#[tma_kernel(threads = 32, nonportable_cluster)]
fn k0(out: Global<u32>) {
    out.set(0, 1);
}

#[tma_kernel(threads = 32, cluster = [1, 1, 1, 1])]
fn k1(out: Global<u32>) {
    out.set(0, 1);
}

#[tma_kernel(threads = 32, cluster = [])]
fn k2(out: Global<u32>) {
    out.set(0, 1);
}

#[tma_kernel(threads = 32, cluster = 2, cluster = 2)]
fn k3(out: Global<u32>) {
    out.set(0, 1);
}

#[tma_kernel(threads = 32, cluster = 2, nonportable_cluster, nonportable_cluster)]
fn k4(out: Global<u32>) {
    out.set(0, 1);
}

#[tma_kernel(threads = 32, clusters = 2)]
fn k5(out: Global<u32>) {
    out.set(0, 1);
}

#[tma_kernel(threads = 32, cluster = 0)]
fn k6(out: Global<u32>) {
    out.set(0, 1);
}

#[tma_kernel(threads = 32, cluster = [4, 4])]
fn k7(out: Global<u32>) {
    out.set(0, 1);
}

#[tma_kernel(threads = 32, cluster = [0xffff_ffff, 0xffff_ffff, 0xffff_ffff])]
fn k8(out: Global<u32>) {
    out.set(0, 1);
}

#[tma_kernel(threads = 32, cluster = 17, nonportable_cluster)]
fn k9(out: Global<u32>) {
    out.set(0, 1);
}
