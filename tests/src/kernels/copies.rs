//! Hints to the L2 cache, prefetches, several bulk groups in flight, and kernels that check their
//! coordinates.

use tma_runtime::prelude::*;

use crate::case::{Case, Options};
use crate::compare::{same, same_bits};
use crate::random::noise;

/// The cases of this module.
pub const CASES: &[Case] = &[
    Case { name: "copies::hints", run: hints },
    Case { name: "copies::prefetches", run: prefetches },
    Case { name: "copies::groups_in_flight", run: groups_in_flight },
    Case { name: "copies::groups_in_order", run: groups_in_order },
    Case { name: "copies::checked", run: checked },
];

/// Copies `src` to `dst` and adds it to `sums`, by policies of every kind. The launch chooses the
/// one for loads.
#[tma_module]
pub mod hinted {
    use tma_runtime::prelude::*;

    type Block = Tile<f32, Shape2<16, 32>, Swizzle128>;

    #[tma_device]
    fn policy(keep: bool, fraction: f32) -> CachePolicy {
        if keep { l2_evict_last(fraction) } else { l2_evict_first(fraction) }
    }

    #[tma_device]
    fn fetch(src: TensorMap<Block>, tile: Block, at: [u32; 2], full: Barrier) {
        src.prefetch(at);
        src.load(tile, at, full);
    }

    /// One tile per block.
    #[tma_kernel(threads = 32)]
    pub fn copy_hinted(
        src: TensorMap<Block>,
        dst: TensorMap<Block>,
        sums: TensorMap<Block>,
        keep: bool,
        fraction: f32,
    ) {
        let tile: Block = shared();
        let full: Barrier = shared();
        let at = [block_idx().y * 16, block_idx().x * 32];
        if thread_idx().x == 0 {
            full.init(1);
            fence_barrier_init();
            full.arrive_expect_tx(tile.bytes());
            fetch(src.hint(policy(keep, fraction)), tile, at, full);
            full.wait(0);
            dst.hint(l2_evict_unchanged(0.5)).store(at, tile);
            sums.hint(l2_evict_normal(1.0)).reduce_add(at, tile);
            bulk_commit_group();
            bulk_wait_group_read::<0>();
        }
    }
}

use hinted::copy_hinted;

fn hints(device: &Device, _: &Options) -> anyhow::Result<()> {
    let shape = [41, 68];
    let source: Vec<f32> = (0..41 * 68).map(|i| i as f32).collect();
    let src = device.tensor(&source, shape)?;
    let mut sums = device.tensor(&source, shape)?;
    let mut times = 1.0;
    for (keep, fraction) in [(false, 1.0), (true, 1.0), (true, 0.25)] {
        let mut dst = device.filled_bytes(shape, 0xab)?;
        let grid = Grid::tiles(shape, [16, 32]);
        copy_hinted::launch(device, grid, &src, &mut dst, &mut sums, keep, fraction)?;
        same_bits(&dst.to_vec()?, &source)?;
        times += 1.0;
        let wanted: Vec<f32> = source.iter().map(|x| x * times).collect();
        same("sums", &sums.to_vec()?, &wanted)?;
    }
    Ok(())
}

/// Prefetches tiles of five, three and one dimensions, the second outside of its tensor, and copies
/// the last one.
#[tma_kernel(threads = 32)]
pub fn prefetch_tiles(
    five: TensorMap<Tile<u16, Shape5<1, 2, 2, 2, 8>>>,
    three: TensorMap<Tile<u8, Shape3<2, 4, 32>, Swizzle32>>,
    one: TensorMap<Tile<u64, Shape1<16>>>,
    dst: TensorMap<Tile<u64, Shape1<16>>>,
) {
    let tile: Tile<u64, Shape1<16>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        one.prefetch_descriptor();
        five.prefetch([0, 1, 0, 1, 8]);
        three.hint(l2_evict_last(1.0)).prefetch([-2, 100, -32]);
        one.prefetch([block_idx().x * 16]);
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        one.load(tile, [block_idx().x * 16], full);
        full.wait(0);
        dst.store([block_idx().x * 16], tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

fn prefetches(device: &Device, _: &Options) -> anyhow::Result<()> {
    let source = noise::<u64>(461, 50);
    let (five, three) = (device.zeros([2, 2, 2, 2, 16])?, device.zeros([2, 4, 32])?);
    let one = device.tensor(&source, [50])?;
    let mut dst = device.filled_bytes([50], 0xab)?;
    prefetch_tiles::launch(device, Grid::tiles([50], [16]), &five, &three, &one, &mut dst)?;
    same_bits(&dst.to_vec()?, &source)
}

/// Stores a tile in each of `turns` iterations. There are three tiles: one is rewritten while the
/// two stores before it may still read theirs.
#[tma_kernel(threads = 128)]
pub fn groups_of_three(dst: TensorMap<Tile<u32, Shape2<4, 32>>>, turns: u32) {
    let tiles: Stages<Tile<u32, Shape2<4, 32>>, 3> = shared();
    let t = thread_idx().x;
    for k in 0..turns {
        if t == 0 {
            bulk_wait_group_read::<2>();
        }
        sync_threads();
        tiles[k % 3].set([t / 32, t % 32], k * 1000 + t);
        fence_proxy_async();
        sync_threads();
        if t == 0 {
            dst.store([k * 4, 0], tiles[k % 3]);
            bulk_commit_group();
        }
    }
    if t == 0 {
        bulk_wait_group_read::<0>();
    }
}

fn groups_in_flight(device: &Device, _: &Options) -> anyhow::Result<()> {
    for turns in [1, 2, 3, 4, 11] {
        let n = turns * 128;
        let mut dst = device.filled_bytes([turns * 4, 32], 0xab)?;
        groups_of_three::launch(device, 1, &mut dst, turns as u32)?;
        let wanted: Vec<u32> = (0..n as u32).map(|i| i / 128 * 1000 + i % 128).collect();
        same("elements stored", &dst.to_vec()?, &wanted)?;
    }
    Ok(())
}

/// Two groups: a store, then two reductions. The store is in memory once at most one group is
/// unfinished.
#[tma_kernel(threads = 32)]
pub fn groups_of_two(first: Global<u32>, second: TensorMap<Tile<u32, Shape1<32>>>, seen: Global<u32>) {
    let tile: Tile<u32, Shape1<32>> = shared();
    tile.set([lane_idx()], lane_idx() + 100);
    fence_proxy_async();
    sync_threads();
    if thread_idx().x == 0 {
        first.bulk_store(0, tile, 0, 32);
        bulk_commit_group();
        second.reduce_add([0], tile);
        second.reduce_add([16], tile);
        bulk_commit_group();
        bulk_wait_group::<1>();
        for i in 0..32u32 {
            seen.set(i, first.get(i));
        }
        bulk_wait_group::<0>();
    }
}

fn groups_in_order(device: &Device, _: &Options) -> anyhow::Result<()> {
    let mut first = device.filled_bytes::<u32, 1>([32], 0xab)?;
    let mut second = device.filled_bytes::<u32, 1>([40], 0)?;
    let mut seen = device.filled_bytes([32], 0xab)?;
    groups_of_two::launch(device, 1, &mut first, &mut second, &mut seen)?;
    let stored: Vec<u32> = (100..132).collect();
    same("elements seen", &seen.to_vec()?, &stored)?;
    let sum = |i: u32| if i < 32 { 100 + i } else { 0 } + if i >= 16 { 84 + i } else { 0 };
    same("sums", &second.to_vec()?, &(0..40).map(sum).collect::<Vec<_>>())
}

/// Loads and stores at any coordinates that the copy engine accepts.
#[tma_kernel(threads = 32, checked)]
pub fn copy_checked(
    src: TensorMap<Tile<f16, Shape2<8, 32>>>,
    dst: TensorMap<Tile<f16, Shape2<8, 32>>>,
    from: i32,
    to: i32,
) {
    let tile: Tile<f16, Shape2<8, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, [from, from], full);
        full.wait(0);
        dst.store([to, to], tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// Coordinates that the engine accepts pass the tests of a checked kernel.
fn checked(device: &Device, _: &Options) -> anyhow::Result<()> {
    let source = noise::<f16>(471, 16 * 64);
    let src = device.tensor(&source, [16, 64])?;
    for (from, to) in [(0, 0), (8, 16), (-8, 8), (0, 800)] {
        let mut dst = device.filled_bytes([16, 64], 0)?;
        copy_checked::launch(device, 1, &src, &mut dst, from, to)?;
        let moved = |i: i32| {
            let [row, col] = [i / 64 - to, i % 64 - to];
            let inside = (0..8).contains(&row) && (0..32).contains(&col);
            let (row, col) = (row + from, col + from);
            if inside && row >= 0 && col >= 0 { source[(row * 64 + col) as usize] } else { f16::ZERO }
        };
        same(&format!("from {from} to {to}"), &dst.to_vec()?, &(0..16 * 64).map(moved).collect::<Vec<_>>())?;
    }
    Ok(())
}
