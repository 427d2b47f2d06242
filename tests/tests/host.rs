//! The code of the chapter on the host's side, `docs/host.md`: the code here is the code of the
//! chapter, and it runs.
#![cfg(feature = "llvm")]

use std::ops::Mul;
use std::path::Path;

use tma_runtime::launch::{Arg, GlobalSlice, GlobalSliceMut, Instances, launch_team};
use tma_runtime::prelude::*;
use tma_runtime::tune::{Cache, Tuner, candidates};
use tma_tests::sources::code_blocks;

/// `dst = src * factor`, one block per tile.
#[tma_kernel(threads = 128, instances(halves = <f16, 64>, floats = <f32, 32>))]
pub fn scale<T: TileElement + Mul<Output = T>, const COLS: u32>(
    src: TensorMap<Tile<T, Shape2<64, COLS>>>,
    dst: TensorMap<Tile<T, Shape2<64, COLS>>>,
    factor: T,
) {
    let tile: Tile<T, Shape2<64, COLS>> = shared();
    let full: Barrier = shared();
    let leader = thread_idx().x == 0;
    if leader {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, src.block_tile(), full);
    }
    sync_threads();
    full.wait(0);
    for i in (thread_idx().x..64 * COLS).step_by(128) {
        let element = [i / COLS, i % COLS];
        tile.set(element, tile.get(element) * factor);
    }
    fence_proxy_async();
    sync_threads();
    if leader {
        dst.store(dst.block_tile(), tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// Sums the elements, 128 of them in each block.
#[tma_kernel(threads = 128)]
pub fn sum(values: Global<f32>, total: Global<f32>) {
    let i = block_idx().x as u64 * 128 + thread_idx().x as u64;
    if i < values.len() {
        total.atomic_add(0, values.get(i));
    }
}

/// Sums the elements with any number of blocks.
#[tma_kernel(threads = 128)]
pub fn strided_sum(values: Global<f32>, total: Global<f32>) {
    let first = block_idx().x as u64 * 128 + thread_idx().x as u64;
    let mut part = 0.0;
    for i in (first..values.len()).step_by(grid_dim().x as usize * 128) {
        part += values.get(i);
    }
    total.atomic_add(0, part);
}

/// Sums the parts of all ranks.
#[tma_kernel(threads = 128)]
pub fn sum_of_ranks(parts: Peers<Global<f32>>, sums: Global<f32>) {
    let i = block_idx().x * 128 + thread_idx().x;
    let mut sum = 0.0;
    for r in 0..ranks() {
        sum += parts.of(r).get(i);
    }
    sums.set(i, sum);
}

/// Computes `values * factor` for any element type.
fn scaled<T, const COLS: u32>(values: &DeviceTensor<T, 2>, factor: T) -> Result<Vec<T>, Error>
where
    T: TileElement,
    scale::Instance<T, COLS>: scale::Compiled,
{
    let device = values.device();
    let mut dst = device.zeros(values.shape())?;
    let grid = scale::tiles_of_dst::<T, COLS>(dst.shape());
    scale::launch::<T, COLS>(device, grid, values, &mut dst, factor)?;
    dst.to_vec()
}

/// Computes `values * factor` with the first kernel of a table for these elements.
fn scaled_by<T: TileElement>(
    table: &Instances<'_, scale::Key>,
    values: &DeviceTensor<T, 2>,
    factor: T,
) -> Result<Option<Vec<T>>, Error> {
    let mut keys = table.keys::<scale::Launcher<'_, T>>();
    let Some(launcher) = keys.next().and_then(|key| table.find(key)) else { return Ok(None) };
    launch_scaled(launcher, values, factor).map(Some)
}

fn launch_scaled<T: TileElement>(
    launcher: scale::Launcher<'_, T>,
    values: &DeviceTensor<T, 2>,
    factor: T,
) -> Result<Vec<T>, Error> {
    let mut dst = values.device().zeros(values.shape())?;
    let grid = Grid::tiles(values.shape(), [64, 32]);
    launcher.launch(values.device(), grid, values, &mut dst, factor)?;
    dst.to_vec()
}

/// Returns a matrix of small integers, which floats and halves represent exactly.
fn matrix(shape: [usize; 2]) -> Vec<f32> {
    (0..shape[0] * shape[1]).map(|i| (i % 1000) as f32).collect()
}

fn doubled(values: &[f32]) -> Vec<f32> {
    values.iter().map(|x| x * 2.0).collect()
}

#[test]
fn a_launch() -> Result<(), Error> {
    let host = matrix([300, 132]);
    let device = Device::open()?;
    let src = device.tensor(&host, [300, 132])?;
    let mut dst = device.zeros([300, 132])?;
    scale::floats::launch(&device, scale::floats::tiles_of_dst(dst.shape()), &src, &mut dst, 2.0)?;
    assert_eq!(dst.to_vec()?, doubled(&host));
    Ok(())
}

#[test]
fn tensors() -> Result<(), Error> {
    let device = Device::open()?;
    let stream = device.stream()?;
    let host = matrix([4, 8]);
    let mut tensor = device.tensor(&host, [4, 8])?;
    assert_eq!((tensor.shape(), tensor.len(), tensor.bytes()), ([4, 8], 32, 128));

    let mut copy = device.zeros([4, 8])?;
    copy.copy_from_device(&tensor, &stream)?; // queued on the stream
    tensor.copy_from(&[1.5; 32])?; // waits for what is queued, as all copies from and to the host
    let mut back = vec![0.0; 32];
    copy.copy_to(&mut back)?;
    assert_eq!((tensor.to_vec()?, back), (vec![1.5; 32], host));
    Ok(())
}

#[test]
fn grids() {
    assert_eq!(Grid::from(8), Grid::new(8, 1, 1));
    assert_eq!(Grid::from((8, 4)), Grid::new(8, 4, 1));
    // Of tiles of 64 × 32 elements, 5 and a part by 4 and a part cover 300 × 132.
    assert_eq!(Grid::tiles([300, 132], [64, 32]), Grid::new(5, 5, 1));
    // The same, with the extents of the kernel's own tile.
    assert_eq!(scale::floats::tiles_of_dst([300, 132]), Grid::new(5, 5, 1));
}

#[test]
fn tables() -> Result<(), Error> {
    let device = Device::open()?;
    let host = matrix([100, 72]);
    let floats = device.tensor(&host, [100, 72])?;
    let mut dst = device.zeros([100, 72])?;

    let key = scale::Key { cols: 32 };
    assert!(scale::keys::<f32>().eq([key]));
    let launcher = scale::find::<f32>(key).expect("an instance");
    launcher.launch(&device, scale::floats::tiles_of_dst(dst.shape()), &floats, &mut dst, 2.0)?;
    assert!(scale::find::<f64>(key).is_none());

    assert_eq!(dst.to_vec()?, doubled(&host));
    assert_eq!(scaled_by(&scale::table(), &floats, 2.0)?, Some(doubled(&host)));
    assert_eq!(scaled_by(&scale::table_of::<f32>(), &floats, 2.0)?, Some(doubled(&host)));
    let words = device.tensor(&[1i32; 64], [8, 8])?;
    assert_eq!(scaled_by(&scale::table(), &words, 2)?, None);
    assert_eq!(scaled_by(&scale::table_of::<f32>(), &words, 2)?, None);
    assert_eq!(scale::table_of::<f32>().specs().count(), 1);
    Ok(())
}

#[test]
fn generic_kernels() -> Result<(), Error> {
    let device = Device::open()?;
    let host = matrix([100, 72]);
    let halves: Vec<_> = host.iter().map(|&x| f16::from_f32(x)).collect();
    let floats = device.tensor(&host, [100, 72])?;
    let halves = device.tensor(&halves, [100, 72])?;

    assert_eq!(scaled::<f32, 32>(&floats, 2.0)?, doubled(&host));
    let found = scaled::<f16, 64>(&halves, f16::from_f32(2.0))?;

    assert!(found.iter().map(|x| x.to_f32()).eq(doubled(&host)));
    for spec in &scale::INSTANCES {
        println!("{} takes {} bytes of shared memory", spec.name, spec.shared_bytes);
    }
    let spec = <scale::Instance<f16, 64> as scale::Compiled>::SPEC;
    assert!(device.resident_blocks(spec)? >= device.multiprocessors());
    Ok(())
}

#[test]
fn views() -> Result<(), Error> {
    let device = Device::open()?;
    let host = matrix([128, 64]);
    let src = device.tensor(&host, [128, 64])?;
    let mut dst = device.zeros([128, 64])?;

    // The right half of the lower half of each: nothing else is read or written.
    let from = src.view().slice([64..128, 32..64])?;
    let to = dst.view_mut().slice([64..128, 32..64])?;
    scale::floats::launch(&device, scale::floats::tiles_of_dst(to.shape()), from, to, 2.0)?;

    let wanted = |i: usize| if i / 64 >= 64 && i % 64 >= 32 { host[i] * 2.0 } else { 0.0 };
    assert_eq!(dst.to_vec()?, (0..host.len()).map(wanted).collect::<Vec<_>>());

    let batch = device.tensor(&host, [2, 64, 64])?;
    // Two matrices of 64 × 64, as one of all their rows.
    let rows = batch.view().with_strides([2 * 64, 64], [64, 1])?;
    // Rows of 64 that overlap, each 32 after the one before: for kernels that read only.
    let windows = batch.view().with_strides([255, 64], [32, 1])?;
    // Planes and rows exchanged.
    let turned = batch.view().permute([1, 0, 2])?;
    assert_eq!(turned.shape(), [64, 2, 64]);

    let mut out = device.zeros(rows.shape())?;
    scale::floats::launch(&device, (2, 2), rows, &mut out, 2.0)?;
    assert_eq!(out.to_vec()?, doubled(&host));
    let mut out = device.zeros(windows.shape())?;
    scale::floats::launch(&device, scale::floats::tiles_of_src(windows.shape()), windows, &mut out, 2.0)?;
    let wanted = (0..255 * 64).map(|i| host[i / 64 * 32 + i % 64] * 2.0);
    assert_eq!(out.to_vec()?, wanted.collect::<Vec<_>>());

    let src_address = src.as_ptr();
    // SAFETY: there are 128 × 64 floats of this device at the address, which outlive `view` and
    // which nobody writes meanwhile.
    let view = unsafe { TensorView::<f32, 2>::from_raw(&device, src_address, [128, 64], [64, 1]) };
    scale::floats::launch(&device, scale::floats::tiles_of_dst(dst.shape()), view, &mut dst, 2.0)?;
    assert_eq!(dst.to_vec()?, doubled(&host));
    Ok(())
}

#[test]
fn options() -> Result<(), Error> {
    let device = Device::open()?;
    let stream = device.stream()?;
    let host = matrix([128, 32]);
    let src = device.tensor(&host, [128, 32])?;
    let mut dst = device.zeros([64, 32])?;
    // Every second row, and 256 bytes at a time into the L2 cache.
    let every_second = src.element_strides([2, 1]).l2_promotion(L2Promotion::B256);
    scale::floats::launch(&stream, 1, every_second, &mut dst, 2.0)?;

    let wanted = host.chunks(64).flat_map(|rows| doubled(&rows[..32]));
    assert_eq!(dst.to_vec()?, wanted.collect::<Vec<_>>());
    Ok(())
}

#[test]
fn streams_and_events() -> Result<(), Error> {
    let device = Device::open()?;
    let host = matrix([128, 64]);
    let src = device.tensor(&host, [128, 64])?;
    let (mut first, mut second) = (device.zeros([128, 64])?, device.zeros([128, 64])?);
    let grid = scale::floats::tiles_of_dst([128, 64]);
    let (left, right) = (device.stream()?, device.stream()?);
    let start = left.record()?;
    scale::floats::launch(&left, grid, &src, &mut first, 2.0)?;
    right.wait_for(&left)?; // what comes now on `right` sees `first`
    scale::floats::launch(&right, grid, &first, &mut second, 0.5)?;
    let end = right.record()?;
    println!("{:.3} ms", start.elapsed_ms(&end)?); // waits for both events
    assert_eq!(second.to_vec()?, host);
    Ok(())
}

#[test]
fn graphs() -> Result<(), Error> {
    let device = Device::open()?;
    let host = matrix([128, 64]);
    let mut src = device.tensor(&host, [128, 64])?;
    let mut between = device.zeros([128, 64])?;
    let mut total = device.zeros([1])?;
    let stream = device.stream()?;
    let graph = stream.capture(|capture| {
        scale::floats::launch(capture, (2, 2), &src, &mut between, 2.0)?;
        sum::launch(capture, 64, &between, &mut total)
    })?;
    for batch in [1.0, 2.0, 3.0] {
        src.fill_bytes(0)?;
        src.copy_from(&[batch; 128 * 64])?;
        total.copy_from(&[0.0])?;
        graph.launch(&stream)?;
        assert_eq!(total.to_vec()?, [batch * 2.0 * 128.0 * 64.0]);
    }
    Ok(())
}

#[test]
fn tuning() -> Result<(), Error> {
    let folder = std::env::temp_dir().join(format!("tma-host-{}", std::process::id()));
    let states = [tuned_sum(&folder)?, tuned_sum(&folder)?];
    assert_eq!(states, [Cache::Miss, Cache::Hit]);
    std::fs::remove_dir_all(&folder).expect("it was remembered there");
    Ok(())
}

fn tuned_sum(folder: &Path) -> Result<Cache, Error> {
    let device = Device::open()?;
    let stream = device.stream()?;
    let values = device.tensor(&[0.5; 128 * 64], [128, 64])?;
    let mut total = device.zeros([1])?;
    let all = candidates([&strided_sum::SPEC], &[8, 16, 64]);
    let tuner = Tuner::new(&stream).cache(folder);
    let tuned = tuner.tune("sum", &values.shape(), &all, |candidate, stream| {
        strided_sum::launch(stream, candidate.options, &values, &mut total)
    })?;
    println!("{tuned}");
    let blocks = all[tuned.best].options;
    total.copy_from(&[0.0])?;
    strided_sum::launch(&stream, blocks, &values, &mut total)?;
    stream.synchronize()?;
    assert_eq!(total.to_vec()?, [4096.0]);
    Ok(tuned.cache)
}

#[test]
fn teams() -> Result<(), Error> {
    let team = Team::open()?;
    let of_ranks: Vec<_> = (0..team.ranks()).map(|rank| vec![rank as f32; 128]).collect();
    let parts = team.tensors(&of_ranks, [128])?;
    let mut sums = team.zeros([128])?;
    sum_of_ranks::launch(&team, 1, &parts, &mut sums)?;
    let wanted = (0..team.ranks()).sum::<usize>() as f32;
    assert_eq!(sums.to_vecs()?, vec![vec![wanted; 128]; team.ranks()]);

    let values = team.tensors(&of_ranks, [128])?;
    let mut totals = team.zeros::<f32, 1>([1])?;
    let args = values.views().zip(totals.views_mut()).map(|(values, total)| {
        vec![Arg::global(GlobalSlice::new(values)), Arg::global_mut(GlobalSliceMut::new(total))]
    });
    launch_team(&team, &sum::SPEC, Grid::x(1), &args.collect::<Vec<_>>())?;
    for (rank, total) in totals.to_vecs()?.into_iter().enumerate() {
        assert_eq!(total, [128.0 * rank as f32]);
    }
    Ok(())
}

#[test]
fn tma0540_tma0610_errors() -> Result<(), Error> {
    let device = Device::open()?;
    let src = device.tensor(&matrix([128, 64]), [128, 64])?;
    let mut dst = device.zeros([128, 64])?;
    let nothing = scale::floats::launch(&device, (2, 0), &src, &mut dst, 2.0);
    match nothing {
        Err(error @ Error::GridZero { .. }) => println!("no tiles, no launch: {error}"),
        other => panic!("a grid has at least one block: {other:?}"),
    }
    let beyond = src.view().slice([64..256, 0..64]);
    assert_eq!(beyond.err().map(|error| error.code()), Some("TMA0540"));
    Ok(())
}

/// Each block of the chapter is a sequence of lines of this file, up to indentation.
#[test]
fn the_chapter_is_made_of_this_file() {
    let lines = |text: &str| text.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>();
    let here = lines(include_str!("host.rs"));
    let blocks = code_blocks(include_str!("../../docs/host.md"));
    let rust: Vec<_> = blocks.iter().filter(|block| block.info.starts_with("rust")).collect();
    assert!(rust.len() >= 12, "{} blocks", rust.len());
    for block in rust {
        assert_eq!(block.info, "rust", "line {}: every block is tested", block.line);
        let wanted = lines(&block.code);
        let found = here.windows(wanted.len()).any(|run| run == wanted);
        assert!(found, "docs/host.md, line {}, is not in tests/tests/host.rs:\n{}", block.line, block.code);
    }
}
