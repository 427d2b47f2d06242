// A phase is passed by `&mut`.
#[tma_kernel(threads = 32)]
fn k0(n: u32, out: Global<u32>, map: TensorMap<Tile<f32, Shape2<8, 8>>>) {
    let b: Barrier = shared();
    let mut phase = Phase::new();
    b.wait_next(phase);
}

#[tma_kernel(threads = 32)]
fn k1(n: u32, out: Global<u32>, map: TensorMap<Tile<f32, Shape2<8, 8>>>) {
    let b: Barrier = shared();
    let mut phase = Phase::new();
    b.wait_next(&phase);
}

#[tma_kernel(threads = 32)]
fn k2(n: u32, out: Global<u32>, map: TensorMap<Tile<f32, Shape2<8, 8>>>) {
    let b: Barrier = shared();
    let mut phase = Phase::new();
    b.wait_next(0);
}

#[tma_kernel(threads = 32)]
fn k3(n: u32, out: Global<u32>, map: TensorMap<Tile<f32, Shape2<8, 8>>>) {
    let b: Barrier = shared();
    let mut phase = Phase::new();
    b.wait_next();
}

#[tma_kernel(threads = 32)]
fn k4(n: u32, out: Global<u32>, map: TensorMap<Tile<f32, Shape2<8, 8>>>) {
    let b: Barrier = shared();
    let mut phase = Phase::new();
    let other = Phase::first();
}
