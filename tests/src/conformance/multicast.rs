//! Kernels of the conformance table: loads into both blocks of a cluster.

use tma_runtime::prelude::*;

/// Rank 1.
#[tma_kernel(threads = 32, cluster = 2, instances(
    u8_plain = <u8, NoSwizzle, 48>, u8_span128 = <u8, Swizzle128, 128>,
    u16_plain = <u16, NoSwizzle, 24>, u16_span128 = <u16, Swizzle128, 64>,
    u32_plain = <u32, NoSwizzle, 12>, u32_span128 = <u32, Swizzle128, 32>,
    u64_plain = <u64, NoSwizzle, 6>, u64_span128 = <u64, Swizzle128, 16>,
))]
pub fn multicast_rank_1<T: TileElement, W: Swizzle, const COLS: u32>(
    src: TensorMap<Tile<T, Shape1<COLS>, W>>,
    seen: Global<T>,
    at0: i32,
) {
    let tile: Tile<T, Shape1<COLS>, W> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
    }
    sync_cluster();
    if thread_idx().x == 0 && cluster_rank() == 1 {
        src.load_multicast(tile, [at0], full, 0b11);
    }
    full.wait(0);
    for i in (lane_idx()..COLS).step_by(32) {
        seen.set(cluster_rank() * (COLS) + i, tile.get([i]));
    }
    sync_cluster();
}

/// Rank 2.
#[tma_kernel(threads = 32, cluster = 2, instances(
    u8_plain = <u8, NoSwizzle, 48>, u8_span128 = <u8, Swizzle128, 128>,
    u16_plain = <u16, NoSwizzle, 24>, u16_span128 = <u16, Swizzle128, 64>,
    u32_plain = <u32, NoSwizzle, 12>, u32_span128 = <u32, Swizzle128, 32>,
    u64_plain = <u64, NoSwizzle, 6>, u64_span128 = <u64, Swizzle128, 16>,
))]
pub fn multicast_rank_2<T: TileElement, W: Swizzle, const COLS: u32>(
    src: TensorMap<Tile<T, Shape2<24, COLS>, W>>,
    seen: Global<T>,
    at0: i32,
    at1: i32,
) {
    let tile: Tile<T, Shape2<24, COLS>, W> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
    }
    sync_cluster();
    if thread_idx().x == 0 && cluster_rank() == 1 {
        src.load_multicast(tile, [at0, at1], full, 0b11);
    }
    full.wait(0);
    for i in (lane_idx()..24 * COLS).step_by(32) {
        seen.set(cluster_rank() * (24 * COLS) + i, tile.get([i / COLS, i % COLS]));
    }
    sync_cluster();
}

/// Rank 3.
#[tma_kernel(threads = 32, cluster = 2, instances(
    u8_plain = <u8, NoSwizzle, 8, 48>, u8_span128 = <u8, Swizzle128, 8, 128>, u8_pixel16 = <u8, Interleave16, 1, 256>, u8_pixel32 = <u8, Interleave32, 1, 512>,
    u16_plain = <u16, NoSwizzle, 8, 24>, u16_span128 = <u16, Swizzle128, 8, 64>, u16_pixel16 = <u16, Interleave16, 1, 64>, u16_pixel32 = <u16, Interleave32, 1, 128>,
    u32_plain = <u32, NoSwizzle, 8, 12>, u32_span128 = <u32, Swizzle128, 8, 32>, u32_pixel16 = <u32, Interleave16, 1, 16>, u32_pixel32 = <u32, Interleave32, 1, 32>,
    u64_plain = <u64, NoSwizzle, 8, 6>, u64_span128 = <u64, Swizzle128, 8, 16>, u64_pixel16 = <u64, Interleave16, 1, 4>, u64_pixel32 = <u64, Interleave32, 1, 8>,
))]
pub fn multicast_rank_3<T: TileElement, W: Swizzle, const SLICES: u32, const COLS: u32>(
    src: TensorMap<Tile<T, Shape3<3, SLICES, COLS>, W>>,
    seen: Global<T>,
    at0: i32,
    at1: i32,
    at2: i32,
) {
    let tile: Tile<T, Shape3<3, SLICES, COLS>, W> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
    }
    sync_cluster();
    if thread_idx().x == 0 && cluster_rank() == 1 {
        src.load_multicast(tile, [at0, at1, at2], full, 0b11);
    }
    full.wait(0);
    for i in (lane_idx()..3 * SLICES * COLS).step_by(32) {
        seen.set(
            cluster_rank() * (3 * SLICES * COLS) + i,
            tile.get([i / (SLICES * COLS), i / COLS % SLICES, i % COLS]),
        );
    }
    sync_cluster();
}

/// Rank 4.
#[tma_kernel(threads = 32, cluster = 2, instances(
    u8_plain = <u8, NoSwizzle, 2, 48>, u8_span128 = <u8, Swizzle128, 2, 128>, u8_pixel16 = <u8, Interleave16, 1, 256>, u8_pixel32 = <u8, Interleave32, 1, 512>,
    u16_plain = <u16, NoSwizzle, 2, 24>, u16_span128 = <u16, Swizzle128, 2, 64>, u16_pixel16 = <u16, Interleave16, 1, 64>, u16_pixel32 = <u16, Interleave32, 1, 128>,
    u32_plain = <u32, NoSwizzle, 2, 12>, u32_span128 = <u32, Swizzle128, 2, 32>, u32_pixel16 = <u32, Interleave16, 1, 16>, u32_pixel32 = <u32, Interleave32, 1, 32>,
    u64_plain = <u64, NoSwizzle, 2, 6>, u64_span128 = <u64, Swizzle128, 2, 16>, u64_pixel16 = <u64, Interleave16, 1, 4>, u64_pixel32 = <u64, Interleave32, 1, 8>,
))]
pub fn multicast_rank_4<T: TileElement, W: Swizzle, const SLICES: u32, const COLS: u32>(
    src: TensorMap<Tile<T, Shape4<3, SLICES, 4, COLS>, W>>,
    seen: Global<T>,
    at0: i32,
    at1: i32,
    at2: i32,
    at3: i32,
) {
    let tile: Tile<T, Shape4<3, SLICES, 4, COLS>, W> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
    }
    sync_cluster();
    if thread_idx().x == 0 && cluster_rank() == 1 {
        src.load_multicast(tile, [at0, at1, at2, at3], full, 0b11);
    }
    full.wait(0);
    for i in (lane_idx()..12 * SLICES * COLS).step_by(32) {
        seen.set(
            cluster_rank() * (12 * SLICES * COLS) + i,
            tile.get([i / (4 * SLICES * COLS), i / (4 * COLS) % SLICES, i / COLS % 4, i % COLS]),
        );
    }
    sync_cluster();
}

/// Rank 5.
#[tma_kernel(threads = 32, cluster = 2, instances(
    u8_plain = <u8, NoSwizzle, 2, 48>, u8_span128 = <u8, Swizzle128, 2, 128>, u8_pixel16 = <u8, Interleave16, 1, 256>, u8_pixel32 = <u8, Interleave32, 1, 512>,
    u16_plain = <u16, NoSwizzle, 2, 24>, u16_span128 = <u16, Swizzle128, 2, 64>, u16_pixel16 = <u16, Interleave16, 1, 64>, u16_pixel32 = <u16, Interleave32, 1, 128>,
    u32_plain = <u32, NoSwizzle, 2, 12>, u32_span128 = <u32, Swizzle128, 2, 32>, u32_pixel16 = <u32, Interleave16, 1, 16>, u32_pixel32 = <u32, Interleave32, 1, 32>,
    u64_plain = <u64, NoSwizzle, 2, 6>, u64_span128 = <u64, Swizzle128, 2, 16>, u64_pixel16 = <u64, Interleave16, 1, 4>, u64_pixel32 = <u64, Interleave32, 1, 8>,
))]
pub fn multicast_rank_5<T: TileElement, W: Swizzle, const SLICES: u32, const COLS: u32>(
    src: TensorMap<Tile<T, Shape5<2, SLICES, 3, 2, COLS>, W>>,
    seen: Global<T>,
    at0: i32,
    at1: i32,
    at2: i32,
    at3: i32,
    at4: i32,
) {
    let tile: Tile<T, Shape5<2, SLICES, 3, 2, COLS>, W> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
    }
    sync_cluster();
    if thread_idx().x == 0 && cluster_rank() == 1 {
        src.load_multicast(tile, [at0, at1, at2, at3, at4], full, 0b11);
    }
    full.wait(0);
    for i in (lane_idx()..12 * SLICES * COLS).step_by(32) {
        seen.set(
            cluster_rank() * (12 * SLICES * COLS) + i,
            tile.get([
                i / (6 * SLICES * COLS),
                i / (6 * COLS) % SLICES,
                i / (2 * COLS) % 3,
                i / COLS % 2,
                i % COLS,
            ]),
        );
    }
    sync_cluster();
}
