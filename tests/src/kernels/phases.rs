//! Phases of barriers: in a variable, in a token, polled, and with arrivals of every
//! kind.

use tma_runtime::prelude::*;

use crate::case::{Case, Options};
use crate::compare::same;
use crate::random::noise;

/// The cases of this module.
pub const CASES: &[Case] = &[
    Case { name: "phases::kept_in_a_variable", run: kept },
    Case { name: "phases::back_and_forth", run: back_and_forth },
    Case { name: "phases::tokens", run: tokens },
    Case { name: "phases::test_wait", run: |device, _| polled(device, Poll::TestWait) },
    Case { name: "phases::try_wait_for", run: |device, _| polled(device, Poll::TryWaitFor) },
    Case { name: "phases::arrivals_for_a_warp", run: for_a_warp },
    Case { name: "phases::warps_that_leave", run: leaving },
    Case { name: "phases::another_barrier_in_its_place", run: another },
];

/// A `Phase` that device functions take by `&mut`, over many phases of one barrier.
#[tma_module]
pub mod by_reference {
    use tma_runtime::prelude::*;

    type Row = Tile<u32, Shape2<1, 64>>;

    #[tma_device]
    fn next(src: TensorMap<Row>, row: u32, tile: Row, full: Barrier, phase: &mut Phase) -> u32 {
        if thread_idx().x == 0 {
            full.arrive_expect_tx(tile.bytes());
            src.load(tile, [row, 0], full);
        }
        wait(full, phase);
        tile.get([0, thread_idx().x])
    }

    #[tma_device]
    fn wait(full: Barrier, phase: &mut Phase) {
        full.wait_next(phase);
    }

    /// Loads the rows one after the other into one tile.
    #[tma_kernel(threads = 64)]
    pub fn phase_kept(src: TensorMap<Tile<u32, Shape2<1, 64>>>, out: Global<u32>, rows: u32) {
        let tile: Row = shared();
        let full: Barrier = shared();
        if thread_idx().x == 0 {
            full.init(1);
            fence_barrier_init();
        }
        sync_threads();
        let mut phase = Phase::new();
        let mut sum = 0;
        for row in 0..rows {
            sum = sum * 31 + next(src, row, tile, full, &mut phase);
            fence_proxy_async();
            sync_threads();
        }
        out.set(thread_idx().x, sum * 2 + phase.parity());
    }
}

fn kept(device: &Device, options: &Options) -> anyhow::Result<()> {
    let rows = options.elements(1024) + 1;
    let source = noise::<u32>(61, rows * 64);
    let column = |t: usize| source.iter().skip(t).step_by(64);
    let sum = |t| column(t).fold(0u32, |sum, &x| sum.wrapping_mul(31).wrapping_add(x));
    let wanted: Vec<u32> = (0..64).map(|t| sum(t).wrapping_mul(2).wrapping_add(rows as u32 & 1)).collect();
    let src = device.tensor(&source, [rows, 64])?;
    let mut out = device.filled_bytes([64], 0xab)?;
    by_reference::phase_kept::launch(device, 1, &src, &mut out, rows as u32)?;
    same("sums and parities", &out.to_vec()?, &wanted)
}

/// Two warps pass one buffer back and forth. The writer starts at the opposite phase, and so does
/// not wait at first.
#[tma_kernel(threads = 64)]
pub fn phase_back_and_forth(out: Global<u32>, rounds: u32) {
    let buffer: SharedArray<u32, 32> = shared();
    let full: Barrier = shared();
    let empty: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(32);
        empty.init(32);
    }
    sync_threads();
    if warp_idx() == 0 {
        let mut phase = Phase::opposite();
        for round in 0..rounds {
            empty.wait_next(&mut phase);
            buffer.set(lane_idx(), round * 32 + lane_idx());
            full.arrive();
        }
    } else {
        let mut phase = Phase::new();
        let mut sum = 0;
        for _ in 0..rounds {
            full.wait(phase.parity());
            phase.flip();
            sum = sum * 3 + buffer.get(31 - lane_idx());
            empty.arrive();
        }
        phase = Phase::new();
        out.set(lane_idx(), sum + phase.parity());
    }
}

fn back_and_forth(device: &Device, options: &Options) -> anyhow::Result<()> {
    let rounds = options.elements(4096) as u32;
    let sum = |lane| (0..rounds).fold(0u32, |sum, k| sum.wrapping_mul(3).wrapping_add(k * 32 + 31 - lane));
    let mut out = device.filled_bytes([32], 0xab)?;
    phase_back_and_forth::launch(device, 1, &mut out, rounds)?;
    same("sums", &out.to_vec()?, &(0..32).map(sum).collect::<Vec<_>>())
}

/// Arrives, does other work, and waits for the phase of its arrival, of either parity.
#[tma_kernel(threads = 128)]
pub fn phase_tokens(out: Global<u32>, rounds: u32) {
    let values: Stages<SharedArray<u32, 128>, 2> = shared();
    let met: Barrier = shared();
    let t = thread_idx().x;
    if t == 0 {
        met.init(128);
    }
    sync_threads();
    let mut mine = t;
    for round in 0..rounds {
        values[round % 2].set(t, mine);
        let token = met.arrive_token();
        let own = mine ^ round;
        met.wait_token(token);
        mine = values[round % 2].get((t + 31) % 128) * 5 + own;
    }
    out.set(t, mine);
}

fn tokens(device: &Device, _: &Options) -> anyhow::Result<()> {
    let mut values: Vec<u32> = (0..128).collect();
    for round in 0..101 {
        let next = |t: usize| values[(t + 31) % 128].wrapping_mul(5).wrapping_add(values[t] ^ round);
        values = (0..128).map(next).collect();
    }
    let mut out = device.filled_bytes([128], 0xab)?;
    phase_tokens::launch(device, 1, &mut out, 101)?;
    same("values", &out.to_vec()?, &values)
}

/// Polls whether the tile has arrived, and counts.
#[tma_kernel(threads = 64)]
pub fn phase_test_wait(src: TensorMap<Tile<u32, Shape2<16, 16>>>, out: Global<u32>) {
    let tile: Tile<u32, Shape2<16, 16>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, [0, 0], full);
    }
    sync_threads();
    // A barrier is past the phase before the current one, and has completed this one or not.
    let mut asked = 1u32;
    while !full.test_wait(0) {
        asked += 1;
        assert!(asked < 1_000_000_000, "the tile never came");
    }
    for i in (thread_idx().x..256).step_by(64) {
        out.set(i, tile.get([i / 16, i % 16]));
    }
    out.set(256 + thread_idx().x, min(asked, 1));
}

/// Waits for at most 20 microseconds at a time.
#[tma_kernel(threads = 64)]
pub fn phase_try_wait_for(src: TensorMap<Tile<u32, Shape2<16, 16>>>, out: Global<u32>) {
    let tile: Tile<u32, Shape2<16, 16>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, [0, 0], full);
    }
    sync_threads();
    let mut asked = 1u32;
    while !full.try_wait_for(0, 20_000) {
        asked += 1;
        assert!(asked < 100_000, "the tile never came");
    }
    for i in (thread_idx().x..256).step_by(64) {
        out.set(i, tile.get([i / 16, i % 16]));
    }
    out.set(256 + thread_idx().x, min(asked, 1));
}

enum Poll {
    TestWait,
    TryWaitFor,
}

fn polled(device: &Device, poll: Poll) -> anyhow::Result<()> {
    let source = noise::<u32>(62, 256);
    let src = device.tensor(&source, [16, 16])?;
    let mut out = device.filled_bytes([256 + 64], 0xab)?;
    match poll {
        Poll::TestWait => phase_test_wait::launch(device, 1, &src, &mut out)?,
        Poll::TryWaitFor => phase_try_wait_for::launch(device, 1, &src, &mut out)?,
    }
    let wanted: Vec<u32> = source.into_iter().chain([1; 64]).collect();
    same("elements", &out.to_vec()?, &wanted)
}

/// The first lane of each warp arrives for all of its lanes.
#[tma_kernel(threads = 128)]
pub fn phase_arrive_many(out: Global<u32>, rounds: u32) {
    let values: Stages<SharedArray<u32, 128>, 2> = shared();
    let met: Barrier = shared();
    let t = thread_idx().x;
    if t == 0 {
        met.init(128);
    }
    sync_threads();
    let mut phase = Phase::new();
    let mut mine = t;
    for round in 0..rounds {
        values[round % 2].set(t, mine);
        sync_warp();
        if lane_idx() == 0 {
            met.arrive_many(32);
        }
        met.wait_next(&mut phase);
        mine = values[round % 2].get((t + 33) % 128) * 3 + round;
    }
    out.set(t, mine);
}

fn for_a_warp(device: &Device, _: &Options) -> anyhow::Result<()> {
    let mut values: Vec<u32> = (0..128).collect();
    for round in 0..100 {
        values = (0..128).map(|t| values[(t + 33) % 128].wrapping_mul(3).wrapping_add(round)).collect();
    }
    let mut out = device.filled_bytes([128], 0xab)?;
    phase_arrive_many::launch(device, 1, &mut out, 100)?;
    same("values", &out.to_vec()?, &values)
}

/// Warp w arrives for the last time in phase w; the later phases complete without it. It does not
/// wait for its last phase: the others may be two phases further by then, and the parity would be
/// that of an incomplete phase.
#[tma_kernel(threads = 128)]
pub fn phase_leaving(out: Global<u32>) {
    let values: Stages<SharedArray<u32, 128>, 3> = shared();
    let met: Barrier = shared();
    let t = thread_idx().x;
    if t == 0 {
        met.init(128);
    }
    sync_threads();
    let mut phase = Phase::new();
    let mut sum = 0;
    for round in 0..3u32 {
        values[round].set(t, t * (round + 1));
        if warp_idx() == round {
            met.arrive_drop();
            break;
        }
        met.arrive();
        met.wait_next(&mut phase);
        // The value of another of the warps that still take part.
        let first = round * 32;
        sum += values[round].get(first + (t - first + 40) % (128 - first));
    }
    out.set(t, sum);
}

fn leaving(device: &Device, _: &Options) -> anyhow::Result<()> {
    let of_round =
        |t: u32, round: u32| (round * 32 + (t - round * 32 + 40) % (128 - round * 32)) * (round + 1);
    let wanted: Vec<u32> = (0..128).map(|t| (0..t / 32).map(|round| of_round(t, round)).sum()).collect();
    let mut out = device.filled_bytes([128], 0xab)?;
    phase_leaving::launch(device, 1, &mut out)?;
    same("sums", &out.to_vec()?, &wanted)
}

/// The same memory is three barriers, one after the other: of all threads, of the copy engine, and
/// of one thread per warp.
#[tma_kernel(threads = 128)]
pub fn phase_another_barrier(src: TensorMap<Tile<u32, Shape2<4, 32>>>, out: Global<u32>) {
    let tile: Tile<u32, Shape2<4, 32>> = shared();
    let values: SharedArray<u32, 128> = shared();
    let place: Barrier = shared();
    let t = thread_idx().x;
    if t == 0 {
        place.init(128);
    }
    sync_threads();
    values.set(t, t * t);
    let token = place.arrive_token();
    place.wait_token(token);
    let first = values.get(127 - t);
    sync_threads();

    if t == 0 {
        place.invalidate();
        place.init(1);
        fence_barrier_init();
        place.arrive_expect_tx(tile.bytes());
        src.load(tile, [0, 0], place);
    }
    sync_threads();
    place.wait(0);
    let second = tile.get([t / 32, t % 32]);
    sync_threads();

    if t == 0 {
        place.invalidate();
        place.init(4);
    }
    sync_threads();
    let mut phase = Phase::new();
    for round in 0..3u32 {
        values.set(t, first + second * round);
        sync_warp();
        if elect_one() {
            place.arrive();
        }
        place.wait_next(&mut phase);
        sync_threads();
    }
    out.set(t, values.get((t + 64) % 128));
}

fn another(device: &Device, _: &Options) -> anyhow::Result<()> {
    let source = noise::<u32>(63, 128);
    let value = |t: usize| ((127 - t) * (127 - t)) as u32;
    let wanted: Vec<u32> = (0..128usize)
        .map(|t| (t + 64) % 128)
        .map(|t| value(t).wrapping_add(source[t].wrapping_mul(2)))
        .collect();
    let src = device.tensor(&source, [4, 32])?;
    let mut out = device.filled_bytes([128], 0xab)?;
    phase_another_barrier::launch(device, 1, &src, &mut out)?;
    same("values", &out.to_vec()?, &wanted)
}
