// Suggestions are near, and of the right kind: `tile` is a variable, and no nearer to `twice` than
// two letters.
#[tma_kernel(threads = 32)]
fn k(out: Global<u32>) {
    let full: Barrier = shared();
    let tile: Tile<f32, Shape2<8, 8>> = shared();
    let row: SharedArray<u32, 8> = shared();
    let rows: Stages<SharedArray<u32, 8>, 2> = shared();
    out.set(0, twice(1));
    sync_thread();
    out.set(thread_idx.x, 1);
}
