// Slots are released to blocks of the cluster only.
#[tma_kernel(threads = 64, cluster = 2)]
fn beyond(n: u32) {
    let ring: Pipeline<(Tile<f32, Shape2<8, 8>>,), 1> = shared();
    let mut c = ring.consumer();
    let slot = c.wait();
    slot.release_to(2);
}

#[tma_kernel(threads = 64)]
fn alone(n: u32) {
    let ring: Pipeline<(Tile<f32, Shape2<8, 8>>,), 1> = shared();
    let mut c = ring.consumer();
    let slot = c.wait();
    slot.release_to(0);
    slot.release_cluster();
}
