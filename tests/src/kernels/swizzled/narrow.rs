//! Rows shorter than the span of their swizzle.
//!
//! What the copy engine brings is read with `get` and must be the tensor; what is written with `set` is taken away by
//! the copy engine and must be what was written.

use tma_runtime::prelude::*;

use super::check;
use crate::case::Case;

/// A case that runs a kernel of this file on its tile.
macro_rules! case {
    ($name:literal, $kernel:ident, $shape:expr) => {
        Case {
            name: $name,
            run: |device, _| {
                check(device, $shape, |on, grid, src, dst, seen, given| {
                    $kernel::launch(on, grid, src, dst, seen, given)
                })
            },
        }
    };
}

/// What is checked here.
pub(super) const CASES: &[Case] = &[
    case!("swizzles::narrow_32_u16", narrow_32_u16, [24, 8]),
    case!("swizzles::narrow_64_f32", narrow_64_f32, [24, 8]),
    case!("swizzles::narrow_128_f16", narrow_128_f16, [24, 32]),
    case!("swizzles::narrow_128_u32", narrow_128_u32, [24, 4]),
];

/// Rows of 8 `u16`, `Swizzle32`.
#[tma_kernel(threads = 128)]
pub fn narrow_32_u16(
    src: TensorMap<Tile<u16, Shape2<24, 8>, Swizzle32>>,
    dst: TensorMap<Tile<u16, Shape2<24, 8>, Swizzle32>>,
    seen: Global<u16>,
    given: Global<u16>,
) {
    let tile: Tile<u16, Shape2<24, 8>, Swizzle32> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, [0, 0], full);
    }
    sync_threads();
    full.wait(0);
    for i in (thread_idx().x..tile.rows() * tile.cols()).step_by(128) {
        let at = [i / tile.cols(), i % tile.cols()];
        seen.set(i, tile.get(at));
        tile.set(at, given.get(i));
    }
    fence_proxy_async();
    sync_threads();
    if thread_idx().x == 0 {
        dst.store([0, 0], tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// Rows of 8 `f32`, `Swizzle64`.
#[tma_kernel(threads = 128)]
pub fn narrow_64_f32(
    src: TensorMap<Tile<f32, Shape2<24, 8>, Swizzle64>>,
    dst: TensorMap<Tile<f32, Shape2<24, 8>, Swizzle64>>,
    seen: Global<f32>,
    given: Global<f32>,
) {
    let tile: Tile<f32, Shape2<24, 8>, Swizzle64> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, [0, 0], full);
    }
    sync_threads();
    full.wait(0);
    for i in (thread_idx().x..tile.rows() * tile.cols()).step_by(128) {
        let at = [i / tile.cols(), i % tile.cols()];
        seen.set(i, tile.get(at));
        tile.set(at, given.get(i));
    }
    fence_proxy_async();
    sync_threads();
    if thread_idx().x == 0 {
        dst.store([0, 0], tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// Rows of 32 `f16`, `Swizzle128`.
#[tma_kernel(threads = 128)]
pub fn narrow_128_f16(
    src: TensorMap<Tile<f16, Shape2<24, 32>, Swizzle128>>,
    dst: TensorMap<Tile<f16, Shape2<24, 32>, Swizzle128>>,
    seen: Global<f16>,
    given: Global<f16>,
) {
    let tile: Tile<f16, Shape2<24, 32>, Swizzle128> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, [0, 0], full);
    }
    sync_threads();
    full.wait(0);
    for i in (thread_idx().x..tile.rows() * tile.cols()).step_by(128) {
        let at = [i / tile.cols(), i % tile.cols()];
        seen.set(i, tile.get(at));
        tile.set(at, given.get(i));
    }
    fence_proxy_async();
    sync_threads();
    if thread_idx().x == 0 {
        dst.store([0, 0], tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// Rows of 4 `u32`, `Swizzle128`.
#[tma_kernel(threads = 128)]
pub fn narrow_128_u32(
    src: TensorMap<Tile<u32, Shape2<24, 4>, Swizzle128>>,
    dst: TensorMap<Tile<u32, Shape2<24, 4>, Swizzle128>>,
    seen: Global<u32>,
    given: Global<u32>,
) {
    let tile: Tile<u32, Shape2<24, 4>, Swizzle128> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, [0, 0], full);
    }
    sync_threads();
    full.wait(0);
    for i in (thread_idx().x..tile.rows() * tile.cols()).step_by(128) {
        let at = [i / tile.cols(), i % tile.cols()];
        seen.set(i, tile.get(at));
        tile.set(at, given.get(i));
    }
    fence_proxy_async();
    sync_threads();
    if thread_idx().x == 0 {
        dst.store([0, 0], tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}
