//! Kernels of a team. Most launches have the memory of all ranks on one device, where ranks run one
//! after the other.

use tma_runtime::prelude::*;

use crate::case::{Case, Options, blocks};
use crate::compare::same;
use crate::random::noise;

/// The cases of this module.
pub const CASES: &[Case] = &[
    Case { name: "teams::numbers", run: numbers },
    Case { name: "teams::gathered", run: gathered },
    Case { name: "teams::maps", run: maps },
    Case { name: "teams::strong", run: strong },
    Case { name: "teams::bulk", run: bulk },
];

/// The number of ranks, of which no power of two is a multiple.
const RANKS: usize = 3;

/// Returns a tensor of each rank.
fn of_ranks<T>(mut make: impl FnMut(usize) -> Result<T, Error>) -> anyhow::Result<[T; RANKS]> {
    Ok([make(0)?, make(1)?, make(2)?])
}

fn numbers(device: &Device, _: &Options) -> anyhow::Result<()> {
    let mut out = of_ranks(|_| device.zeros::<u32, 1>([2]))?;
    let [a, b, c] = &mut out;
    team_numbers::launch(device, 1, &mut [a, b, c], 7)?;
    for (rank, out) in out.iter().enumerate() {
        same("the rank, and the number of ranks", &out.to_vec()?, &[rank as u32 + 7, RANKS as u32])?;
    }
    let mut out = device.zeros::<u32, 1>([2])?;
    team_numbers::launch(device, 1, &mut [&mut out], 0)?;
    same("one rank", &out.to_vec()?, &[0, 1])
}

/// Each rank writes its own slice, which is not one of peers.
#[tma_kernel(threads = 32)]
pub fn team_numbers(out: Global<u32>, first: u32) {
    if thread_idx().x == 0 {
        out.set(0, first + rank());
        out.set(1, ranks());
    }
}

fn gathered(device: &Device, options: &Options) -> anyhow::Result<()> {
    let n = options.elements(1 << 12);
    let values: Vec<Vec<f32>> = (0..RANKS as u64).map(|rank| noise(310 + rank, n)).collect();
    let parts = of_ranks(|rank| device.tensor(&values[rank], [n]))?;
    let mut all = of_ranks(|_| device.filled_bytes::<f32, 1>([RANKS * n], 0xab))?;
    let [a, b, c] = &mut all;
    team_gather::launch::<f32>(device, blocks(n), &parts.each_ref(), &mut [a, b, c])?;
    for all in &all {
        same("the parts of all ranks", &all.to_vec()?, &values.concat())?;
    }
    Ok(())
}

/// Each rank writes its part to all ranks, also to itself, four elements at a time.
#[tma_kernel(threads = 128, instances(T in [f32, u32]))]
pub fn team_gather<T: Scalar>(part: Peers<Global<T>>, all: Peers<Global<T>>) {
    let i = (block_idx().x as u64 * 128 + thread_idx().x as u64) * 4;
    let n = part.own().len();
    if i + 4 <= n {
        let x = part.own().get_vec::<4>(i);
        for k in 0..ranks() {
            all.of((rank() + k) % ranks()).set_vec(rank() as u64 * n + i, x);
        }
    }
}

fn maps(device: &Device, _: &Options) -> anyhow::Result<()> {
    let shape = [96, 64];
    let values: Vec<Vec<f32>> = (0..RANKS as u64).map(|rank| noise(320 + rank, 96 * 64)).collect();
    let src = of_ranks(|rank| device.tensor(&values[rank], shape))?;
    let mut next = of_ranks(|_| device.filled_bytes::<f32, 2>(shape, 0xab))?;
    let mut sums = of_ranks(|_| device.zeros::<f32, 2>(shape))?;
    let ([a, b, c], [d, e, f]) = (&mut next, &mut sums);
    let grid = team_maps::tiles_of_next(shape);
    team_maps::launch(device, grid, &src.each_ref(), &mut [a, b, c], &mut [d, e, f])?;
    for (rank, (next, sums)) in next.iter().zip(&sums).enumerate() {
        same("the next rank's tiles", &next.to_vec()?, &values[(rank + 1) % RANKS])?;
        // Each rank adds the tile of this one, once.
        let wanted: Vec<f32> = values[rank].iter().map(|x| (0..RANKS).map(|_| *x).sum()).collect();
        same("the tile, as often as there are ranks", &sums.to_vec()?, &wanted)?;
    }
    Ok(())
}

/// Loads the tile of each rank, stores that of the next rank to this one's, and adds each to the
/// sums of the rank that it belongs to.
#[tma_kernel(threads = 128)]
pub fn team_maps(
    src: Peers<TensorMap<Tile<f32, Shape2<32, 32>, Swizzle128>>>,
    next: TensorMap<Tile<f32, Shape2<32, 32>, Swizzle128>>,
    sums: Peers<TensorMap<Tile<f32, Shape2<32, 32>, Swizzle128>>>,
) {
    let tile: Tile<f32, Shape2<32, 32>, Swizzle128> = shared();
    let full: Barrier = shared();
    let at = next.block_tile();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        let mut phase = Phase::new();
        for k in 0..ranks() {
            let r = (rank() + 1 + k) % ranks();
            full.arrive_expect_tx(tile.bytes());
            src.of(r).load(tile, at, full);
            full.wait_next(&mut phase);
            if k == 0 {
                next.store(at, tile);
            }
            sums.of(r).reduce_add(at, tile);
            bulk_commit_group();
            bulk_wait_group_read::<0>();
        }
    }
}

fn strong(device: &Device, options: &Options) -> anyhow::Result<()> {
    let n = options.elements(1 << 10);
    let all = (RANKS * n) as u32;
    let wanted_sums = [all as f32, 2.0 * all as f32, 3.0 * all as f32, 0.0];
    let team = Team::on(device, RANKS)?;
    let mut counts = team.zeros::<u32, 1>([4])?;
    let mut sums = team.zeros::<f32, 1>([4])?;
    team_strong::launch(&team, blocks(n), &mut counts, &mut sums)?;
    for (counts, sums) in counts.to_vecs()?.iter().zip(sums.to_vecs()?) {
        // Any rank may be the last one.
        anyhow::ensure!((counts[3] as usize) < RANKS, "there is no rank {}", counts[3]);
        let wanted = [all, (RANKS - 1) as u32, all];
        same("counted, greatest rank, counted again", &counts[..3], &wanted)?;
        same("sums of four", &sums, &wanted_sums)?;
    }

    let mut counts = of_ranks(|_| device.zeros::<u32, 1>([4]))?;
    let mut sums = of_ranks(|_| device.zeros::<f32, 1>([4]))?;
    let ([a, b, c], [d, e, f]) = (&mut counts, &mut sums);
    team_strong::launch(device, blocks(n), &mut [a, b, c], &mut [d, e, f])?;
    for (counts, sums) in counts.iter().zip(&sums) {
        let last = (RANKS - 1) as u32;
        same("counted, greatest rank, counted again, last rank", &counts.to_vec()?, &[all, last, all, last])?;
        same("sums of four", &sums.to_vec()?, &wanted_sums)?;
    }
    Ok(())
}

/// Counts the threads of all ranks in the memory of each.
#[tma_kernel(threads = 128)]
pub fn team_strong(counts: Peers<Global<u32>>, sums: Peers<Global<f32>>) {
    for r in 0..ranks() {
        let there = counts.of(r);
        there.fetch_add(0, 1, Order::Relaxed, Scope::System);
        there.fetch_max(1, rank(), Order::Relaxed, Scope::System);
        let mut seen = there.load(2, Order::Relaxed, Scope::System);
        loop {
            let old = there.compare_exchange(2, seen, seen + 1, Order::Relaxed, Scope::System);
            if old == seen {
                break;
            }
            seen = old;
        }
        there.swap(3, rank(), Order::Relaxed, Scope::System);
        sums.of(r).add_vec(0, [1.0f32, 2.0, 3.0, 0.0], Order::Relaxed, Scope::System);
    }
}

fn bulk(device: &Device, _: &Options) -> anyhow::Result<()> {
    let n = 1024;
    let values: Vec<Vec<u32>> = (0..RANKS as u64).map(|rank| noise(330 + rank, n)).collect();
    let src = of_ranks(|rank| device.tensor(&values[rank], [n]))?;
    let mut moved = of_ranks(|_| device.filled_bytes::<u32, 1>([n], 0xab))?;
    let mut sums = of_ranks(|_| device.zeros::<u32, 1>([n]))?;
    let ([a, b, c], [d, e, f]) = (&mut moved, &mut sums);
    team_bulk::launch(device, (n / 256) as u32, &src.each_ref(), &mut [a, b, c], &mut [d, e, f])?;
    for (rank, (moved, sums)) in moved.iter().zip(&sums).enumerate() {
        // Rank r loads from r + 1, and stores to r + 2.
        same("moved", &moved.to_vec()?, &values[(rank + 2) % RANKS])?;
        let sum = |i: usize| values.iter().fold(0u32, |sum, values| sum.wrapping_add(values[i]));
        same("sums", &sums.to_vec()?, &(0..n).map(sum).collect::<Vec<_>>())?;
    }
    Ok(())
}

/// Moves 256 elements from the next rank to the one after it, and adds them to the sums of all.
#[tma_kernel(threads = 32)]
pub fn team_bulk(src: Peers<Global<u32>>, moved: Peers<Global<u32>>, sums: Peers<Global<u32>>) {
    let part: SharedArray<u32, 256> = shared();
    let full: Barrier = shared();
    let first = block_idx().x * 256;
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(256 * 4);
        src.of((rank() + 1) % ranks()).bulk_load(part, 0, 256, first, full);
        full.wait(0);
        moved.of((rank() + 2) % ranks()).bulk_store(first, part, 0, 256);
        for r in 0..ranks() {
            sums.of(r).bulk_reduce_add(first, part, 0, 256);
        }
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}
