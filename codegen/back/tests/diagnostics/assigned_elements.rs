// Elements in memory are set by a method.
#[tma_kernel(threads = 32)]
fn k(out: Global<u32>) {
    let full: Barrier = shared();
    let tile: Tile<f32, Shape2<8, 8>> = shared();
    let row: SharedArray<u32, 8> = shared();
    let rows: Stages<SharedArray<u32, 8>, 2> = shared();
    out[0] = 1;
    out[0] += 1;
    row[3] = 1;
    let mut part = rows[0];
    part[3] = 1;
    tile[3] = 1.0;
    rows[1][3] = 1;
    let all = [1u32, 2];
    all[0] = 3;
}
