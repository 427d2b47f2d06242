// Sliced loads are suggested where they can be: in a kernel with clusters, of a tiled map.
#[tma_kernel(threads = 32, cluster = 2)]
fn clusters(map: TensorMap<Tile<f32, Shape2<8, 8>>>) {
    map.load_slice();
    map.quirk();
}

#[tma_kernel(threads = 32)]
fn alone(map: TensorMap<Tile<f32, Shape2<8, 8>>>) {
    map.load_slice();
    map.quirk();
}

#[tma_kernel(threads = 32, cluster = 2)]
fn columns(map: Im2colMap<Tile<f32, Shape2<8, 8>>, 4>) {
    map.load_slice();
    map.quirk();
}
