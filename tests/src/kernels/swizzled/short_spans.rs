//! Rows as long as the swizzle allows: no swizzle, and spans of 32 bytes.
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
    case!("swizzles::full_none_u8", full_none_u8, [24, 48]),
    case!("swizzles::full_none_bf16", full_none_bf16, [24, 40]),
    case!("swizzles::full_none_i32", full_none_i32, [24, 20]),
    case!("swizzles::full_none_f64", full_none_f64, [24, 10]),
    case!("swizzles::full_32_e5m2", full_32_e5m2, [24, 32]),
    case!("swizzles::full_32_u16", full_32_u16, [24, 16]),
    case!("swizzles::full_32_f32", full_32_f32, [24, 8]),
    case!("swizzles::full_32_i64", full_32_i64, [24, 4]),
];

/// Rows of 48 `u8`, `NoSwizzle`.
#[tma_kernel(threads = 128)]
pub fn full_none_u8(
    src: TensorMap<Tile<u8, Shape2<24, 48>>>,
    dst: TensorMap<Tile<u8, Shape2<24, 48>>>,
    seen: Global<u8>,
    given: Global<u8>,
) {
    let tile: Tile<u8, Shape2<24, 48>> = shared();
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

/// Rows of 40 `bf16`, `NoSwizzle`.
#[tma_kernel(threads = 128)]
pub fn full_none_bf16(
    src: TensorMap<Tile<bf16, Shape2<24, 40>>>,
    dst: TensorMap<Tile<bf16, Shape2<24, 40>>>,
    seen: Global<bf16>,
    given: Global<bf16>,
) {
    let tile: Tile<bf16, Shape2<24, 40>> = shared();
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

/// Rows of 20 `i32`, `NoSwizzle`.
#[tma_kernel(threads = 128)]
pub fn full_none_i32(
    src: TensorMap<Tile<i32, Shape2<24, 20>>>,
    dst: TensorMap<Tile<i32, Shape2<24, 20>>>,
    seen: Global<i32>,
    given: Global<i32>,
) {
    let tile: Tile<i32, Shape2<24, 20>> = shared();
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

/// Rows of 10 `f64`, `NoSwizzle`.
#[tma_kernel(threads = 128)]
pub fn full_none_f64(
    src: TensorMap<Tile<f64, Shape2<24, 10>>>,
    dst: TensorMap<Tile<f64, Shape2<24, 10>>>,
    seen: Global<f64>,
    given: Global<f64>,
) {
    let tile: Tile<f64, Shape2<24, 10>> = shared();
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

/// Rows of 32 `e5m2`, `Swizzle32`.
#[tma_kernel(threads = 128)]
pub fn full_32_e5m2(
    src: TensorMap<Tile<e5m2, Shape2<24, 32>, Swizzle32>>,
    dst: TensorMap<Tile<e5m2, Shape2<24, 32>, Swizzle32>>,
    seen: Global<e5m2>,
    given: Global<e5m2>,
) {
    let tile: Tile<e5m2, Shape2<24, 32>, Swizzle32> = shared();
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

/// Rows of 16 `u16`, `Swizzle32`.
#[tma_kernel(threads = 128)]
pub fn full_32_u16(
    src: TensorMap<Tile<u16, Shape2<24, 16>, Swizzle32>>,
    dst: TensorMap<Tile<u16, Shape2<24, 16>, Swizzle32>>,
    seen: Global<u16>,
    given: Global<u16>,
) {
    let tile: Tile<u16, Shape2<24, 16>, Swizzle32> = shared();
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

/// Rows of 8 `f32`, `Swizzle32`.
#[tma_kernel(threads = 128)]
pub fn full_32_f32(
    src: TensorMap<Tile<f32, Shape2<24, 8>, Swizzle32>>,
    dst: TensorMap<Tile<f32, Shape2<24, 8>, Swizzle32>>,
    seen: Global<f32>,
    given: Global<f32>,
) {
    let tile: Tile<f32, Shape2<24, 8>, Swizzle32> = shared();
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

/// Rows of 4 `i64`, `Swizzle32`.
#[tma_kernel(threads = 128)]
pub fn full_32_i64(
    src: TensorMap<Tile<i64, Shape2<24, 4>, Swizzle32>>,
    dst: TensorMap<Tile<i64, Shape2<24, 4>, Swizzle32>>,
    seen: Global<i64>,
    given: Global<i64>,
) {
    let tile: Tile<i64, Shape2<24, 4>, Swizzle32> = shared();
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
