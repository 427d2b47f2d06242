//! Code that the programs of this package share: a kernel, and bindings for other languages.
//!
//! Built as a C library, it is what `python/torch_scale.py` and `python/torch_dlpack.py` load.

pub mod c_abi;
pub mod dlpack;

use tma_runtime::prelude::*;

/// `dst = src × factor`, one block per tile.
#[tma_kernel(threads = 128)]
pub fn scale(
    src: TensorMap<Tile<f32, Shape2<64, 32>>>,
    dst: TensorMap<Tile<f32, Shape2<64, 32>>>,
    factor: f32,
) {
    let tile: Tile<f32, Shape2<64, 32>> = shared();
    let full: Barrier = shared();
    let leader = thread_idx().x == 0;
    if leader {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, src.block_tile(), full);
    }
    sync_threads();
    full.wait(0);
    for i in (thread_idx().x..64 * 32).step_by(128) {
        let element = [i / 32, i % 32];
        tile.set(element, tile.get(element) * factor);
    }
    fence_proxy_async();
    sync_threads();
    if leader {
        dst.store(dst.block_tile(), tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// A matrix of numbers that are exact also when they are scaled by small ones, row by row.
pub fn matrix([rows, cols]: [usize; 2]) -> Vec<f32> {
    (0..rows * cols).map(|i| (i % 1000) as f32).collect()
}

/// Returns the expected result of `scale`, computed in plain Rust.
pub fn scaled(values: &[f32], factor: f32) -> Vec<f32> {
    values.iter().map(|x| x * factor).collect()
}
