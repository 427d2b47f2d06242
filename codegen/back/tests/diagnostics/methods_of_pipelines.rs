// Pipelines and their states have methods of their own.
#[tma_kernel(threads = 32)]
fn k0(n: u32, out: Global<u32>, map: TensorMap<Tile<f32, Shape2<8, 8>>>) {
    let ring: Pipeline<(Tile<f32, Shape2<2, 8>>, Tile<f32, Shape2<8, 8>>), 2> = shared();
    let mut c = ring.consumer();
    c.release();
}

#[tma_kernel(threads = 32)]
fn k1(n: u32, out: Global<u32>, map: TensorMap<Tile<f32, Shape2<8, 8>>>) {
    let ring: Pipeline<(Tile<f32, Shape2<2, 8>>, Tile<f32, Shape2<8, 8>>), 2> = shared();
    let mut c = ring.consumer();
    let s = c.acquire();
}

#[tma_kernel(threads = 32)]
fn k2(n: u32, out: Global<u32>, map: TensorMap<Tile<f32, Shape2<8, 8>>>) {
    let ring: Pipeline<(Tile<f32, Shape2<2, 8>>, Tile<f32, Shape2<8, 8>>), 2> = shared();
    let mut p = ring.producer();
    let s = p.wait();
    s.release();
}

#[tma_kernel(threads = 32)]
fn k3(n: u32, out: Global<u32>, map: TensorMap<Tile<f32, Shape2<8, 8>>>) {
    let ring: Pipeline<(Tile<f32, Shape2<2, 8>>, Tile<f32, Shape2<8, 8>>), 2> = shared();
    ring.init();
}

#[tma_kernel(threads = 32)]
fn k4(n: u32, out: Global<u32>, map: TensorMap<Tile<f32, Shape2<8, 8>>>) {
    let ring: Pipeline<(Tile<f32, Shape2<2, 8>>, Tile<f32, Shape2<8, 8>>), 2> = shared();
    ring.init(0);
}

#[tma_kernel(threads = 32)]
fn k5(n: u32, out: Global<u32>, map: TensorMap<Tile<f32, Shape2<8, 8>>>) {
    let ring: Pipeline<(Tile<f32, Shape2<2, 8>>, Tile<f32, Shape2<8, 8>>), 2> = shared();
    let other: Stages<Pipeline<(Tile<f32, Shape2<8, 8>>,), 2>, 2> = shared();
}
