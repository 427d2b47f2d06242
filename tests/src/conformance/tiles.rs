//! Kernels of the conformance table: for each rank one, of every element type under every swizzle and, from rank 3 on,
//! interleaved layout.
//!
//! Each loads a tile and writes out its elements as `get` names them, then fills another with `set` and stores it. So
//! engine, descriptor and the addresses that the compiler computes must agree on where every element lies. `how` is 1 for a
//! prefetch before the load, and 2 for hints to the L2 cache.

use tma_runtime::prelude::*;

/// Rank 1.
#[tma_kernel(threads = 32, instances(
    u8_plain = <u8, NoSwizzle, 48>, u8_span32 = <u8, Swizzle32, 32>, u8_span64 = <u8, Swizzle64, 64>, u8_span128 = <u8, Swizzle128, 128>,
    u16_plain = <u16, NoSwizzle, 24>, u16_span32 = <u16, Swizzle32, 16>, u16_span64 = <u16, Swizzle64, 32>, u16_span128 = <u16, Swizzle128, 64>,
    u32_plain = <u32, NoSwizzle, 12>, u32_span32 = <u32, Swizzle32, 8>, u32_span64 = <u32, Swizzle64, 16>, u32_span128 = <u32, Swizzle128, 32>,
    i32_plain = <i32, NoSwizzle, 12>, i32_span32 = <i32, Swizzle32, 8>, i32_span64 = <i32, Swizzle64, 16>, i32_span128 = <i32, Swizzle128, 32>,
    u64_plain = <u64, NoSwizzle, 6>, u64_span32 = <u64, Swizzle32, 4>, u64_span64 = <u64, Swizzle64, 8>, u64_span128 = <u64, Swizzle128, 16>,
    i64_plain = <i64, NoSwizzle, 6>, i64_span32 = <i64, Swizzle32, 4>, i64_span64 = <i64, Swizzle64, 8>, i64_span128 = <i64, Swizzle128, 16>,
    f16_plain = <f16, NoSwizzle, 24>, f16_span32 = <f16, Swizzle32, 16>, f16_span64 = <f16, Swizzle64, 32>, f16_span128 = <f16, Swizzle128, 64>,
    bf16_plain = <bf16, NoSwizzle, 24>, bf16_span32 = <bf16, Swizzle32, 16>, bf16_span64 = <bf16, Swizzle64, 32>, bf16_span128 = <bf16, Swizzle128, 64>,
    f32_plain = <f32, NoSwizzle, 12>, f32_span32 = <f32, Swizzle32, 8>, f32_span64 = <f32, Swizzle64, 16>, f32_span128 = <f32, Swizzle128, 32>,
    f64_plain = <f64, NoSwizzle, 6>, f64_span32 = <f64, Swizzle32, 4>, f64_span64 = <f64, Swizzle64, 8>, f64_span128 = <f64, Swizzle128, 16>,
    tf32_plain = <tf32, NoSwizzle, 12>, tf32_span32 = <tf32, Swizzle32, 8>, tf32_span64 = <tf32, Swizzle64, 16>, tf32_span128 = <tf32, Swizzle128, 32>,
    e4m3_plain = <e4m3, NoSwizzle, 48>, e4m3_span32 = <e4m3, Swizzle32, 32>, e4m3_span64 = <e4m3, Swizzle64, 64>, e4m3_span128 = <e4m3, Swizzle128, 128>,
    e5m2_plain = <e5m2, NoSwizzle, 48>, e5m2_span32 = <e5m2, Swizzle32, 32>, e5m2_span64 = <e5m2, Swizzle64, 64>, e5m2_span128 = <e5m2, Swizzle128, 128>,
))]
pub fn rank_1<T: TileElement, W: Swizzle, const COLS: u32>(
    src: TensorMap<Tile<T, Shape1<COLS>, W>>,
    dst: TensorMap<Tile<T, Shape1<COLS>, W>>,
    seen: Global<T>,
    given: Global<T>,
    how: u32,
    at0: i32,
) {
    let tiles: Stages<Tile<T, Shape1<COLS>, W>, 2> = shared();
    let full: Barrier = shared();
    let at = [at0];
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tiles[0].bytes());
        if how == 1 {
            src.prefetch(at);
        }
        if how == 2 {
            src.hint(l2_evict_first(1.0)).load(tiles[0], at, full);
        } else {
            src.load(tiles[0], at, full);
        }
    }
    sync_threads();
    full.wait(0);
    for i in (lane_idx()..COLS).step_by(32) {
        let place = [i];
        seen.set(i, tiles[0].get(place));
        tiles[1].set(place, given.get(i));
    }
    fence_proxy_async();
    sync_threads();
    // The engine refuses to store at negative coordinates.
    if thread_idx().x == 0 && at0 >= 0 {
        if how == 2 {
            dst.hint(l2_evict_last(0.5)).store(at, tiles[1]);
        } else {
            dst.store(at, tiles[1]);
        }
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// Rank 2.
#[tma_kernel(threads = 32, instances(
    u8_plain = <u8, NoSwizzle, 48>, u8_span32 = <u8, Swizzle32, 32>, u8_span64 = <u8, Swizzle64, 64>, u8_span128 = <u8, Swizzle128, 128>,
    u16_plain = <u16, NoSwizzle, 24>, u16_span32 = <u16, Swizzle32, 16>, u16_span64 = <u16, Swizzle64, 32>, u16_span128 = <u16, Swizzle128, 64>,
    u32_plain = <u32, NoSwizzle, 12>, u32_span32 = <u32, Swizzle32, 8>, u32_span64 = <u32, Swizzle64, 16>, u32_span128 = <u32, Swizzle128, 32>,
    i32_plain = <i32, NoSwizzle, 12>, i32_span32 = <i32, Swizzle32, 8>, i32_span64 = <i32, Swizzle64, 16>, i32_span128 = <i32, Swizzle128, 32>,
    u64_plain = <u64, NoSwizzle, 6>, u64_span32 = <u64, Swizzle32, 4>, u64_span64 = <u64, Swizzle64, 8>, u64_span128 = <u64, Swizzle128, 16>,
    i64_plain = <i64, NoSwizzle, 6>, i64_span32 = <i64, Swizzle32, 4>, i64_span64 = <i64, Swizzle64, 8>, i64_span128 = <i64, Swizzle128, 16>,
    f16_plain = <f16, NoSwizzle, 24>, f16_span32 = <f16, Swizzle32, 16>, f16_span64 = <f16, Swizzle64, 32>, f16_span128 = <f16, Swizzle128, 64>,
    bf16_plain = <bf16, NoSwizzle, 24>, bf16_span32 = <bf16, Swizzle32, 16>, bf16_span64 = <bf16, Swizzle64, 32>, bf16_span128 = <bf16, Swizzle128, 64>,
    f32_plain = <f32, NoSwizzle, 12>, f32_span32 = <f32, Swizzle32, 8>, f32_span64 = <f32, Swizzle64, 16>, f32_span128 = <f32, Swizzle128, 32>,
    f64_plain = <f64, NoSwizzle, 6>, f64_span32 = <f64, Swizzle32, 4>, f64_span64 = <f64, Swizzle64, 8>, f64_span128 = <f64, Swizzle128, 16>,
    tf32_plain = <tf32, NoSwizzle, 12>, tf32_span32 = <tf32, Swizzle32, 8>, tf32_span64 = <tf32, Swizzle64, 16>, tf32_span128 = <tf32, Swizzle128, 32>,
    e4m3_plain = <e4m3, NoSwizzle, 48>, e4m3_span32 = <e4m3, Swizzle32, 32>, e4m3_span64 = <e4m3, Swizzle64, 64>, e4m3_span128 = <e4m3, Swizzle128, 128>,
    e5m2_plain = <e5m2, NoSwizzle, 48>, e5m2_span32 = <e5m2, Swizzle32, 32>, e5m2_span64 = <e5m2, Swizzle64, 64>, e5m2_span128 = <e5m2, Swizzle128, 128>,
))]
pub fn rank_2<T: TileElement, W: Swizzle, const COLS: u32>(
    src: TensorMap<Tile<T, Shape2<24, COLS>, W>>,
    dst: TensorMap<Tile<T, Shape2<24, COLS>, W>>,
    seen: Global<T>,
    given: Global<T>,
    how: u32,
    at0: i32,
    at1: i32,
) {
    let tiles: Stages<Tile<T, Shape2<24, COLS>, W>, 2> = shared();
    let full: Barrier = shared();
    let at = [at0, at1];
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tiles[0].bytes());
        if how == 1 {
            src.prefetch(at);
        }
        if how == 2 {
            src.hint(l2_evict_first(1.0)).load(tiles[0], at, full);
        } else {
            src.load(tiles[0], at, full);
        }
    }
    sync_threads();
    full.wait(0);
    for i in (lane_idx()..24 * COLS).step_by(32) {
        let place = [i / COLS, i % COLS];
        seen.set(i, tiles[0].get(place));
        tiles[1].set(place, given.get(i));
    }
    fence_proxy_async();
    sync_threads();
    // The engine refuses to store at negative coordinates.
    if thread_idx().x == 0 && at0 >= 0 && at1 >= 0 {
        if how == 2 {
            dst.hint(l2_evict_last(0.5)).store(at, tiles[1]);
        } else {
            dst.store(at, tiles[1]);
        }
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// Rank 3.
#[tma_kernel(threads = 32, instances(
    u8_plain = <u8, NoSwizzle, 8, 48>, u8_span32 = <u8, Swizzle32, 8, 32>, u8_span64 = <u8, Swizzle64, 8, 64>, u8_span128 = <u8, Swizzle128, 8, 128>,
    u8_pixel16 = <u8, Interleave16, 1, 256>, u8_pixel32 = <u8, Interleave32, 1, 512>,
    u16_plain = <u16, NoSwizzle, 8, 24>, u16_span32 = <u16, Swizzle32, 8, 16>, u16_span64 = <u16, Swizzle64, 8, 32>, u16_span128 = <u16, Swizzle128, 8, 64>,
    u16_pixel16 = <u16, Interleave16, 1, 64>, u16_pixel32 = <u16, Interleave32, 1, 128>,
    u32_plain = <u32, NoSwizzle, 8, 12>, u32_span32 = <u32, Swizzle32, 8, 8>, u32_span64 = <u32, Swizzle64, 8, 16>, u32_span128 = <u32, Swizzle128, 8, 32>,
    u32_pixel16 = <u32, Interleave16, 1, 16>, u32_pixel32 = <u32, Interleave32, 1, 32>,
    i32_plain = <i32, NoSwizzle, 8, 12>, i32_span32 = <i32, Swizzle32, 8, 8>, i32_span64 = <i32, Swizzle64, 8, 16>, i32_span128 = <i32, Swizzle128, 8, 32>,
    i32_pixel16 = <i32, Interleave16, 1, 16>, i32_pixel32 = <i32, Interleave32, 1, 32>,
    u64_plain = <u64, NoSwizzle, 8, 6>, u64_span32 = <u64, Swizzle32, 8, 4>, u64_span64 = <u64, Swizzle64, 8, 8>, u64_span128 = <u64, Swizzle128, 8, 16>,
    u64_pixel16 = <u64, Interleave16, 1, 4>, u64_pixel32 = <u64, Interleave32, 1, 8>,
    i64_plain = <i64, NoSwizzle, 8, 6>, i64_span32 = <i64, Swizzle32, 8, 4>, i64_span64 = <i64, Swizzle64, 8, 8>, i64_span128 = <i64, Swizzle128, 8, 16>,
    i64_pixel16 = <i64, Interleave16, 1, 4>, i64_pixel32 = <i64, Interleave32, 1, 8>,
    f16_plain = <f16, NoSwizzle, 8, 24>, f16_span32 = <f16, Swizzle32, 8, 16>, f16_span64 = <f16, Swizzle64, 8, 32>, f16_span128 = <f16, Swizzle128, 8, 64>,
    f16_pixel16 = <f16, Interleave16, 1, 64>, f16_pixel32 = <f16, Interleave32, 1, 128>,
    bf16_plain = <bf16, NoSwizzle, 8, 24>, bf16_span32 = <bf16, Swizzle32, 8, 16>, bf16_span64 = <bf16, Swizzle64, 8, 32>, bf16_span128 = <bf16, Swizzle128, 8, 64>,
    bf16_pixel16 = <bf16, Interleave16, 1, 64>, bf16_pixel32 = <bf16, Interleave32, 1, 128>,
    f32_plain = <f32, NoSwizzle, 8, 12>, f32_span32 = <f32, Swizzle32, 8, 8>, f32_span64 = <f32, Swizzle64, 8, 16>, f32_span128 = <f32, Swizzle128, 8, 32>,
    f32_pixel16 = <f32, Interleave16, 1, 16>, f32_pixel32 = <f32, Interleave32, 1, 32>,
    f64_plain = <f64, NoSwizzle, 8, 6>, f64_span32 = <f64, Swizzle32, 8, 4>, f64_span64 = <f64, Swizzle64, 8, 8>, f64_span128 = <f64, Swizzle128, 8, 16>,
    f64_pixel16 = <f64, Interleave16, 1, 4>, f64_pixel32 = <f64, Interleave32, 1, 8>,
    tf32_plain = <tf32, NoSwizzle, 8, 12>, tf32_span32 = <tf32, Swizzle32, 8, 8>, tf32_span64 = <tf32, Swizzle64, 8, 16>, tf32_span128 = <tf32, Swizzle128, 8, 32>,
    tf32_pixel16 = <tf32, Interleave16, 1, 16>, tf32_pixel32 = <tf32, Interleave32, 1, 32>,
    e4m3_plain = <e4m3, NoSwizzle, 8, 48>, e4m3_span32 = <e4m3, Swizzle32, 8, 32>, e4m3_span64 = <e4m3, Swizzle64, 8, 64>, e4m3_span128 = <e4m3, Swizzle128, 8, 128>,
    e4m3_pixel16 = <e4m3, Interleave16, 1, 256>, e4m3_pixel32 = <e4m3, Interleave32, 1, 512>,
    e5m2_plain = <e5m2, NoSwizzle, 8, 48>, e5m2_span32 = <e5m2, Swizzle32, 8, 32>, e5m2_span64 = <e5m2, Swizzle64, 8, 64>, e5m2_span128 = <e5m2, Swizzle128, 8, 128>,
    e5m2_pixel16 = <e5m2, Interleave16, 1, 256>, e5m2_pixel32 = <e5m2, Interleave32, 1, 512>,
))]
pub fn rank_3<T: TileElement, W: Swizzle, const SLICES: u32, const COLS: u32>(
    src: TensorMap<Tile<T, Shape3<3, SLICES, COLS>, W>>,
    dst: TensorMap<Tile<T, Shape3<3, SLICES, COLS>, W>>,
    seen: Global<T>,
    given: Global<T>,
    how: u32,
    at0: i32,
    at1: i32,
    at2: i32,
) {
    let tiles: Stages<Tile<T, Shape3<3, SLICES, COLS>, W>, 2> = shared();
    let full: Barrier = shared();
    let at = [at0, at1, at2];
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tiles[0].bytes());
        if how == 1 {
            src.prefetch(at);
        }
        if how == 2 {
            src.hint(l2_evict_first(1.0)).load(tiles[0], at, full);
        } else {
            src.load(tiles[0], at, full);
        }
    }
    sync_threads();
    full.wait(0);
    for i in (lane_idx()..3 * SLICES * COLS).step_by(32) {
        let place = [i / (SLICES * COLS), i / COLS % SLICES, i % COLS];
        seen.set(i, tiles[0].get(place));
        tiles[1].set(place, given.get(i));
    }
    fence_proxy_async();
    sync_threads();
    // The engine refuses to store at negative coordinates.
    if thread_idx().x == 0 && at0 >= 0 && at1 >= 0 && at2 >= 0 {
        if how == 2 {
            dst.hint(l2_evict_last(0.5)).store(at, tiles[1]);
        } else {
            dst.store(at, tiles[1]);
        }
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// Rank 4.
#[tma_kernel(threads = 32, instances(
    u8_plain = <u8, NoSwizzle, 2, 48>, u8_span32 = <u8, Swizzle32, 2, 32>, u8_span64 = <u8, Swizzle64, 2, 64>, u8_span128 = <u8, Swizzle128, 2, 128>,
    u8_pixel16 = <u8, Interleave16, 1, 256>, u8_pixel32 = <u8, Interleave32, 1, 512>,
    u16_plain = <u16, NoSwizzle, 2, 24>, u16_span32 = <u16, Swizzle32, 2, 16>, u16_span64 = <u16, Swizzle64, 2, 32>, u16_span128 = <u16, Swizzle128, 2, 64>,
    u16_pixel16 = <u16, Interleave16, 1, 64>, u16_pixel32 = <u16, Interleave32, 1, 128>,
    u32_plain = <u32, NoSwizzle, 2, 12>, u32_span32 = <u32, Swizzle32, 2, 8>, u32_span64 = <u32, Swizzle64, 2, 16>, u32_span128 = <u32, Swizzle128, 2, 32>,
    u32_pixel16 = <u32, Interleave16, 1, 16>, u32_pixel32 = <u32, Interleave32, 1, 32>,
    i32_plain = <i32, NoSwizzle, 2, 12>, i32_span32 = <i32, Swizzle32, 2, 8>, i32_span64 = <i32, Swizzle64, 2, 16>, i32_span128 = <i32, Swizzle128, 2, 32>,
    i32_pixel16 = <i32, Interleave16, 1, 16>, i32_pixel32 = <i32, Interleave32, 1, 32>,
    u64_plain = <u64, NoSwizzle, 2, 6>, u64_span32 = <u64, Swizzle32, 2, 4>, u64_span64 = <u64, Swizzle64, 2, 8>, u64_span128 = <u64, Swizzle128, 2, 16>,
    u64_pixel16 = <u64, Interleave16, 1, 4>, u64_pixel32 = <u64, Interleave32, 1, 8>,
    i64_plain = <i64, NoSwizzle, 2, 6>, i64_span32 = <i64, Swizzle32, 2, 4>, i64_span64 = <i64, Swizzle64, 2, 8>, i64_span128 = <i64, Swizzle128, 2, 16>,
    i64_pixel16 = <i64, Interleave16, 1, 4>, i64_pixel32 = <i64, Interleave32, 1, 8>,
    f16_plain = <f16, NoSwizzle, 2, 24>, f16_span32 = <f16, Swizzle32, 2, 16>, f16_span64 = <f16, Swizzle64, 2, 32>, f16_span128 = <f16, Swizzle128, 2, 64>,
    f16_pixel16 = <f16, Interleave16, 1, 64>, f16_pixel32 = <f16, Interleave32, 1, 128>,
    bf16_plain = <bf16, NoSwizzle, 2, 24>, bf16_span32 = <bf16, Swizzle32, 2, 16>, bf16_span64 = <bf16, Swizzle64, 2, 32>, bf16_span128 = <bf16, Swizzle128, 2, 64>,
    bf16_pixel16 = <bf16, Interleave16, 1, 64>, bf16_pixel32 = <bf16, Interleave32, 1, 128>,
    f32_plain = <f32, NoSwizzle, 2, 12>, f32_span32 = <f32, Swizzle32, 2, 8>, f32_span64 = <f32, Swizzle64, 2, 16>, f32_span128 = <f32, Swizzle128, 2, 32>,
    f32_pixel16 = <f32, Interleave16, 1, 16>, f32_pixel32 = <f32, Interleave32, 1, 32>,
    f64_plain = <f64, NoSwizzle, 2, 6>, f64_span32 = <f64, Swizzle32, 2, 4>, f64_span64 = <f64, Swizzle64, 2, 8>, f64_span128 = <f64, Swizzle128, 2, 16>,
    f64_pixel16 = <f64, Interleave16, 1, 4>, f64_pixel32 = <f64, Interleave32, 1, 8>,
    tf32_plain = <tf32, NoSwizzle, 2, 12>, tf32_span32 = <tf32, Swizzle32, 2, 8>, tf32_span64 = <tf32, Swizzle64, 2, 16>, tf32_span128 = <tf32, Swizzle128, 2, 32>,
    tf32_pixel16 = <tf32, Interleave16, 1, 16>, tf32_pixel32 = <tf32, Interleave32, 1, 32>,
    e4m3_plain = <e4m3, NoSwizzle, 2, 48>, e4m3_span32 = <e4m3, Swizzle32, 2, 32>, e4m3_span64 = <e4m3, Swizzle64, 2, 64>, e4m3_span128 = <e4m3, Swizzle128, 2, 128>,
    e4m3_pixel16 = <e4m3, Interleave16, 1, 256>, e4m3_pixel32 = <e4m3, Interleave32, 1, 512>,
    e5m2_plain = <e5m2, NoSwizzle, 2, 48>, e5m2_span32 = <e5m2, Swizzle32, 2, 32>, e5m2_span64 = <e5m2, Swizzle64, 2, 64>, e5m2_span128 = <e5m2, Swizzle128, 2, 128>,
    e5m2_pixel16 = <e5m2, Interleave16, 1, 256>, e5m2_pixel32 = <e5m2, Interleave32, 1, 512>,
))]
pub fn rank_4<T: TileElement, W: Swizzle, const SLICES: u32, const COLS: u32>(
    src: TensorMap<Tile<T, Shape4<3, SLICES, 4, COLS>, W>>,
    dst: TensorMap<Tile<T, Shape4<3, SLICES, 4, COLS>, W>>,
    seen: Global<T>,
    given: Global<T>,
    how: u32,
    at0: i32,
    at1: i32,
    at2: i32,
    at3: i32,
) {
    let tiles: Stages<Tile<T, Shape4<3, SLICES, 4, COLS>, W>, 2> = shared();
    let full: Barrier = shared();
    let at = [at0, at1, at2, at3];
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tiles[0].bytes());
        if how == 1 {
            src.prefetch(at);
        }
        if how == 2 {
            src.hint(l2_evict_first(1.0)).load(tiles[0], at, full);
        } else {
            src.load(tiles[0], at, full);
        }
    }
    sync_threads();
    full.wait(0);
    for i in (lane_idx()..12 * SLICES * COLS).step_by(32) {
        let place = [i / (4 * SLICES * COLS), i / (4 * COLS) % SLICES, i / COLS % 4, i % COLS];
        seen.set(i, tiles[0].get(place));
        tiles[1].set(place, given.get(i));
    }
    fence_proxy_async();
    sync_threads();
    // The engine refuses to store at negative coordinates.
    if thread_idx().x == 0 && at0 >= 0 && at1 >= 0 && at2 >= 0 && at3 >= 0 {
        if how == 2 {
            dst.hint(l2_evict_last(0.5)).store(at, tiles[1]);
        } else {
            dst.store(at, tiles[1]);
        }
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// Rank 5.
#[tma_kernel(threads = 32, instances(
    u8_plain = <u8, NoSwizzle, 2, 48>, u8_span32 = <u8, Swizzle32, 2, 32>, u8_span64 = <u8, Swizzle64, 2, 64>, u8_span128 = <u8, Swizzle128, 2, 128>,
    u8_pixel16 = <u8, Interleave16, 1, 256>, u8_pixel32 = <u8, Interleave32, 1, 512>,
    u16_plain = <u16, NoSwizzle, 2, 24>, u16_span32 = <u16, Swizzle32, 2, 16>, u16_span64 = <u16, Swizzle64, 2, 32>, u16_span128 = <u16, Swizzle128, 2, 64>,
    u16_pixel16 = <u16, Interleave16, 1, 64>, u16_pixel32 = <u16, Interleave32, 1, 128>,
    u32_plain = <u32, NoSwizzle, 2, 12>, u32_span32 = <u32, Swizzle32, 2, 8>, u32_span64 = <u32, Swizzle64, 2, 16>, u32_span128 = <u32, Swizzle128, 2, 32>,
    u32_pixel16 = <u32, Interleave16, 1, 16>, u32_pixel32 = <u32, Interleave32, 1, 32>,
    i32_plain = <i32, NoSwizzle, 2, 12>, i32_span32 = <i32, Swizzle32, 2, 8>, i32_span64 = <i32, Swizzle64, 2, 16>, i32_span128 = <i32, Swizzle128, 2, 32>,
    i32_pixel16 = <i32, Interleave16, 1, 16>, i32_pixel32 = <i32, Interleave32, 1, 32>,
    u64_plain = <u64, NoSwizzle, 2, 6>, u64_span32 = <u64, Swizzle32, 2, 4>, u64_span64 = <u64, Swizzle64, 2, 8>, u64_span128 = <u64, Swizzle128, 2, 16>,
    u64_pixel16 = <u64, Interleave16, 1, 4>, u64_pixel32 = <u64, Interleave32, 1, 8>,
    i64_plain = <i64, NoSwizzle, 2, 6>, i64_span32 = <i64, Swizzle32, 2, 4>, i64_span64 = <i64, Swizzle64, 2, 8>, i64_span128 = <i64, Swizzle128, 2, 16>,
    i64_pixel16 = <i64, Interleave16, 1, 4>, i64_pixel32 = <i64, Interleave32, 1, 8>,
    f16_plain = <f16, NoSwizzle, 2, 24>, f16_span32 = <f16, Swizzle32, 2, 16>, f16_span64 = <f16, Swizzle64, 2, 32>, f16_span128 = <f16, Swizzle128, 2, 64>,
    f16_pixel16 = <f16, Interleave16, 1, 64>, f16_pixel32 = <f16, Interleave32, 1, 128>,
    bf16_plain = <bf16, NoSwizzle, 2, 24>, bf16_span32 = <bf16, Swizzle32, 2, 16>, bf16_span64 = <bf16, Swizzle64, 2, 32>, bf16_span128 = <bf16, Swizzle128, 2, 64>,
    bf16_pixel16 = <bf16, Interleave16, 1, 64>, bf16_pixel32 = <bf16, Interleave32, 1, 128>,
    f32_plain = <f32, NoSwizzle, 2, 12>, f32_span32 = <f32, Swizzle32, 2, 8>, f32_span64 = <f32, Swizzle64, 2, 16>, f32_span128 = <f32, Swizzle128, 2, 32>,
    f32_pixel16 = <f32, Interleave16, 1, 16>, f32_pixel32 = <f32, Interleave32, 1, 32>,
    f64_plain = <f64, NoSwizzle, 2, 6>, f64_span32 = <f64, Swizzle32, 2, 4>, f64_span64 = <f64, Swizzle64, 2, 8>, f64_span128 = <f64, Swizzle128, 2, 16>,
    f64_pixel16 = <f64, Interleave16, 1, 4>, f64_pixel32 = <f64, Interleave32, 1, 8>,
    tf32_plain = <tf32, NoSwizzle, 2, 12>, tf32_span32 = <tf32, Swizzle32, 2, 8>, tf32_span64 = <tf32, Swizzle64, 2, 16>, tf32_span128 = <tf32, Swizzle128, 2, 32>,
    tf32_pixel16 = <tf32, Interleave16, 1, 16>, tf32_pixel32 = <tf32, Interleave32, 1, 32>,
    e4m3_plain = <e4m3, NoSwizzle, 2, 48>, e4m3_span32 = <e4m3, Swizzle32, 2, 32>, e4m3_span64 = <e4m3, Swizzle64, 2, 64>, e4m3_span128 = <e4m3, Swizzle128, 2, 128>,
    e4m3_pixel16 = <e4m3, Interleave16, 1, 256>, e4m3_pixel32 = <e4m3, Interleave32, 1, 512>,
    e5m2_plain = <e5m2, NoSwizzle, 2, 48>, e5m2_span32 = <e5m2, Swizzle32, 2, 32>, e5m2_span64 = <e5m2, Swizzle64, 2, 64>, e5m2_span128 = <e5m2, Swizzle128, 2, 128>,
    e5m2_pixel16 = <e5m2, Interleave16, 1, 256>, e5m2_pixel32 = <e5m2, Interleave32, 1, 512>,
))]
pub fn rank_5<T: TileElement, W: Swizzle, const SLICES: u32, const COLS: u32>(
    src: TensorMap<Tile<T, Shape5<2, SLICES, 3, 2, COLS>, W>>,
    dst: TensorMap<Tile<T, Shape5<2, SLICES, 3, 2, COLS>, W>>,
    seen: Global<T>,
    given: Global<T>,
    how: u32,
    at0: i32,
    at1: i32,
    at2: i32,
    at3: i32,
    at4: i32,
) {
    let tiles: Stages<Tile<T, Shape5<2, SLICES, 3, 2, COLS>, W>, 2> = shared();
    let full: Barrier = shared();
    let at = [at0, at1, at2, at3, at4];
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tiles[0].bytes());
        if how == 1 {
            src.prefetch(at);
        }
        if how == 2 {
            src.hint(l2_evict_first(1.0)).load(tiles[0], at, full);
        } else {
            src.load(tiles[0], at, full);
        }
    }
    sync_threads();
    full.wait(0);
    for i in (lane_idx()..12 * SLICES * COLS).step_by(32) {
        let place =
            [i / (6 * SLICES * COLS), i / (6 * COLS) % SLICES, i / (2 * COLS) % 3, i / COLS % 2, i % COLS];
        seen.set(i, tiles[0].get(place));
        tiles[1].set(place, given.get(i));
    }
    fence_proxy_async();
    sync_threads();
    // The engine refuses to store at negative coordinates.
    if thread_idx().x == 0 && at0 >= 0 && at1 >= 0 && at2 >= 0 && at3 >= 0 && at4 >= 0 {
        if how == 2 {
            dst.hint(l2_evict_last(0.5)).store(at, tiles[1]);
        } else {
            dst.store(at, tiles[1]);
        }
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}
