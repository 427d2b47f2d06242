// What writes does not start before the tensor.
#[tma_kernel(threads = 64)]
fn k(m: TensorMap<Tile<u32, Shape2<8, 64>>>, i: i32) {
    let t: Tile<u32, Shape2<8, 64>> = shared();
    m.store([-8, 0], t);
    m.store([0, -64], t);
    m.reduce_or([i, 4 - 8], t);
    let row = 0u32;
    m.store([row.wrapping_sub(8), 0], t);
}
