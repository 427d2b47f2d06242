//! Launch options: kernels that start early, grids that synchronise, and graphs.

use anyhow::ensure;
use tma_runtime::prelude::*;

use crate::case::{Case, Options};
use crate::compare::same;
use crate::random::noise;

/// The cases of this module.
pub const CASES: &[Case] = &[
    Case { name: "launches::dependent_chain", run: dependent_chain },
    Case { name: "launches::grid_scan", run: grid_scan },
    Case { name: "launches::grid_rounds", run: grid_rounds },
    Case { name: "launches::grid_rounds_in_clusters", run: grid_rounds_in_clusters },
    Case { name: "launches::as_many_blocks_as_fit", run: as_many_as_fit },
    Case { name: "launches::graph_repeated", run: graph_repeated },
    Case { name: "launches::graph_of_every_kind", run: graph_of_every_kind },
    Case { name: "launches::capture_refused", run: capture_refused },
];

type Numbers = DeviceTensor<u32, 1>;

/// `out[i] = 5 * src[i + 1] + i`, with wrap-around; the next kernel may start at once.
#[tma_kernel(threads = 128)]
pub fn launch_step(src: Global<u32>, out: Global<u32>) {
    grid_dependency_launch();
    let i = block_idx().x * 128 + thread_idx().x;
    let n = grid_dim().x * 128;
    grid_dependency_wait();
    out.set(i, 5 * src.get((i + 1) % n) + i);
}

fn stepped(src: &[u32]) -> Vec<u32> {
    let next = |i: usize| src[(i + 1) % src.len()].wrapping_mul(5).wrapping_add(i as u32);
    (0..src.len()).map(next).collect()
}

/// Each kernel reads all that the one before wrote, and overwrites its input.
fn dependent_chain(device: &Device, options: &Options) -> anyhow::Result<()> {
    let n = options.elements(1 << 16);
    let stream = device.stream()?;
    let mut values = noise::<u32>(61, n);
    let mut first = device.tensor(&values, [n])?;
    let mut second = device.filled_bytes([n], 0xab)?;
    let blocks = n as u32 / 128;
    for round in 0..10 {
        let (src, out) = if round % 2 == 0 { (&first, &mut second) } else { (&second, &mut first) };
        launch_step::launch(stream.with().dependent(), blocks, src, out)?;
        values = stepped(&values);
    }
    same("after ten kernels", &first.to_vec()?, &values)?;
    launch_step::launch(device.with().dependent(), blocks, &first, &mut second)?;
    same("on the default stream", &second.to_vec()?, &stepped(&values))
}

/// `out[i]` is the sum of `src[0..=i]`, 128 numbers per block: the blocks exchange their sums.
#[tma_kernel(threads = 128)]
pub fn grid_sync_scan(src: Global<u32>, sums: Global<u32>, out: Global<u32>, counter: Global<u32>) {
    let values: Stages<SharedArray<u32, 128>, 2> = shared();
    let t = thread_idx().x;
    let i = block_idx().x * 128 + t;
    let mut sum = src.get(i);
    for round in unroll(0..7u32) {
        let apart = 1 << round;
        let now = values[round % 2];
        now.set(t, sum);
        sync_threads();
        if t >= apart {
            sum += now.get(t - apart);
        }
    }
    if t == 127 {
        sums.set(block_idx().x, sum);
    }
    sync_grid(counter);
    for block in 0..block_idx().x {
        sum += sums.get(block);
    }
    out.set(i, sum);
}

/// Grids of different sizes reuse the counter.
fn grid_scan(device: &Device, options: &Options) -> anyhow::Result<()> {
    let mut counter = device.zeros([1])?;
    let most = device.resident_blocks(&grid_sync_scan::SPEC)?.min(if options.quick { 24 } else { 1 << 10 });
    for blocks in [1, 2, most / 3, most, 5] {
        let n = blocks as usize * 128;
        let source = noise::<u32>(62, n);
        let src = device.tensor(&source, [n])?;
        let (mut sums, mut out) =
            (device.filled_bytes([blocks as usize], 0xab)?, device.filled_bytes([n], 0xab)?);
        grid_sync_scan::launch(device, blocks, &src, &mut sums, &mut out, &mut counter)?;
        let sum = |sum: &mut u32, &x: &u32| {
            *sum = sum.wrapping_add(x);
            Some(*sum)
        };
        let wanted: Vec<_> = source.iter().scan(0, sum).collect();
        same(&format!("sums of {blocks} blocks"), &out.to_vec()?, &wanted)?;
        let count = counter.to_vec()?[0];
        ensure!(count & 0x7fff_ffff == 0, "{blocks} blocks left {count:#x} in the counter");
    }
    Ok(())
}

/// Kernels whose blocks synchronise in every round, with and without clusters.
#[tma_module]
pub mod meeting_kernels {
    use tma_runtime::prelude::*;

    /// In each round every thread reads what a thread of the next block wrote in the last one.
    #[tma_device]
    fn pass_around(values: Global<u32>, counter: Global<u32>, rounds: u32) {
        let t = thread_idx().x + 16 * thread_idx().y;
        let blocks = grid_dim().x * grid_dim().y * grid_dim().z;
        let block = block_idx().x + grid_dim().x * (block_idx().y + grid_dim().y * block_idx().z);
        let next = (block + 1) % blocks;
        for round in 0..rounds {
            let from = round % 2 * blocks * 64;
            let to = (round + 1) % 2 * blocks * 64;
            let theirs = values.get(from + next * 64 + (t + 1) % 64);
            values.set(to + block * 64 + t, 3 * theirs + block);
            sync_grid(counter);
        }
    }

    /// Blocks without clusters.
    #[tma_kernel(threads = [16, 4])]
    pub fn grid_sync_rounds(values: Global<u32>, counter: Global<u32>, rounds: u32) {
        pass_around(values, counter, rounds);
    }

    /// In clusters whose size the launch sets.
    #[tma_kernel(threads = [16, 4], cluster = launch)]
    pub fn grid_sync_clusters(values: Global<u32>, counter: Global<u32>, rounds: u32) {
        pass_around(values, counter, rounds);
    }
}

use meeting_kernels::{grid_sync_clusters, grid_sync_rounds};

/// An odd number of rounds leaves the counter's highest bit set for the next launch.
fn check_rounds(
    device: &Device,
    grid: [u32; 3],
    launch: impl Fn(Grid, &mut Numbers, &mut Numbers, u32) -> Result<(), Error>,
) -> anyhow::Result<()> {
    let blocks = grid.iter().product::<u32>() as usize;
    let n = blocks * 64;
    let mut now = noise::<u32>(63, n);
    let mut values = device.tensor(&[now.clone(), vec![0xabab; n]].concat(), [2 * n])?;
    let mut counter = device.zeros([1])?;
    for rounds in [7, 2] {
        launch(Grid::new(grid[0], grid[1], grid[2]), &mut values, &mut counter, rounds)?;
        let both = values.to_vec()?;
        for _ in 0..rounds {
            let next = |i: usize| {
                let (block, t) = (i / 64, i % 64);
                let theirs = now[(block + 1) % blocks * 64 + (t + 1) % 64];
                theirs.wrapping_mul(3).wrapping_add(block as u32)
            };
            now = (0..n).map(next).collect();
        }
        let held = if rounds % 2 == 0 { &both[..n] } else { &both[n..] };
        same(&format!("{rounds} rounds of {grid:?} blocks"), held, &now)?;
        values = device.tensor(&[now.clone(), vec![0xabab; n]].concat(), [2 * n])?;
    }
    Ok(())
}

fn grid_rounds(device: &Device, options: &Options) -> anyhow::Result<()> {
    let large = if options.quick { [3, 2, 2] } else { [7, 5, 3] };
    for grid in [[1, 1, 1], [1, 1, 2], [2, 3, 2], large] {
        check_rounds(device, grid, |grid, values, counter, rounds| {
            grid_sync_rounds::launch(device, grid, values, counter, rounds)
        })?;
    }
    Ok(())
}

fn grid_rounds_in_clusters(device: &Device, _: &Options) -> anyhow::Result<()> {
    for (cluster, grid) in [([2, 1, 1], [4, 3, 1]), ([1, 2, 2], [3, 2, 2]), ([8, 1, 1], [16, 1, 1])] {
        let most = device.with().cluster(cluster).resident_blocks(&grid_sync_clusters::SPEC)?;
        ensure!(most >= 16 && most % cluster.iter().product::<u32>() == 0, "{most} blocks fit");
        check_rounds(device, grid, |grid, values, counter, rounds| {
            grid_sync_clusters::launch(device.with().cluster(cluster), grid, values, counter, rounds)
        })?;
    }
    Ok(())
}

/// The largest grid that fits the device runs; one more block is refused before anything runs.
fn as_many_as_fit(device: &Device, _: &Options) -> anyhow::Result<()> {
    let most = device.resident_blocks(&grid_sync_rounds::SPEC)?;
    ensure!(most >= device.multiprocessors(), "{most} blocks fit {} processors", device.multiprocessors());
    let mut values = device.zeros([128 * (most as usize + 1)])?;
    let mut counter = device.zeros([1])?;
    grid_sync_rounds::launch(device, most, &mut values, &mut counter, 1)?;
    device.synchronize()?;
    match grid_sync_rounds::launch(device, most + 1, &mut values, &mut counter, 1) {
        Err(error) => ensure!(error.code() == "TMA0625", "{error}"),
        Ok(()) => anyhow::bail!("{} blocks were launched, and {most} fit", most + 1),
    }
    device.synchronize()?;
    let count = counter.to_vec()?[0];
    ensure!(count == 1 << 31, "the grids left {count:#x} in the counter");
    Ok(())
}

/// Each block adds `by` to a tile of 8 rows and 32 columns.
#[tma_kernel(threads = 32)]
pub fn launch_tiles(
    src: TensorMap<Tile<u32, Shape2<8, 32>>>,
    dst: TensorMap<Tile<u32, Shape2<8, 32>>>,
    by: u32,
) {
    let tile: Tile<u32, Shape2<8, 32>> = shared();
    let full: Barrier = shared();
    let t = thread_idx().x;
    let at = [8 * block_idx().y, 32 * block_idx().x];
    if t == 0 {
        full.init(1);
        fence_barrier_init();
    }
    sync_threads();
    if t == 0 {
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, at, full);
    }
    full.wait(0);
    for row in 0..8u32 {
        tile.set([row, t], tile.get([row, t]) + by);
    }
    fence_proxy_async();
    sync_threads();
    if t == 0 {
        dst.store(at, tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// The same graph on the same tensors, whose contents the host changes between launches.
fn graph_repeated(device: &Device, options: &Options) -> anyhow::Result<()> {
    let (rows, columns) = (options.elements(1 << 12), 64);
    let n = rows * columns;
    let stream = device.stream()?;
    let mut src = device.filled_bytes::<u32, 2>([rows, columns], 0xab)?;
    let mut out = device.filled_bytes([n], 0xab)?;
    let graph = {
        // Only the graph keeps the intermediate tensor.
        let mut moved = device.filled_bytes::<u32, 2>([rows, columns], 0xab)?;
        stream.capture(|capture| {
            launch_tiles::launch(capture, Grid::tiles([rows, columns], [8, 32]), &src, &mut moved, 17)?;
            launch_step::launch(capture, n as u32 / 128, &moved, &mut out)
        })?
    };
    same("nothing has run", &out.to_vec()?, &vec![0xabab_abab; n])?;
    let wanted = |source: &[u32]| stepped(&source.iter().map(|x| x.wrapping_add(17)).collect::<Vec<_>>());
    for seed in 70..73 {
        let source = noise::<u32>(seed, n);
        src.copy_from(&source)?;
        graph.launch(&stream)?;
        same(&format!("content {seed}"), &out.to_vec()?, &wanted(&source))?;
    }
    // On another stream, several launches, and the graph is dropped while it may still run.
    let other = device.stream()?;
    for _ in 0..3 {
        graph.launch(&other)?;
    }
    drop(graph);
    other.synchronize()?;
    same("the last content again", &out.to_vec()?, &wanted(&src.to_vec()?))
}

/// One graph with a kernel that starts early, one whose blocks synchronise, and one in clusters.
/// Each launch of it continues from the result of the last one.
fn graph_of_every_kind(device: &Device, _: &Options) -> anyhow::Result<()> {
    let (blocks, n) = (4, 512);
    let stream = device.stream()?;
    let mut expected = noise::<u32>(74, n);
    let mut first = device.tensor(&expected, [n])?;
    let mut second = device.filled_bytes([n], 0xab)?;
    let mut counters = [device.zeros([1])?, device.zeros([1])?];
    let graph = stream.capture(|capture| {
        // Memory can be allocated and copied during the capture, which the graph ignores.
        let unrelated = device.tensor(&[1u32, 2, 3], [3])?;
        launch_step::launch(capture, blocks, &first, &mut second)?;
        launch_step::launch(capture.with().dependent(), blocks, &second, &mut first)?;
        // Two rounds on 4 blocks of 64 numbers, which begin and end in the first half.
        grid_sync_rounds::launch(capture, 4, &mut first, &mut counters[0], 2)?;
        let pairs = capture.with().cluster([2, 1, 1]);
        grid_sync_clusters::launch(pairs, 4, &mut first, &mut counters[1], 2)?;
        assert_eq!(unrelated.to_vec()?, [1, 2, 3]);
        Ok(())
    })?;
    for launch in 0..3 {
        graph.launch(&stream)?;
        expected = stepped(&stepped(&expected));
        for round in 0..4 {
            let (from, to) = (round % 2 * 256, (round + 1) % 2 * 256);
            for i in 0..256 {
                let (block, t) = (i / 64, i % 64);
                let theirs = expected[from + (block + 1) % 4 * 64 + (t + 1) % 64];
                expected[to + i] = theirs.wrapping_mul(3).wrapping_add(block as u32);
            }
        }
        same(&format!("launch {launch} of the graph"), &first.to_vec()?, &expected)?;
    }
    Ok(())
}

/// An error in a capture ends it, and leaves device and stream unchanged.
fn capture_refused(device: &Device, _: &Options) -> anyhow::Result<()> {
    let stream = device.stream()?;
    let source = noise::<u32>(75, 128);
    let src = device.tensor(&source, [128])?;
    let mut out = device.filled_bytes([128], 0xab)?;
    let code = |result: Result<Graph, Error>| result.err().map(|error| error.code());
    // SAFETY: the view is all of `src`, which outlives it.
    let view = unsafe { TensorView::<u32, 1>::from_raw(device, src.as_ptr(), [128], [1]) };
    let unowned = code(stream.capture(|capture| launch_step::launch(capture, 1, view, &mut out)));
    ensure!(unowned == Some("TMA0627"), "{unowned:?}");
    let no_blocks = code(stream.capture(|capture| {
        launch_step::launch(capture, 1, &src, &mut out)?;
        launch_step::launch(capture, 0, &src, &mut out)
    }));
    ensure!(no_blocks == Some("TMA0610"), "{no_blocks:?}");
    let elsewhere = Device::simulator();
    let graph = stream.capture(|capture| launch_step::launch(capture, 1, &src, &mut out))?;
    let other_device = graph.launch(&elsewhere.stream()?).err().map(|error| error.code());
    ensure!(other_device == Some("TMA0514"), "{other_device:?}");
    same("nothing has run", &out.to_vec()?, &[0xabab_abab; 128])?;
    graph.launch(&stream)?;
    same("what was captured last", &out.to_vec()?, &stepped(&source))
}
