// The low bits of a coordinate are known through arithmetic, variables that are assigned once, and
// the steps of loops.
#[tma_kernel(threads = 64)]
fn arithmetic(dst: TensorMap<Tile<f16, Shape2<8, 64>>>, n: u32, i: i32) {
    let t: Tile<f16, Shape2<8, 64>> = shared();
    dst.store([0, n * 8 + 1], t);
    dst.store([0, n * 2 + 1], t);
    dst.store([0, (n << 4) - 4], t);
    dst.store([0, n * 24 + 12], t);
    dst.store([0, (n & !7) ^ 3], t);
    dst.store([0, (n * 64 | 6) as i32], t);
    dst.store([0, -(i * 16 + 4) + 64], t);
    dst.store([0, (n * 64 + 16) >> 2], t);
    dst.store([0, (n * 4 + 2) * (n * 4 + 2)], t);
    dst.store([0, !(n * 8)], t);
    dst.store([0, 8 * 8 - 4], t);
}

#[tma_kernel(threads = 64)]
fn variables(dst: TensorMap<Tile<f16, Shape2<8, 64>>>, n: u32, i: i32) {
    let t: Tile<f16, Shape2<8, 64>> = shared();
    let x = n * 8 + 4;
    let at = [0, x];
    dst.store([0, at[1]], t);
    let x = [n * 8 + 2; 3];
    let y = x;
    dst.store([0, y[2]], t);
}

#[tma_kernel(threads = 64)]
fn steps(dst: TensorMap<Tile<f16, Shape2<8, 64>>>, n: u32, i: i32) {
    let t: Tile<f16, Shape2<8, 64>> = shared();
    for at in (4..n).step_by(64) {
        dst.store([0, at], t);
    }
    for at in (n * 8 + 1..n).step_by(2) {
        dst.store([0, at], t);
    }
}
