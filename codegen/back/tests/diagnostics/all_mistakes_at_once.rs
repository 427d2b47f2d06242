// All mistakes of a kernel are told at once.
#[tma_kernel(threads = 32)]
fn k(out: Global<f32>, n: u32) {
    let full: Barrier = shared();
    full.wiat(0);
    let x: f32 = n;
    out.set(0, x + totl);
    n = 4;
    if n > 1 {
        let late: Barrier = shared();
        late.init(1);
    }
}
