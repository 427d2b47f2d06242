// A warning does not keep a kernel from being accepted. What one instance uses is used.
#[tma_kernel(threads = 32)]
fn only_initialised() {
    let full: Barrier = shared();
    full.init(1);
}

#[tma_kernel(threads = 32, instances(a = <1>, b = <2>))]
fn used_by_one_instance<const N: u32>(out: Global<u32>) {
    let words: SharedArray<u32, 4> = shared();
    if N > 1 {
        words.set(0, 1);
    }
    out.set(0, N);
}

#[tma_kernel(threads = 32, instances(a = <1>, b = <2>))]
fn used_by_no_instance<const N: u32>(out: Global<u32>) {
    let words: SharedArray<u32, 4> = shared();
    if N > 2 {
        words.set(0, 1);
    }
    out.set(0, N);
}
