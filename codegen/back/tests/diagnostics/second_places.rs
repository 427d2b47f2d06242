// A label shows the second place that an error is about, in its own words.
#[tma_kernel(threads = 32, min_blocks = 2,
    threads = 64)]
fn twice() {}

#[tma_kernel(threads = 32)]
fn unlike(src: TensorMap<Tile<f32, Shape2<8, 8>>>) {
    let tile: Tile<f32, Shape2<8, 16>> = shared();
    let full: Barrier = shared();
    src.load(tile, [0, 0], full);
}
