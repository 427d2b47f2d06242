//! Kernels of the conformance table: columns of pixels, loaded, stored and reduced, for tensors of
//! each rank that supports them.
//!
//! `how` is the number of the form among those of the kernel.

use tma_runtime::prelude::*;

/// Loads, prefetches and stores of tensors of rank 3.
#[tma_kernel(threads = 32, instances(
    u8_plain = <u8, NoSwizzle, 48>, u16_span64 = <u16, Swizzle64, 32>, u32_plain = <u32, NoSwizzle, 12>, u64_span128 = <u64, Swizzle128, 16>,
))]
pub fn columns_3<T: TileElement, W: Swizzle, const CHANNELS: u32>(
    src: Im2colMap<Tile<T, Shape2<40, CHANNELS>, W>, 3>,
    dst: Im2colMap<Tile<T, Shape2<40, CHANNELS>, W>, 3>,
    seen: Global<T>,
    given: Global<T>,
    how: u32,
    at0: i32,
    at1: i32,
    at2: i32,
    offset0: u16,
) {
    let tile: Tile<T, Shape2<40, CHANNELS>, W> = shared();
    let full: Barrier = shared();
    let at = [at0, at1, at2];
    let offsets = [offset0];
    if how < 3 {
        if thread_idx().x == 0 {
            full.init(1);
            fence_barrier_init();
            full.arrive_expect_tx(tile.bytes());
            match how {
                0 => src.load(tile, at, offsets, full),
                1 => {
                    src.prefetch(at, offsets);
                    src.load(tile, at, offsets, full);
                }
                _ => {
                    src.hint(l2_evict_last(1.0)).prefetch(at, offsets);
                    src.hint(l2_evict_first(1.0)).load(tile, at, offsets, full);
                }
            }
        }
        sync_threads();
        full.wait(0);
        for i in (lane_idx()..40 * CHANNELS).step_by(32) {
            seen.set(i, tile.get([i / CHANNELS, i % CHANNELS]));
        }
    } else {
        for i in (lane_idx()..40 * CHANNELS).step_by(32) {
            tile.set([i / CHANNELS, i % CHANNELS], given.get(i));
        }
        fence_proxy_async();
        sync_threads();
        if thread_idx().x == 0 {
            match how {
                3 => dst.store(at, tile),
                _ => dst.hint(l2_evict_last(1.0)).store(at, tile),
            }
            bulk_commit_group();
            bulk_wait_group_read::<0>();
        }
    }
}

/// Loads into both blocks of a cluster, of tensors of rank 3.
#[tma_kernel(threads = 32, cluster = 2, instances(
    u8_plain = <u8, NoSwizzle, 48>, u32_span128 = <u32, Swizzle128, 32>,
))]
pub fn columns_multicast_3<T: TileElement, W: Swizzle, const CHANNELS: u32>(
    src: Im2colMap<Tile<T, Shape2<40, CHANNELS>, W>, 3>,
    seen: Global<T>,
    how: u32,
    at0: i32,
    at1: i32,
    at2: i32,
    offset0: u16,
) {
    let tile: Tile<T, Shape2<40, CHANNELS>, W> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
    }
    sync_cluster();
    if thread_idx().x == 0 && cluster_rank() == 1 {
        match how {
            0 => src.load_multicast(tile, [at0, at1, at2], [offset0], full, 0b11),
            _ => src.hint(l2_evict_first(1.0)).load_multicast(tile, [at0, at1, at2], [offset0], full, 0b11),
        }
    }
    full.wait(0);
    for i in (lane_idx()..40 * CHANNELS).step_by(32) {
        seen.set(cluster_rank() * (40 * CHANNELS) + i, tile.get([i / CHANNELS, i % CHANNELS]));
    }
    sync_cluster();
}

/// Loads, prefetches and stores of tensors of rank 4.
#[tma_kernel(threads = 32, instances(
    u8_plain = <u8, NoSwizzle, 48>, u16_span64 = <u16, Swizzle64, 32>, u32_plain = <u32, NoSwizzle, 12>, u64_span128 = <u64, Swizzle128, 16>,
))]
pub fn columns_4<T: TileElement, W: Swizzle, const CHANNELS: u32>(
    src: Im2colMap<Tile<T, Shape2<40, CHANNELS>, W>, 4>,
    dst: Im2colMap<Tile<T, Shape2<40, CHANNELS>, W>, 4>,
    seen: Global<T>,
    given: Global<T>,
    how: u32,
    at0: i32,
    at1: i32,
    at2: i32,
    at3: i32,
    offset0: u16,
    offset1: u16,
) {
    let tile: Tile<T, Shape2<40, CHANNELS>, W> = shared();
    let full: Barrier = shared();
    let at = [at0, at1, at2, at3];
    let offsets = [offset0, offset1];
    if how < 3 {
        if thread_idx().x == 0 {
            full.init(1);
            fence_barrier_init();
            full.arrive_expect_tx(tile.bytes());
            match how {
                0 => src.load(tile, at, offsets, full),
                1 => {
                    src.prefetch(at, offsets);
                    src.load(tile, at, offsets, full);
                }
                _ => {
                    src.hint(l2_evict_last(1.0)).prefetch(at, offsets);
                    src.hint(l2_evict_first(1.0)).load(tile, at, offsets, full);
                }
            }
        }
        sync_threads();
        full.wait(0);
        for i in (lane_idx()..40 * CHANNELS).step_by(32) {
            seen.set(i, tile.get([i / CHANNELS, i % CHANNELS]));
        }
    } else {
        for i in (lane_idx()..40 * CHANNELS).step_by(32) {
            tile.set([i / CHANNELS, i % CHANNELS], given.get(i));
        }
        fence_proxy_async();
        sync_threads();
        if thread_idx().x == 0 {
            match how {
                3 => dst.store(at, tile),
                _ => dst.hint(l2_evict_last(1.0)).store(at, tile),
            }
            bulk_commit_group();
            bulk_wait_group_read::<0>();
        }
    }
}

/// Loads into both blocks of a cluster, of tensors of rank 4.
#[tma_kernel(threads = 32, cluster = 2, instances(
    u8_plain = <u8, NoSwizzle, 48>, u32_span128 = <u32, Swizzle128, 32>,
))]
pub fn columns_multicast_4<T: TileElement, W: Swizzle, const CHANNELS: u32>(
    src: Im2colMap<Tile<T, Shape2<40, CHANNELS>, W>, 4>,
    seen: Global<T>,
    how: u32,
    at0: i32,
    at1: i32,
    at2: i32,
    at3: i32,
    offset0: u16,
    offset1: u16,
) {
    let tile: Tile<T, Shape2<40, CHANNELS>, W> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
    }
    sync_cluster();
    if thread_idx().x == 0 && cluster_rank() == 1 {
        match how {
            0 => src.load_multicast(tile, [at0, at1, at2, at3], [offset0, offset1], full, 0b11),
            _ => src.hint(l2_evict_first(1.0)).load_multicast(
                tile,
                [at0, at1, at2, at3],
                [offset0, offset1],
                full,
                0b11,
            ),
        }
    }
    full.wait(0);
    for i in (lane_idx()..40 * CHANNELS).step_by(32) {
        seen.set(cluster_rank() * (40 * CHANNELS) + i, tile.get([i / CHANNELS, i % CHANNELS]));
    }
    sync_cluster();
}

/// Loads, prefetches and stores of tensors of rank 5.
#[tma_kernel(threads = 32, instances(
    u8_plain = <u8, NoSwizzle, 48>, u16_span64 = <u16, Swizzle64, 32>, u32_plain = <u32, NoSwizzle, 12>, u64_span128 = <u64, Swizzle128, 16>,
))]
pub fn columns_5<T: TileElement, W: Swizzle, const CHANNELS: u32>(
    src: Im2colMap<Tile<T, Shape2<40, CHANNELS>, W>, 5>,
    dst: Im2colMap<Tile<T, Shape2<40, CHANNELS>, W>, 5>,
    seen: Global<T>,
    given: Global<T>,
    how: u32,
    at0: i32,
    at1: i32,
    at2: i32,
    at3: i32,
    at4: i32,
    offset0: u16,
    offset1: u16,
    offset2: u16,
) {
    let tile: Tile<T, Shape2<40, CHANNELS>, W> = shared();
    let full: Barrier = shared();
    let at = [at0, at1, at2, at3, at4];
    let offsets = [offset0, offset1, offset2];
    if how < 3 {
        if thread_idx().x == 0 {
            full.init(1);
            fence_barrier_init();
            full.arrive_expect_tx(tile.bytes());
            match how {
                0 => src.load(tile, at, offsets, full),
                1 => {
                    src.prefetch(at, offsets);
                    src.load(tile, at, offsets, full);
                }
                _ => {
                    src.hint(l2_evict_last(1.0)).prefetch(at, offsets);
                    src.hint(l2_evict_first(1.0)).load(tile, at, offsets, full);
                }
            }
        }
        sync_threads();
        full.wait(0);
        for i in (lane_idx()..40 * CHANNELS).step_by(32) {
            seen.set(i, tile.get([i / CHANNELS, i % CHANNELS]));
        }
    } else {
        for i in (lane_idx()..40 * CHANNELS).step_by(32) {
            tile.set([i / CHANNELS, i % CHANNELS], given.get(i));
        }
        fence_proxy_async();
        sync_threads();
        if thread_idx().x == 0 {
            match how {
                3 => dst.store(at, tile),
                _ => dst.hint(l2_evict_last(1.0)).store(at, tile),
            }
            bulk_commit_group();
            bulk_wait_group_read::<0>();
        }
    }
}

/// Loads into both blocks of a cluster, of tensors of rank 5.
#[tma_kernel(threads = 32, cluster = 2, instances(
    u8_plain = <u8, NoSwizzle, 48>, u32_span128 = <u32, Swizzle128, 32>,
))]
pub fn columns_multicast_5<T: TileElement, W: Swizzle, const CHANNELS: u32>(
    src: Im2colMap<Tile<T, Shape2<40, CHANNELS>, W>, 5>,
    seen: Global<T>,
    how: u32,
    at0: i32,
    at1: i32,
    at2: i32,
    at3: i32,
    at4: i32,
    offset0: u16,
    offset1: u16,
    offset2: u16,
) {
    let tile: Tile<T, Shape2<40, CHANNELS>, W> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
    }
    sync_cluster();
    if thread_idx().x == 0 && cluster_rank() == 1 {
        match how {
            0 => src.load_multicast(tile, [at0, at1, at2, at3, at4], [offset0, offset1, offset2], full, 0b11),
            _ => src.hint(l2_evict_first(1.0)).load_multicast(
                tile,
                [at0, at1, at2, at3, at4],
                [offset0, offset1, offset2],
                full,
                0b11,
            ),
        }
    }
    full.wait(0);
    for i in (lane_idx()..40 * CHANNELS).step_by(32) {
        seen.set(cluster_rank() * (40 * CHANNELS) + i, tile.get([i / CHANNELS, i % CHANNELS]));
    }
    sync_cluster();
}
