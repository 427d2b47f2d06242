// Tiles of a slot are fields, and typed.
#[tma_kernel(threads = 32)]
fn k0(n: u32, out: Global<u32>, map: TensorMap<Tile<f32, Shape2<8, 8>>>) {
    let ring: Pipeline<(Tile<f32, Shape2<2, 8>>, Tile<f32, Shape2<8, 8>>), 2> = shared();
    let mut p = ring.producer();
    let s = p.acquire();
    map.load(s.0, [0, 0], s.barrier());
}

#[tma_kernel(threads = 32)]
fn k1(n: u32, out: Global<u32>, map: TensorMap<Tile<f32, Shape2<8, 8>>>) {
    let ring: Pipeline<(Tile<f32, Shape2<2, 8>>, Tile<f32, Shape2<8, 8>>), 2> = shared();
    let mut p = ring.producer();
    let s = p.acquire();
    map.load(s.2, [0, 0], s.barrier());
}

#[tma_kernel(threads = 32)]
fn k2(n: u32, out: Global<u32>, map: TensorMap<Tile<f32, Shape2<8, 8>>>) {
    let ring: Pipeline<(Tile<f32, Shape2<2, 8>>, Tile<f32, Shape2<8, 8>>), 2> = shared();
    let mut p = ring.producer();
    let s = p.wait();
    map.load(s.1, [0, 0], map);
}
