// What multicast and sliced loads take.
#[tma_kernel(threads = 32, cluster = 2)]
fn k(n: u32, out: Global<u32>, map: TensorMap<Tile<f32, Shape2<8, 8>>>) {
    let tile: Tile<f32, Shape2<8, 8>> = shared();
    let all: SharedArray<u32, 4> = shared();
    let full: Barrier = shared();
    map.load_multicast(tile, [0, 0], full, n);
    map.load_sliced(tile, [0, 0], full, 0);
    map.load_sliced(tile, [0, 0], full, ClusterAxis::W);
    map.load_sliced(all, [0, 0], full, ClusterAxis::X);
    let axis = if n > 0 { ClusterAxis::X } else { ClusterAxis::Y };
}
