//! Kernels of the conformance table: one for each rank, of every element type with every swizzle
//! and, from rank 3 on, interleaved layout.
//!
//! Each loads a tile and outputs its elements as `get` reads them, then fills another tile with
//! `set` and stores it. The engine, the descriptor and the addresses computed by the compiler must
//! agree on the position of every element. `how` is 1 for a prefetch before the load, and 2 for
//! hints to the L2 cache.

use tma_runtime::prelude::*;

/// Rank 1.
#[tma_kernel(threads = 32, instances(
    T in [u8, e4m3, e5m2], (W, COLS) in [
        plain = (NoSwizzle, 48), span32 = (Swizzle32, 32), span64 = (Swizzle64, 64),
        span128 = (Swizzle128, 128),
    ];
    T in [u16, f16, bf16], (W, COLS) in [
        plain = (NoSwizzle, 24), span32 = (Swizzle32, 16), span64 = (Swizzle64, 32),
        span128 = (Swizzle128, 64),
    ];
    T in [u32, i32, f32, tf32], (W, COLS) in [
        plain = (NoSwizzle, 12), span32 = (Swizzle32, 8), span64 = (Swizzle64, 16),
        span128 = (Swizzle128, 32),
    ];
    T in [u64, i64, f64], (W, COLS) in [
        plain = (NoSwizzle, 6), span32 = (Swizzle32, 4), span64 = (Swizzle64, 8),
        span128 = (Swizzle128, 16),
    ]
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
    T in [u8, e4m3, e5m2], (W, COLS) in [
        plain = (NoSwizzle, 48), span32 = (Swizzle32, 32), span64 = (Swizzle64, 64),
        span128 = (Swizzle128, 128),
    ];
    T in [u16, f16, bf16], (W, COLS) in [
        plain = (NoSwizzle, 24), span32 = (Swizzle32, 16), span64 = (Swizzle64, 32),
        span128 = (Swizzle128, 64),
    ];
    T in [u32, i32, f32, tf32], (W, COLS) in [
        plain = (NoSwizzle, 12), span32 = (Swizzle32, 8), span64 = (Swizzle64, 16),
        span128 = (Swizzle128, 32),
    ];
    T in [u64, i64, f64], (W, COLS) in [
        plain = (NoSwizzle, 6), span32 = (Swizzle32, 4), span64 = (Swizzle64, 8),
        span128 = (Swizzle128, 16),
    ]
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
    T in [u8, e4m3, e5m2], (W, SLICES, COLS) in [
        plain = (NoSwizzle, 8, 48), span32 = (Swizzle32, 8, 32), span64 = (Swizzle64, 8, 64),
        span128 = (Swizzle128, 8, 128), pixel16 = (Interleave16, 1, 256),
        pixel32 = (Interleave32, 1, 512),
    ];
    T in [u16, f16, bf16], (W, SLICES, COLS) in [
        plain = (NoSwizzle, 8, 24), span32 = (Swizzle32, 8, 16), span64 = (Swizzle64, 8, 32),
        span128 = (Swizzle128, 8, 64), pixel16 = (Interleave16, 1, 64),
        pixel32 = (Interleave32, 1, 128),
    ];
    T in [u32, i32, f32, tf32], (W, SLICES, COLS) in [
        plain = (NoSwizzle, 8, 12), span32 = (Swizzle32, 8, 8), span64 = (Swizzle64, 8, 16),
        span128 = (Swizzle128, 8, 32), pixel16 = (Interleave16, 1, 16),
        pixel32 = (Interleave32, 1, 32),
    ];
    T in [u64, i64, f64], (W, SLICES, COLS) in [
        plain = (NoSwizzle, 8, 6), span32 = (Swizzle32, 8, 4), span64 = (Swizzle64, 8, 8),
        span128 = (Swizzle128, 8, 16), pixel16 = (Interleave16, 1, 4),
        pixel32 = (Interleave32, 1, 8),
    ]
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
    T in [u8, e4m3, e5m2], (W, SLICES, COLS) in [
        plain = (NoSwizzle, 2, 48), span32 = (Swizzle32, 2, 32), span64 = (Swizzle64, 2, 64),
        span128 = (Swizzle128, 2, 128), pixel16 = (Interleave16, 1, 256),
        pixel32 = (Interleave32, 1, 512),
    ];
    T in [u16, f16, bf16], (W, SLICES, COLS) in [
        plain = (NoSwizzle, 2, 24), span32 = (Swizzle32, 2, 16), span64 = (Swizzle64, 2, 32),
        span128 = (Swizzle128, 2, 64), pixel16 = (Interleave16, 1, 64),
        pixel32 = (Interleave32, 1, 128),
    ];
    T in [u32, i32, f32, tf32], (W, SLICES, COLS) in [
        plain = (NoSwizzle, 2, 12), span32 = (Swizzle32, 2, 8), span64 = (Swizzle64, 2, 16),
        span128 = (Swizzle128, 2, 32), pixel16 = (Interleave16, 1, 16),
        pixel32 = (Interleave32, 1, 32),
    ];
    T in [u64, i64, f64], (W, SLICES, COLS) in [
        plain = (NoSwizzle, 2, 6), span32 = (Swizzle32, 2, 4), span64 = (Swizzle64, 2, 8),
        span128 = (Swizzle128, 2, 16), pixel16 = (Interleave16, 1, 4),
        pixel32 = (Interleave32, 1, 8),
    ]
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
    T in [u8, e4m3, e5m2], (W, SLICES, COLS) in [
        plain = (NoSwizzle, 2, 48), span32 = (Swizzle32, 2, 32), span64 = (Swizzle64, 2, 64),
        span128 = (Swizzle128, 2, 128), pixel16 = (Interleave16, 1, 256),
        pixel32 = (Interleave32, 1, 512),
    ];
    T in [u16, f16, bf16], (W, SLICES, COLS) in [
        plain = (NoSwizzle, 2, 24), span32 = (Swizzle32, 2, 16), span64 = (Swizzle64, 2, 32),
        span128 = (Swizzle128, 2, 64), pixel16 = (Interleave16, 1, 64),
        pixel32 = (Interleave32, 1, 128),
    ];
    T in [u32, i32, f32, tf32], (W, SLICES, COLS) in [
        plain = (NoSwizzle, 2, 12), span32 = (Swizzle32, 2, 8), span64 = (Swizzle64, 2, 16),
        span128 = (Swizzle128, 2, 32), pixel16 = (Interleave16, 1, 16),
        pixel32 = (Interleave32, 1, 32),
    ];
    T in [u64, i64, f64], (W, SLICES, COLS) in [
        plain = (NoSwizzle, 2, 6), span32 = (Swizzle32, 2, 4), span64 = (Swizzle64, 2, 8),
        span128 = (Swizzle128, 2, 16), pixel16 = (Interleave16, 1, 4),
        pixel32 = (Interleave32, 1, 8),
    ]
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
