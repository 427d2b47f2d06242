//! Bulk copies from and to shared arrays and tiles.

use tma_runtime::prelude::*;

use crate::case::{Case, Options};
use crate::compare::same_bits;
use crate::random::{Sample, noise};

pub(super) const CASES: &[Case] = &[
    Case { name: "bulk::elements", run: elements },
    Case { name: "bulk::tiles", run: tiles },
    Case { name: "bulk::pipeline", run: pipeline },
];

/// Copies `count` elements from `src[from..]` to `dst[to..]` through an array, in which they start
/// at element `at`. The neighbours in the array must not be copied.
#[tma_kernel(threads = 64, instances(bools = <bool, 1>, bytes = <u8, 1>, signed_bytes = <i8, 1>, e5m2s = <e5m2, 1>, shorts = <i16, 2>, halves = <f16, 2>, words = <u32, 4>, floats = <f32, 4>, longs = <i64, 8>, doubles = <f64, 8>))]
pub fn bulk_part<T: Scalar, const BYTES: u32>(
    src: Global<T>,
    dst: Global<T>,
    from: u64,
    to: i64,
    at: u32,
    count: u32,
) {
    let array: SharedArray<T, 512> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        src.hint(l2_evict_first(1.0)).bulk_prefetch(from, count);
        full.arrive_expect_tx(count * BYTES);
        src.bulk_load(array, at, count, from, full);
        full.wait(0);
        dst.bulk_store(to, array, at, count);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// Checks one element type: `launch` takes `from`, `to`, `at` and `count`.
fn check<T: Sample>(
    device: &Device,
    seed: u64,
    launch: impl Fn(&DeviceTensor<T, 1>, &mut DeviceTensor<T, 1>, [usize; 4]) -> Result<(), Error>,
) -> anyhow::Result<()> {
    let (n, unit) = (1024, 16 / size_of::<T>());
    let source = noise::<T>(seed, n);
    let src = device.tensor(&source, [n])?;
    for [from, to, at, count] in
        [[0, 0, 0, 512], [3 * unit, unit, 2 * unit, 5 * unit], [n - unit, n - unit, 512 - unit, unit]]
    {
        let mut dst = device.tensor(&noise::<T>(seed + 1, n), [n])?;
        launch(&src, &mut dst, [from, to, at, count])?;
        let mut wanted = noise::<T>(seed + 1, n);
        wanted[to..to + count].copy_from_slice(&source[from..from + count]);
        same_bits(&dst.to_vec()?, &wanted)?;
    }
    Ok(())
}

fn elements(device: &Device, _: &Options) -> anyhow::Result<()> {
    macro_rules! of {
        ($($ty:ty, $instance:ident, $seed:literal;)+) => { $(
            check::<$ty>(device, $seed, |src, dst, [from, to, at, count]| {
                bulk_part::$instance::launch(device, 1, src, dst, from as u64, to as i64, at as u32, count as u32)
            })?;
        )+ };
    }
    of! {
        bool, bools, 501;
        u8, bytes, 503;
        i8, signed_bytes, 505;
        e5m2, e5m2s, 507;
        i16, shorts, 509;
        f16, halves, 511;
        u32, words, 513;
        f32, floats, 515;
        i64, longs, 517;
        f64, doubles, 519;
    }
    Ok(())
}

/// Loads rows 2 to 5 of a tile by a bulk copy, fills the others by threads, and stores the whole
/// tile by its map.
#[tma_kernel(threads = 32)]
pub fn bulk_tile(src: Global<u32>, dst: TensorMap<Tile<u32, Shape2<8, 32>>>) {
    let tile: Tile<u32, Shape2<8, 32>> = shared();
    let full: Barrier = shared();
    let lane = lane_idx();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(4 * 32 * 4);
        src.hint(l2_evict_last(1.0)).bulk_load(tile, 64, 128, 0, full);
    }
    for row in unroll(0..8u32) {
        if row < 2 || row >= 6 {
            tile.set([row, lane], 1000 + row);
        }
    }
    fence_proxy_async();
    sync_threads();
    full.wait(0);
    if thread_idx().x == 0 {
        dst.store([0, 0], tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

fn tiles(device: &Device, _: &Options) -> anyhow::Result<()> {
    let source = noise::<u32>(521, 128);
    let mut dst = device.filled_bytes([8, 32], 0xab)?;
    bulk_tile::launch(device, 1, &device.tensor(&source, [128])?, &mut dst)?;
    let element = |i: usize| if (64..192).contains(&i) { source[i - 64] } else { 1000 + i as u32 / 32 };
    same_bits(&dst.to_vec()?, &(0..256).map(element).collect::<Vec<_>>())
}

/// Adds 1 to every element, 256 at a time, while the next part is in flight. A tail shorter than
/// that is copied with its own length.
#[tma_kernel(threads = 128)]
pub fn bulk_pipeline(src: Global<u64>, dst: Global<u64>) {
    let parts: Stages<SharedArray<u64, 256>, 2> = shared();
    let full: Stages<Barrier, 2> = shared();
    let t = thread_idx().x;
    let n = src.len() as u32;
    if t == 0 {
        full[0].init(1);
        full[1].init(1);
        fence_barrier_init();
        let count = min(256, n);
        full[0].arrive_expect_tx(count * 8);
        src.bulk_load(parts[0], 0, count, 0, full[0]);
    }
    sync_threads();
    for k in 0..n.div_ceil(256) {
        let stage = k % 2;
        let start = k * 256;
        let next = start + 256;
        if t == 0 && next < n {
            bulk_wait_group_read::<0>();
            let count = min(256, n - next);
            full[1 - stage].arrive_expect_tx(count * 8);
            src.bulk_load(parts[1 - stage], 0, count, next, full[1 - stage]);
        }
        full[stage].wait((k / 2) & 1);
        let count = min(256, n - start);
        for i in (t..count).step_by(128) {
            parts[stage].set(i, parts[stage].get(i) + 1);
        }
        fence_proxy_async();
        sync_threads();
        if t == 0 {
            dst.bulk_store(start, parts[stage], 0, count);
            bulk_commit_group();
        }
    }
    if t == 0 {
        bulk_wait_group_read::<0>();
    }
}

fn pipeline(device: &Device, _: &Options) -> anyhow::Result<()> {
    for n in [2, 256, 258, 1100] {
        let source = noise::<u64>(523, n);
        let mut dst = device.filled_bytes([n], 0xab)?;
        bulk_pipeline::launch(device, 1, &device.tensor(&source, [n])?, &mut dst)?;
        let wanted: Vec<_> = source.iter().map(|x| x.wrapping_add(1)).collect();
        same_bits(&dst.to_vec()?, &wanted)?;
    }
    Ok(())
}
