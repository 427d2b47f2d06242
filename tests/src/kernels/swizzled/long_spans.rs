//! Rows as long as the swizzle allows: spans of 64 and 128 bytes.
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
    case!("swizzles::full_64_e4m3", full_64_e4m3, [24, 64]),
    case!("swizzles::full_64_f16", full_64_f16, [24, 32]),
    case!("swizzles::full_64_u32", full_64_u32, [24, 16]),
    case!("swizzles::full_64_u64", full_64_u64, [24, 8]),
    case!("swizzles::full_128_u8", full_128_u8, [24, 128]),
    case!("swizzles::full_128_bf16", full_128_bf16, [24, 64]),
    case!("swizzles::full_128_f32", full_128_f32, [24, 32]),
    case!("swizzles::full_128_f64", full_128_f64, [24, 16]),
];

/// Rows of 64 `e4m3`, `Swizzle64`.
#[tma_kernel(threads = 128)]
pub fn full_64_e4m3(
    src: TensorMap<Tile<e4m3, Shape2<24, 64>, Swizzle64>>,
    dst: TensorMap<Tile<e4m3, Shape2<24, 64>, Swizzle64>>,
    seen: Global<e4m3>,
    given: Global<e4m3>,
) {
    let tile: Tile<e4m3, Shape2<24, 64>, Swizzle64> = shared();
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

/// Rows of 32 `f16`, `Swizzle64`.
#[tma_kernel(threads = 128)]
pub fn full_64_f16(
    src: TensorMap<Tile<f16, Shape2<24, 32>, Swizzle64>>,
    dst: TensorMap<Tile<f16, Shape2<24, 32>, Swizzle64>>,
    seen: Global<f16>,
    given: Global<f16>,
) {
    let tile: Tile<f16, Shape2<24, 32>, Swizzle64> = shared();
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

/// Rows of 16 `u32`, `Swizzle64`.
#[tma_kernel(threads = 128)]
pub fn full_64_u32(
    src: TensorMap<Tile<u32, Shape2<24, 16>, Swizzle64>>,
    dst: TensorMap<Tile<u32, Shape2<24, 16>, Swizzle64>>,
    seen: Global<u32>,
    given: Global<u32>,
) {
    let tile: Tile<u32, Shape2<24, 16>, Swizzle64> = shared();
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

/// Rows of 8 `u64`, `Swizzle64`.
#[tma_kernel(threads = 128)]
pub fn full_64_u64(
    src: TensorMap<Tile<u64, Shape2<24, 8>, Swizzle64>>,
    dst: TensorMap<Tile<u64, Shape2<24, 8>, Swizzle64>>,
    seen: Global<u64>,
    given: Global<u64>,
) {
    let tile: Tile<u64, Shape2<24, 8>, Swizzle64> = shared();
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

/// Rows of 128 `u8`, `Swizzle128`.
#[tma_kernel(threads = 128)]
pub fn full_128_u8(
    src: TensorMap<Tile<u8, Shape2<24, 128>, Swizzle128>>,
    dst: TensorMap<Tile<u8, Shape2<24, 128>, Swizzle128>>,
    seen: Global<u8>,
    given: Global<u8>,
) {
    let tile: Tile<u8, Shape2<24, 128>, Swizzle128> = shared();
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

/// Rows of 64 `bf16`, `Swizzle128`.
#[tma_kernel(threads = 128)]
pub fn full_128_bf16(
    src: TensorMap<Tile<bf16, Shape2<24, 64>, Swizzle128>>,
    dst: TensorMap<Tile<bf16, Shape2<24, 64>, Swizzle128>>,
    seen: Global<bf16>,
    given: Global<bf16>,
) {
    let tile: Tile<bf16, Shape2<24, 64>, Swizzle128> = shared();
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

/// Rows of 32 `f32`, `Swizzle128`.
#[tma_kernel(threads = 128)]
pub fn full_128_f32(
    src: TensorMap<Tile<f32, Shape2<24, 32>, Swizzle128>>,
    dst: TensorMap<Tile<f32, Shape2<24, 32>, Swizzle128>>,
    seen: Global<f32>,
    given: Global<f32>,
) {
    let tile: Tile<f32, Shape2<24, 32>, Swizzle128> = shared();
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

/// Rows of 16 `f64`, `Swizzle128`.
#[tma_kernel(threads = 128)]
pub fn full_128_f64(
    src: TensorMap<Tile<f64, Shape2<24, 16>, Swizzle128>>,
    dst: TensorMap<Tile<f64, Shape2<24, 16>, Swizzle128>>,
    seen: Global<f64>,
    given: Global<f64>,
) {
    let tile: Tile<f64, Shape2<24, 16>, Swizzle128> = shared();
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
