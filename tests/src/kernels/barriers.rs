//! Barriers: phases, arrivals, transaction counts, and barriers that are reused.

use tma_runtime::prelude::*;

use crate::case::{Case, Options};
use crate::compare::same;
use crate::random::noise;

/// The cases of this module.
pub const CASES: &[Case] = &[
    Case { name: "barriers::many_phases", run: many_phases },
    Case { name: "barriers::all_threads_arrive", run: all_threads_arrive },
    Case { name: "barriers::expect_apart_from_arrive", run: |device, _| one_tile(device, Kernel::Apart) },
    Case { name: "barriers::try_wait", run: |device, _| one_tile(device, Kernel::TryWait) },
    Case { name: "barriers::two_loads_one_phase", run: |device, _| one_tile(device, Kernel::TwoLoads) },
    Case { name: "barriers::invalidated_and_made_anew", run: lives },
    Case { name: "barriers::producer_and_consumers", run: pipeline },
];

/// Loads tiles one after the other into one buffer. Each phase, of either parity, has its own tile.
#[tma_kernel(threads = 64)]
pub fn barrier_phases(src: TensorMap<Tile<u32, Shape2<1, 64>>>, out: Global<u32>, tiles: u32) {
    let tile: Tile<u32, Shape2<1, 64>> = shared();
    let full: Barrier = shared();
    let t = thread_idx().x;
    if t == 0 {
        full.init(1);
        fence_barrier_init();
    }
    sync_threads();
    let mut sum = 0;
    for k in 0..tiles {
        if t == 0 {
            full.arrive_expect_tx(tile.bytes());
            src.load(tile, [k, 0], full);
        }
        full.wait(k & 1);
        sum = sum * 31 + tile.get([0, t]);
        fence_proxy_async();
        sync_threads();
    }
    out.set(t, sum);
}

fn many_phases(device: &Device, options: &Options) -> anyhow::Result<()> {
    let tiles = options.tiles(4096);
    let source = noise::<u32>(41, tiles * 64);
    let column = |t: usize| source.iter().skip(t).step_by(64);
    let sum = |t| column(t).fold(0u32, |sum, &x| sum.wrapping_mul(31).wrapping_add(x));
    let src = device.tensor(&source, [tiles, 64])?;
    let mut out = device.filled_bytes([64], 0xab)?;
    barrier_phases::launch(device, 1, &src, &mut out, tiles as u32)?;
    same("sums", &out.to_vec()?, &(0..64).map(sum).collect::<Vec<_>>())
}

/// All threads arrive, and each then sees the writes of all others.
#[tma_kernel(threads = 128)]
pub fn barrier_arrivals(out: Global<u32>, rounds: u32) {
    let values: Stages<SharedArray<u32, 128>, 2> = shared();
    let met: Barrier = shared();
    let t = thread_idx().x;
    if t == 0 {
        met.init(block_dim().x);
    }
    sync_threads();
    let mut mine = t;
    for round in 0..rounds {
        values[round % 2].set(t, mine);
        met.arrive();
        met.wait(round & 1);
        mine = values[round % 2].get((t + 1) % 128) * 3 + values[round % 2].get((t + 37) % 128);
    }
    out.set(t, mine);
}

fn all_threads_arrive(device: &Device, _: &Options) -> anyhow::Result<()> {
    let mut values: Vec<u32> = (0..128).collect();
    for _ in 0..100 {
        let next = |t: usize| values[(t + 1) % 128].wrapping_mul(3).wrapping_add(values[(t + 37) % 128]);
        values = (0..128).map(next).collect();
    }
    let mut out = device.filled_bytes([128], 0xab)?;
    barrier_arrivals::launch(device, 1, &mut out, 100)?;
    same("values", &out.to_vec()?, &values)
}

/// Announces bytes before, and separately from, the arrival.
#[tma_kernel(threads = 128)]
pub fn barrier_expect_apart(src: TensorMap<Tile<u32, Shape2<32, 32>>>, out: Global<u32>) {
    let tile: Tile<u32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(2);
        fence_barrier_init();
        full.expect_tx(tile.bytes());
        src.load(tile, [0, 0], full);
        full.arrive();
    }
    sync_threads();
    if thread_idx().x == 64 {
        full.arrive();
    }
    full.wait(0);
    for i in (thread_idx().x..1024).step_by(128) {
        out.set(i, tile.get([i / 32, i % 32]));
    }
}

/// Polls in a loop instead of waiting. A fresh barrier counts as past the phase before its first.
/// Only the thread that completes the first phase may wait for the one before: for others, the
/// parity may meanwhile be that of the phase after it.
#[tma_kernel(threads = 128)]
pub fn barrier_try_wait(src: TensorMap<Tile<u32, Shape2<32, 32>>>, out: Global<u32>) {
    let tile: Tile<u32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
    }
    sync_threads();
    if thread_idx().x == 0 {
        full.wait(1);
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, [0, 0], full);
    }
    let mut tries = 0u32;
    while !full.try_wait(0) {
        tries += 1;
        assert!(tries < 100_000_000, "the tile never came");
    }
    for i in (thread_idx().x..1024).step_by(128) {
        out.set(i, tile.get([i / 32, i % 32]));
    }
}

/// Two loads that complete one phase; their bytes are announced as a sum.
#[tma_kernel(threads = 128)]
pub fn barrier_two_loads(src: TensorMap<Tile<u32, Shape2<16, 32>>>, out: Global<u32>) {
    let halves: Stages<Tile<u32, Shape2<16, 32>>, 2> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(halves[0].bytes() + halves[1].bytes());
        src.load(halves[1], [16, 0], full);
        src.load(halves[0], [0, 0], full);
    }
    sync_threads();
    full.wait(0);
    for i in (thread_idx().x..1024).step_by(128) {
        out.set(i, halves[i / 512].get([i / 32 % 16, i % 32]));
    }
}

enum Kernel {
    Apart,
    TryWait,
    TwoLoads,
}

fn one_tile(device: &Device, kernel: Kernel) -> anyhow::Result<()> {
    let source = noise::<u32>(42, 1024);
    let src = device.tensor(&source, [32, 32])?;
    let mut out = device.filled_bytes([1024], 0xab)?;
    match kernel {
        Kernel::Apart => barrier_expect_apart::launch(device, 1, &src, &mut out)?,
        Kernel::TryWait => barrier_try_wait::launch(device, 1, &src, &mut out)?,
        Kernel::TwoLoads => barrier_two_loads::launch(device, 1, &src, &mut out)?,
    }
    same("elements", &out.to_vec()?, &source)
}

/// The barrier is initialised several times, each time with another count; the first phase is 0.
#[tma_kernel(threads = 128)]
pub fn barrier_lives(out: Global<u32>) {
    let met: Barrier = shared();
    let values: SharedArray<u32, 128> = shared();
    let t = thread_idx().x;
    let mut sum = 0;
    for life in 1..5u32 {
        if t == 0 {
            met.init(32 * life);
        }
        sync_threads();
        if t < 32 * life {
            values.set(t, t * life);
            met.arrive();
        }
        met.wait(0);
        sum += values.get((t + 1) % (32 * life));
        sync_threads();
        if t == 0 {
            met.invalidate();
        }
    }
    out.set(t, sum);
}

fn lives(device: &Device, _: &Options) -> anyhow::Result<()> {
    let wanted: Vec<u32> = (0..128).map(|t| (1..5).map(|life| (t + 1) % (32 * life) * life).sum()).collect();
    let mut out = device.filled_bytes([128], 0xab)?;
    barrier_lives::launch(device, 1, &mut out)?;
    same("sums", &out.to_vec()?, &wanted)
}

/// One warp loads and four consume; two barriers per stage pass it back and forth.
#[tma_kernel(threads = 160, instances(two = <2>, five = <5>))]
pub fn barrier_pipeline<const STAGES: u32>(
    src: TensorMap<Tile<u32, Shape2<8, 64>>>,
    out: Global<u32>,
    tiles: u32,
) {
    let stages: Stages<Tile<u32, Shape2<8, 64>>, STAGES> = shared();
    let full: Stages<Barrier, STAGES> = shared();
    let empty: Stages<Barrier, STAGES> = shared();
    if thread_idx().x == 0 {
        src.prefetch_descriptor();
        for stage in unroll(0..STAGES) {
            full[stage].init(1);
            empty[stage].init(128);
        }
        fence_barrier_init();
    }
    sync_threads();

    if warp_idx() == 4 {
        if elect_one() {
            for k in 0..tiles {
                let stage = k % STAGES;
                empty[stage].wait((k / STAGES) & 1 ^ 1);
                full[stage].arrive_expect_tx(stages[stage].bytes());
                src.load(stages[stage], [k * 8, 0], full[stage]);
            }
        }
    } else {
        let t = thread_idx().x;
        let mut sum = 0;
        for k in 0..tiles {
            let stage = k % STAGES;
            full[stage].wait((k / STAGES) & 1);
            for row in 0..8 {
                sum = sum * 5 + stages[stage].get([row, t % 64]);
            }
            fence_proxy_async();
            empty[stage].arrive();
        }
        out.set(t, sum);
    }
}

fn pipeline(device: &Device, options: &Options) -> anyhow::Result<()> {
    let tiles = options.tiles(2048);
    let source = noise::<u32>(43, tiles * 512);
    let column = |t: usize| source.iter().skip(t % 64).step_by(64);
    let sum = |t| column(t).fold(0u32, |sum, &x| sum.wrapping_mul(5).wrapping_add(x));
    let wanted: Vec<u32> = (0..128).map(sum).collect();
    let src = device.tensor(&source, [tiles * 8, 64])?;
    let mut out = device.filled_bytes([128], 0xab)?;
    barrier_pipeline::two::launch(device, 1, &src, &mut out, tiles as u32)?;
    same("two stages", &out.to_vec()?, &wanted)?;
    out.fill_bytes(0xab)?;
    barrier_pipeline::five::launch(device, 1, &src, &mut out, tiles as u32)?;
    same("five stages", &out.to_vec()?, &wanted)
}
