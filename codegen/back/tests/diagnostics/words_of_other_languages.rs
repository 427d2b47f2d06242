// Words of other languages, and what they are here.
#[tma_kernel(threads = 32)]
fn k(out: Global<u32>) {
    let tile: Tile<f32, Shape2<8, 8>> = shared();
    __syncthreads();
    out.set(threadIdx.x, 1);
    let x = __shfl_xor_sync(1, 2, 3);
    wgmma(tile, tile);
    let x = expf(1.0);
    ldmatrix(tile);
    let x = 1.0f32;
    let y = x.exp();
    atomicAdd(out, 1);
    let x = tl.load(out);
    let x: half = 1;
    println!("x");
}
