//! Kernels of the conformance table: reductions, of `u32` for every rank, and of every element type
//! for rank 2.
//!
//! `op` is the number of the operation among those of the kernel.

use tma_runtime::prelude::*;

/// Rank 1.
#[tma_kernel(threads = 32, instances(
    plain = <NoSwizzle, 12>, span32 = <Swizzle32, 8>, span64 = <Swizzle64, 16>, span128 = <Swizzle128, 32>
))]
pub fn reduce_rank_1<W: Swizzle, const COLS: u32>(
    dst: TensorMap<Tile<u32, Shape1<COLS>, W>>,
    given: Global<u32>,
    op: u32,
    at0: i32,
) {
    let tile: Tile<u32, Shape1<COLS>, W> = shared();
    let at = [at0];
    for i in (lane_idx()..COLS).step_by(32) {
        tile.set([i], given.get(i));
    }
    fence_proxy_async();
    sync_threads();
    if thread_idx().x == 0 {
        match op {
            // for op in ReduceOp: {i or _} => dst.reduce_{op}(at, tile),
            0 => dst.reduce_add(at, tile),
            1 => dst.reduce_min(at, tile),
            2 => dst.reduce_max(at, tile),
            3 => dst.reduce_inc(at, tile),
            4 => dst.reduce_dec(at, tile),
            5 => dst.reduce_and(at, tile),
            6 => dst.reduce_or(at, tile),
            _ => dst.reduce_xor(at, tile),
            // end for
        }
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// Rank 2.
#[tma_kernel(threads = 32, instances(
    plain = <NoSwizzle, 12>, span32 = <Swizzle32, 8>, span64 = <Swizzle64, 16>, span128 = <Swizzle128, 32>
))]
pub fn reduce_rank_2<W: Swizzle, const COLS: u32>(
    dst: TensorMap<Tile<u32, Shape2<24, COLS>, W>>,
    given: Global<u32>,
    op: u32,
    at0: i32,
    at1: i32,
) {
    let tile: Tile<u32, Shape2<24, COLS>, W> = shared();
    let at = [at0, at1];
    for i in (lane_idx()..24 * COLS).step_by(32) {
        tile.set([i / COLS, i % COLS], given.get(i));
    }
    fence_proxy_async();
    sync_threads();
    if thread_idx().x == 0 {
        match op {
            // for op in ReduceOp: {i or _} => dst.reduce_{op}(at, tile),
            0 => dst.reduce_add(at, tile),
            1 => dst.reduce_min(at, tile),
            2 => dst.reduce_max(at, tile),
            3 => dst.reduce_inc(at, tile),
            4 => dst.reduce_dec(at, tile),
            5 => dst.reduce_and(at, tile),
            6 => dst.reduce_or(at, tile),
            _ => dst.reduce_xor(at, tile),
            // end for
        }
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// Rank 3.
#[tma_kernel(threads = 32, instances(
    plain = <NoSwizzle, 12>, span32 = <Swizzle32, 8>, span64 = <Swizzle64, 16>, span128 = <Swizzle128, 32>
))]
pub fn reduce_rank_3<W: Swizzle, const COLS: u32>(
    dst: TensorMap<Tile<u32, Shape3<3, 2, COLS>, W>>,
    given: Global<u32>,
    op: u32,
    at0: i32,
    at1: i32,
    at2: i32,
) {
    let tile: Tile<u32, Shape3<3, 2, COLS>, W> = shared();
    let at = [at0, at1, at2];
    for i in (lane_idx()..6 * COLS).step_by(32) {
        tile.set([i / (2 * COLS), i / COLS % 2, i % COLS], given.get(i));
    }
    fence_proxy_async();
    sync_threads();
    if thread_idx().x == 0 {
        match op {
            // for op in ReduceOp: {i or _} => dst.reduce_{op}(at, tile),
            0 => dst.reduce_add(at, tile),
            1 => dst.reduce_min(at, tile),
            2 => dst.reduce_max(at, tile),
            3 => dst.reduce_inc(at, tile),
            4 => dst.reduce_dec(at, tile),
            5 => dst.reduce_and(at, tile),
            6 => dst.reduce_or(at, tile),
            _ => dst.reduce_xor(at, tile),
            // end for
        }
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// Rank 4.
#[tma_kernel(threads = 32, instances(
    plain = <NoSwizzle, 12>, span32 = <Swizzle32, 8>, span64 = <Swizzle64, 16>, span128 = <Swizzle128, 32>
))]
pub fn reduce_rank_4<W: Swizzle, const COLS: u32>(
    dst: TensorMap<Tile<u32, Shape4<3, 2, 4, COLS>, W>>,
    given: Global<u32>,
    op: u32,
    at0: i32,
    at1: i32,
    at2: i32,
    at3: i32,
) {
    let tile: Tile<u32, Shape4<3, 2, 4, COLS>, W> = shared();
    let at = [at0, at1, at2, at3];
    for i in (lane_idx()..24 * COLS).step_by(32) {
        tile.set([i / (8 * COLS), i / (4 * COLS) % 2, i / COLS % 4, i % COLS], given.get(i));
    }
    fence_proxy_async();
    sync_threads();
    if thread_idx().x == 0 {
        match op {
            // for op in ReduceOp: {i or _} => dst.reduce_{op}(at, tile),
            0 => dst.reduce_add(at, tile),
            1 => dst.reduce_min(at, tile),
            2 => dst.reduce_max(at, tile),
            3 => dst.reduce_inc(at, tile),
            4 => dst.reduce_dec(at, tile),
            5 => dst.reduce_and(at, tile),
            6 => dst.reduce_or(at, tile),
            _ => dst.reduce_xor(at, tile),
            // end for
        }
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// Rank 5.
#[tma_kernel(threads = 32, instances(
    plain = <NoSwizzle, 12>, span32 = <Swizzle32, 8>, span64 = <Swizzle64, 16>, span128 = <Swizzle128, 32>
))]
pub fn reduce_rank_5<W: Swizzle, const COLS: u32>(
    dst: TensorMap<Tile<u32, Shape5<2, 2, 3, 2, COLS>, W>>,
    given: Global<u32>,
    op: u32,
    at0: i32,
    at1: i32,
    at2: i32,
    at3: i32,
    at4: i32,
) {
    let tile: Tile<u32, Shape5<2, 2, 3, 2, COLS>, W> = shared();
    let at = [at0, at1, at2, at3, at4];
    for i in (lane_idx()..24 * COLS).step_by(32) {
        tile.set(
            [i / (12 * COLS), i / (6 * COLS) % 2, i / (2 * COLS) % 3, i / COLS % 2, i % COLS],
            given.get(i),
        );
    }
    fence_proxy_async();
    sync_threads();
    if thread_idx().x == 0 {
        match op {
            // for op in ReduceOp: {i or _} => dst.reduce_{op}(at, tile),
            0 => dst.reduce_add(at, tile),
            1 => dst.reduce_min(at, tile),
            2 => dst.reduce_max(at, tile),
            3 => dst.reduce_inc(at, tile),
            4 => dst.reduce_dec(at, tile),
            5 => dst.reduce_and(at, tile),
            6 => dst.reduce_or(at, tile),
            _ => dst.reduce_xor(at, tile),
            // end for
        }
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// Arithmetic.
#[tma_kernel(threads = 32, instances(
    i32_plain = <i32, NoSwizzle, 12>, i32_span32 = <i32, Swizzle32, 8>, i32_span64 = <i32, Swizzle64, 16>, i32_span128 = <i32, Swizzle128, 32>,
    u64_plain = <u64, NoSwizzle, 6>, u64_span32 = <u64, Swizzle32, 4>, u64_span64 = <u64, Swizzle64, 8>, u64_span128 = <u64, Swizzle128, 16>,
    f16_plain = <f16, NoSwizzle, 24>, f16_span32 = <f16, Swizzle32, 16>, f16_span64 = <f16, Swizzle64, 32>, f16_span128 = <f16, Swizzle128, 64>,
    bf16_plain = <bf16, NoSwizzle, 24>, bf16_span32 = <bf16, Swizzle32, 16>, bf16_span64 = <bf16, Swizzle64, 32>, bf16_span128 = <bf16, Swizzle128, 64>,
    f32_plain = <f32, NoSwizzle, 12>, f32_span32 = <f32, Swizzle32, 8>, f32_span64 = <f32, Swizzle64, 16>, f32_span128 = <f32, Swizzle128, 32>,
))]
pub fn reduce_arithmetic<T: ReduceAdd, W: Swizzle, const COLS: u32>(
    dst: TensorMap<Tile<T, Shape2<24, COLS>, W>>,
    given: Global<T>,
    op: u32,
    at0: i32,
    at1: i32,
) {
    let tile: Tile<T, Shape2<24, COLS>, W> = shared();
    let at = [at0, at1];
    for i in (lane_idx()..24 * COLS).step_by(32) {
        tile.set([i / COLS, i % COLS], given.get(i));
    }
    fence_proxy_async();
    sync_threads();
    if thread_idx().x == 0 {
        // for op in ReduceFamily::Arithmetic: if op == {i} {
        // and:     dst.reduce_{op}(at, tile);
        // and: }
        if op == 0 {
            dst.reduce_add(at, tile);
        }
        // end for
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// Minima and maxima.
#[tma_kernel(threads = 32, instances(
    i32_plain = <i32, NoSwizzle, 12>, i32_span32 = <i32, Swizzle32, 8>, i32_span64 = <i32, Swizzle64, 16>, i32_span128 = <i32, Swizzle128, 32>,
    u64_plain = <u64, NoSwizzle, 6>, u64_span32 = <u64, Swizzle32, 4>, u64_span64 = <u64, Swizzle64, 8>, u64_span128 = <u64, Swizzle128, 16>,
    i64_plain = <i64, NoSwizzle, 6>, i64_span32 = <i64, Swizzle32, 4>, i64_span64 = <i64, Swizzle64, 8>, i64_span128 = <i64, Swizzle128, 16>,
    f16_plain = <f16, NoSwizzle, 24>, f16_span32 = <f16, Swizzle32, 16>, f16_span64 = <f16, Swizzle64, 32>, f16_span128 = <f16, Swizzle128, 64>,
    bf16_plain = <bf16, NoSwizzle, 24>, bf16_span32 = <bf16, Swizzle32, 16>, bf16_span64 = <bf16, Swizzle64, 32>, bf16_span128 = <bf16, Swizzle128, 64>,
))]
pub fn reduce_orders<T: ReduceOrder, W: Swizzle, const COLS: u32>(
    dst: TensorMap<Tile<T, Shape2<24, COLS>, W>>,
    given: Global<T>,
    op: u32,
    at0: i32,
    at1: i32,
) {
    let tile: Tile<T, Shape2<24, COLS>, W> = shared();
    let at = [at0, at1];
    for i in (lane_idx()..24 * COLS).step_by(32) {
        tile.set([i / COLS, i % COLS], given.get(i));
    }
    fence_proxy_async();
    sync_threads();
    if thread_idx().x == 0 {
        match op {
            // for op in ReduceFamily::Order: {i or _} => dst.reduce_{op}(at, tile),
            0 => dst.reduce_min(at, tile),
            _ => dst.reduce_max(at, tile),
            // end for
        }
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// Operations on bits.
#[tma_kernel(threads = 32, instances(
    i32_plain = <i32, NoSwizzle, 12>, i32_span32 = <i32, Swizzle32, 8>, i32_span64 = <i32, Swizzle64, 16>, i32_span128 = <i32, Swizzle128, 32>,
    u64_plain = <u64, NoSwizzle, 6>, u64_span32 = <u64, Swizzle32, 4>, u64_span64 = <u64, Swizzle64, 8>, u64_span128 = <u64, Swizzle128, 16>,
))]
pub fn reduce_bits<T: ReduceBits, W: Swizzle, const COLS: u32>(
    dst: TensorMap<Tile<T, Shape2<24, COLS>, W>>,
    given: Global<T>,
    op: u32,
    at0: i32,
    at1: i32,
) {
    let tile: Tile<T, Shape2<24, COLS>, W> = shared();
    let at = [at0, at1];
    for i in (lane_idx()..24 * COLS).step_by(32) {
        tile.set([i / COLS, i % COLS], given.get(i));
    }
    fence_proxy_async();
    sync_threads();
    if thread_idx().x == 0 {
        match op {
            // for op in ReduceFamily::Bits: {i or _} => dst.reduce_{op}(at, tile),
            0 => dst.reduce_and(at, tile),
            1 => dst.reduce_or(at, tile),
            _ => dst.reduce_xor(at, tile),
            // end for
        }
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}
