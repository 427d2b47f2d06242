// A refused closure is reported where it is declared, and not where it is called.
#[tma_kernel(threads = 32)]
fn k(out: Global<u32>) {
    let f = |x: u32| x;
    out.set(0, f(1));
}
