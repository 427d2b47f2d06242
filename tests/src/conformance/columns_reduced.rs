//! Kernels of the conformance table: reductions of columns of pixels. `how` is the number of the
//! operation, and after the last operation with a hint.

use tma_runtime::prelude::*;

/// Reductions into tensors of rank 3: every operation, and the same with a hint.
#[tma_kernel(threads = 32, instances(plain = <NoSwizzle, 12>, span128 = <Swizzle128, 32>))]
pub fn columns_reduced_3<W: Swizzle, const CHANNELS: u32>(
    dst: Im2colMap<Tile<u32, Shape2<40, CHANNELS>, W>, 3>,
    given: Global<u32>,
    how: u32,
    at0: i32,
    at1: i32,
    at2: i32,
) {
    let tile: Tile<u32, Shape2<40, CHANNELS>, W> = shared();
    let at = [at0, at1, at2];
    for i in (lane_idx()..40 * CHANNELS).step_by(32) {
        tile.set([i / CHANNELS, i % CHANNELS], given.get(i));
    }
    fence_proxy_async();
    sync_threads();
    if thread_idx().x == 0 {
        let hinted = dst.hint(l2_evict_last(1.0));
        match how {
            // for op in ReduceOp: {i} => dst.reduce_{op}(at, tile),
            0 => dst.reduce_add(at, tile),
            1 => dst.reduce_min(at, tile),
            2 => dst.reduce_max(at, tile),
            3 => dst.reduce_inc(at, tile),
            4 => dst.reduce_dec(at, tile),
            5 => dst.reduce_and(at, tile),
            6 => dst.reduce_or(at, tile),
            7 => dst.reduce_xor(at, tile),
            // end for
            // for op in ReduceOp: {i + len or _} => hinted.reduce_{op}(at, tile),
            8 => hinted.reduce_add(at, tile),
            9 => hinted.reduce_min(at, tile),
            10 => hinted.reduce_max(at, tile),
            11 => hinted.reduce_inc(at, tile),
            12 => hinted.reduce_dec(at, tile),
            13 => hinted.reduce_and(at, tile),
            14 => hinted.reduce_or(at, tile),
            _ => hinted.reduce_xor(at, tile),
            // end for
        }
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// Reductions into tensors of rank 4: every operation, and the same with a hint.
#[tma_kernel(threads = 32, instances(plain = <NoSwizzle, 12>, span128 = <Swizzle128, 32>))]
pub fn columns_reduced_4<W: Swizzle, const CHANNELS: u32>(
    dst: Im2colMap<Tile<u32, Shape2<40, CHANNELS>, W>, 4>,
    given: Global<u32>,
    how: u32,
    at0: i32,
    at1: i32,
    at2: i32,
    at3: i32,
) {
    let tile: Tile<u32, Shape2<40, CHANNELS>, W> = shared();
    let at = [at0, at1, at2, at3];
    for i in (lane_idx()..40 * CHANNELS).step_by(32) {
        tile.set([i / CHANNELS, i % CHANNELS], given.get(i));
    }
    fence_proxy_async();
    sync_threads();
    if thread_idx().x == 0 {
        let hinted = dst.hint(l2_evict_last(1.0));
        match how {
            // for op in ReduceOp: {i} => dst.reduce_{op}(at, tile),
            0 => dst.reduce_add(at, tile),
            1 => dst.reduce_min(at, tile),
            2 => dst.reduce_max(at, tile),
            3 => dst.reduce_inc(at, tile),
            4 => dst.reduce_dec(at, tile),
            5 => dst.reduce_and(at, tile),
            6 => dst.reduce_or(at, tile),
            7 => dst.reduce_xor(at, tile),
            // end for
            // for op in ReduceOp: {i + len or _} => hinted.reduce_{op}(at, tile),
            8 => hinted.reduce_add(at, tile),
            9 => hinted.reduce_min(at, tile),
            10 => hinted.reduce_max(at, tile),
            11 => hinted.reduce_inc(at, tile),
            12 => hinted.reduce_dec(at, tile),
            13 => hinted.reduce_and(at, tile),
            14 => hinted.reduce_or(at, tile),
            _ => hinted.reduce_xor(at, tile),
            // end for
        }
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// Reductions into tensors of rank 5: every operation, and the same with a hint.
#[tma_kernel(threads = 32, instances(plain = <NoSwizzle, 12>, span128 = <Swizzle128, 32>))]
pub fn columns_reduced_5<W: Swizzle, const CHANNELS: u32>(
    dst: Im2colMap<Tile<u32, Shape2<40, CHANNELS>, W>, 5>,
    given: Global<u32>,
    how: u32,
    at0: i32,
    at1: i32,
    at2: i32,
    at3: i32,
    at4: i32,
) {
    let tile: Tile<u32, Shape2<40, CHANNELS>, W> = shared();
    let at = [at0, at1, at2, at3, at4];
    for i in (lane_idx()..40 * CHANNELS).step_by(32) {
        tile.set([i / CHANNELS, i % CHANNELS], given.get(i));
    }
    fence_proxy_async();
    sync_threads();
    if thread_idx().x == 0 {
        let hinted = dst.hint(l2_evict_last(1.0));
        match how {
            // for op in ReduceOp: {i} => dst.reduce_{op}(at, tile),
            0 => dst.reduce_add(at, tile),
            1 => dst.reduce_min(at, tile),
            2 => dst.reduce_max(at, tile),
            3 => dst.reduce_inc(at, tile),
            4 => dst.reduce_dec(at, tile),
            5 => dst.reduce_and(at, tile),
            6 => dst.reduce_or(at, tile),
            7 => dst.reduce_xor(at, tile),
            // end for
            // for op in ReduceOp: {i + len or _} => hinted.reduce_{op}(at, tile),
            8 => hinted.reduce_add(at, tile),
            9 => hinted.reduce_min(at, tile),
            10 => hinted.reduce_max(at, tile),
            11 => hinted.reduce_inc(at, tile),
            12 => hinted.reduce_dec(at, tile),
            13 => hinted.reduce_and(at, tile),
            14 => hinted.reduce_or(at, tile),
            _ => hinted.reduce_xor(at, tile),
            // end for
        }
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}
