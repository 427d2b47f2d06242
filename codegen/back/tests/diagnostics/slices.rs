// A tile is sliced along its outermost dimension of more than one element.
#[tma_kernel(threads = 32, cluster = 2)]
fn other_dimension(map: TensorMap<Tile<f32, Shape3<2, 8, 8>>>) {
    let w: Tile<f32, Shape3<2, 16, 8>> = shared();
    let b: Barrier = shared();
    map.load_sliced(w, [0; 3], b, ClusterAxis::X);
}

#[tma_kernel(threads = 32, cluster = 2)]
fn as_large(map: TensorMap<Tile<f32, Shape3<1, 8, 8>>>) {
    let w: Tile<f32, Shape3<1, 8, 8>> = shared();
    let b: Barrier = shared();
    map.load_sliced(w, [0; 3], b, ClusterAxis::X);
}

#[tma_kernel(threads = 32, cluster = 2)]
fn too_thin(map: TensorMap<Tile<f32, Shape3<1, 2, 8>>>) {
    let w: Tile<f32, Shape3<1, 4, 8>> = shared();
    let b: Barrier = shared();
    map.load_sliced(w, [0; 3], b, ClusterAxis::X);
}
