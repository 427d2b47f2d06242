//! A kernel for the tensor memory accelerator: it scales a matrix, tile by tile.

use tma_runtime::prelude::*;

/// `dst = factor * src`, one block per tile of 32 rows and 64 columns.
#[tma_kernel(threads = 128)]
pub fn scale(
    factor: f32,
    src: TensorMap<Tile<f32, Shape2<32, 64>>>,
    dst: TensorMap<Tile<f32, Shape2<32, 64>>>,
) {
    let tile: Tile<f32, Shape2<32, 64>> = shared();
    let full: Barrier = shared();
    let at = dst.block_tile();
    let thread = thread_idx().x;

    // One thread sets the barrier up, and starts the load.
    if thread == 0 {
        full.init(1);
        fence_barrier_init();
    }
    sync_threads();
    if thread == 0 {
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, at, full);
    }
    full.wait(0);

    // Each thread has 16 elements, in one column.
    for i in 0..16u32 {
        let place = [i * 2 + thread / 64, thread % 64];
        tile.set(place, factor * tile.get(place));
    }

    // The store must see what all threads have written.
    fence_proxy_async();
    sync_threads();
    if thread == 0 {
        dst.store(at, tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}
