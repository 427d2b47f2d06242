// The state of a pipeline is held by one variable: each kernel has one mistake, of which one error
// tells.
#[tma_kernel(threads = 32)]
fn k0(n: u32, out: Global<u32>, map: TensorMap<Tile<f32, Shape2<8, 8>>>) {
    let ring: Pipeline<(Tile<f32, Shape2<2, 8>>, Tile<f32, Shape2<8, 8>>), 2> = shared();
    let slot = ring.consumer().wait();
}

#[tma_kernel(threads = 32)]
fn k1(n: u32, out: Global<u32>, map: TensorMap<Tile<f32, Shape2<8, 8>>>) {
    let ring: Pipeline<(Tile<f32, Shape2<2, 8>>, Tile<f32, Shape2<8, 8>>), 2> = shared();
    let p = if n > 0 { ring.producer() } else { ring.producer() };
}

#[tma_kernel(threads = 32)]
fn k2(n: u32, out: Global<u32>, map: TensorMap<Tile<f32, Shape2<8, 8>>>) {
    let ring: Pipeline<(Tile<f32, Shape2<2, 8>>, Tile<f32, Shape2<8, 8>>), 2> = shared();
    let states = [ring.producer(); 2];
}

#[tma_kernel(threads = 32)]
fn k3(n: u32, out: Global<u32>, map: TensorMap<Tile<f32, Shape2<8, 8>>>) {
    let ring: Pipeline<(Tile<f32, Shape2<2, 8>>, Tile<f32, Shape2<8, 8>>), 2> = shared();
    let p = ring.producer();
    p = ring.producer();
}

#[tma_kernel(threads = 32)]
fn k4(n: u32, out: Global<u32>, map: TensorMap<Tile<f32, Shape2<8, 8>>>) {
    let ring: Pipeline<(Tile<f32, Shape2<2, 8>>, Tile<f32, Shape2<8, 8>>), 2> = shared();
    let mut p = ring.producer();
    p = ring.consumer();
}

#[tma_kernel(threads = 32)]
fn k5(n: u32, out: Global<u32>, map: TensorMap<Tile<f32, Shape2<8, 8>>>) {
    let ring: Pipeline<(Tile<f32, Shape2<2, 8>>, Tile<f32, Shape2<8, 8>>), 2> = shared();
    let mut p = ring.producer();
    p += 1;
}

#[tma_kernel(threads = 32)]
fn k6(n: u32, out: Global<u32>, map: TensorMap<Tile<f32, Shape2<8, 8>>>) {
    let ring: Pipeline<(Tile<f32, Shape2<2, 8>>, Tile<f32, Shape2<8, 8>>), 2> = shared();
    let mut n = 0u32;
    n = ring.producer();
}

#[tma_kernel(threads = 32)]
fn k7(n: u32, out: Global<u32>, map: TensorMap<Tile<f32, Shape2<8, 8>>>) {
    let ring: Pipeline<(Tile<f32, Shape2<2, 8>>, Tile<f32, Shape2<8, 8>>), 2> = shared();
    let other: Pipeline<(Tile<f32, Shape2<2, 8>>, Tile<f32, Shape2<8, 8>>), 2> = shared();
    let mut a = ring.consumer();
    let mut b = other.consumer();
    let mut slot = a.wait();
    slot = b.wait();
}
