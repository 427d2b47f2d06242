// A pipeline is unused as a whole or in parts.
#[tma_kernel(threads = 32)]
fn whole() {
    let ring = shared::<Pipeline<(Tile<f32, Shape1<32>>,), 2>>();
    ring.init(1);
}

#[tma_kernel(threads = 32)]
fn in_parts() {
    let ring = shared::<Pipeline<(Tile<f32, Shape1<32>>,), 2>>();
    let mut p = ring.producer();
    let slot = p.wait();
}

#[tma_kernel(threads = 32)]
fn on_purpose() {
    let _ring = shared::<Pipeline<(Tile<f32, Shape1<32>>,), 2>>();
    _ring.init(1);
}
