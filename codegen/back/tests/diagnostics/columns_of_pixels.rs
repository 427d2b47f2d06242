// Columns of pixels: coordinates and offsets are those of the tensor, offsets fit the bits of their
// rank, and the type is pixels by channels and a rank.
#[tma_kernel(threads = 64)]
fn parsed(m: Im2colMap<Tile<f32, Shape2<16, 8>>, 4>, n: u32) {
    let t: Tile<f32, Shape2<16, 8>> = shared();
    let b: Barrier = shared();
    m.load(t, [0, 0], [0, 0], b);
    m.load(t, [0, 0, 0, 0], [0], b);
    m.load(t, [0, 0, 0, 0], [n, n], b);
    m.load(t, [0, 0, 0, 0], n, b);
    m.load(t, [0, 0, 0, 0], b);
}

#[tma_kernel(threads = 64)]
fn checked(m: Im2colMap<Tile<f32, Shape2<16, 8>>, 4>, n: u32) {
    let t: Tile<f32, Shape2<16, 8>> = shared();
    let b: Barrier = shared();
    m.load(t, [0, 0, 0, 2], [0, 0], b);
    m.store([0, -1, 0, 0], t);
    m.load(t, [0; 4], [0, 256], b);
}

#[tma_kernel(threads = 64)]
fn five(m: Im2colMap<Tile<f32, Shape2<16, 8>>, 5>, n: u32) {
    let t: Tile<f32, Shape2<16, 8>> = shared();
    let b: Barrier = shared();
    m.load(t, [0; 5], [0, 0, 32], b);
}

#[tma_kernel(threads = 64)]
fn six(m: Im2colMap<Tile<f32, Shape2<16, 8>>, 6>, n: u32) {
    let t: Tile<f32, Shape2<16, 8>> = shared();
    let b: Barrier = shared();
}

#[tma_kernel(threads = 64)]
fn line(m: Im2colMap<Tile<f32, Shape1<8>>, 4>, n: u32) {
    let t: Tile<f32, Shape2<16, 8>> = shared();
    let b: Barrier = shared();
}

#[tma_kernel(threads = 64)]
fn pixels(m: Im2colMap<Tile<f32, Shape2<1025, 8>>, 4>, n: u32) {
    let t: Tile<f32, Shape2<16, 8>> = shared();
    let b: Barrier = shared();
}

#[tma_kernel(threads = 64)]
fn channels(m: Im2colMap<Tile<f32, Shape2<16, 260>>, 4>, n: u32) {
    let t: Tile<f32, Shape2<16, 8>> = shared();
    let b: Barrier = shared();
}
