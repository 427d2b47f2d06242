//! The examples. Those that move whole matrices run on many shapes, each several times into
//! poisoned memory, and are compared bit for bit. The others check themselves, and run as they are.

use tma_runtime::prelude::*;

use super::runner::Test;
use crate::case::Options;
use crate::compare::same_bits;
use crate::examples::{
    attention, cluster_reduce, dense_gemm, gemm_steps, row_sums, tma_coordinates, tma_copy,
    tma_copy_pipelined, tma_fp8, tma_grouped_copy, tma_im2col, tma_multicast, tma_prefetch, tma_reduce,
    tma_row_fill, tma_scale, transpose, wgmma_atom,
};
use crate::random::{Sample, hash, noise, noise_of};

/// Shapes of matrices whose rows are multiples of 16 bytes, both for elements of two bytes and of
/// four: less than a tile, exactly one, one row or chunk more, ragged in either direction, and
/// large.
const SHAPES: [[usize; 2]; 24] = [
    [1, 8],
    [1, 64],
    [2, 8],
    [3, 16],
    [64, 8],
    [33, 40],
    [127, 72],
    [128, 64],
    [129, 64],
    [128, 72],
    [100, 56],
    [255, 128],
    [256, 256],
    [257, 264],
    [500, 1000],
    [1000, 520],
    [1023, 2056],
    [77, 4104],
    [4099, 64],
    [65, 16384],
    [70_001, 8],
    [4096, 4096],
    [8191, 1032],
    [16384, 32768],
];

/// Shapes for the transposition, whose columns too must be multiples of 16 bytes.
const TRANSPOSED_SHAPES: [[usize; 2]; 22] = [
    [4, 8],
    [4, 64],
    [8, 4],
    [64, 8],
    [36, 40],
    [32, 32],
    [124, 72],
    [128, 64],
    [132, 64],
    [128, 72],
    [100, 56],
    [256, 128],
    [260, 264],
    [500, 1000],
    [1000, 520],
    [1020, 2056],
    [76, 4104],
    [4100, 64],
    [64, 16384],
    [4096, 4096],
    [8188, 1032],
    [16384, 32768],
];

/// Shapes for the reduction, in which a cluster holds a row: fewer elements than blocks or threads,
/// parts of unequal length, and the longest row.
const REDUCED_SHAPES: [[usize; 2]; 20] = [
    [1, 1],
    [3, 2],
    [2, 3],
    [5, 4],
    [4, 5],
    [7, 31],
    [1, 1000],
    [16, 1023],
    [16, 1024],
    [15, 1025],
    [8, 4096],
    [3, 5000],
    [9, 10_001],
    [2, 16_384],
    [100, 8191],
    [1000, 777],
    [5, 32_768],
    [257, 32_767],
    [4096, 4096],
    [60_000, 9],
];

/// The number of runs of each example on each shape.
const RUNS: usize = 20;

/// The number of runs, and of elements of the largest shape, with [`Options::quick`].
const QUICK_RUNS: usize = 2;
const QUICK_ELEMENTS: usize = 1 << 15;

/// The factor of `tma_scale`: overflow and underflow occur, and most results are rounded.
const FACTOR: f32 = 1.7e3;

/// Examples that generate their own data and check it.
const PROGRAMS: [(&str, Program); 9] = [
    ("row_sums", row_sums::run),
    ("tma_coordinates", tma_coordinates::run),
    ("tma_fp8", tma_fp8::run),
    ("tma_grouped_copy", tma_grouped_copy::run),
    ("tma_im2col", tma_im2col::run),
    ("tma_prefetch", tma_prefetch::run),
    ("tma_reduce", tma_reduce::run),
    ("tma_row_fill", tma_row_fill::run),
    ("wgmma_atom", wgmma_atom::run),
];

/// Examples that multiply matrices.
const PRODUCTS: [(&str, Program); 3] =
    [("attention", attention::run), ("dense_gemm", dense_gemm::run), ("gemm_steps", gemm_steps::run)];

/// M, N, K and batches of dense GEMMs. Each extent occurs below, at and above the extents of tiles,
/// and rows are multiples of 16 bytes for all element types.
const GEMM_SHAPES: [[usize; 4]; 7] = [
    [16, 16, 16, 1],
    [128, 128, 128, 3],
    [144, 272, 208, 2],
    [1008, 1040, 528, 1],
    [112, 2064, 1296, 1],
    [2304, 48, 4112, 5],
    [4096, 4096, 4096, 1],
];

/// M, N and K of the steps towards a fast GEMM.
const STEP_SHAPES: [[usize; 3]; 3] = [[128, 256, 64], [1000, 1032, 520], [4096, 4096, 4096]];

/// The numbers of heads, queries and keys.
const ATTENTION_SHAPES: [[usize; 3]; 7] = [
    [1, 1, 1],
    [3, 128, 128],
    [2, 127, 129],
    [1, 65, 1000],
    [5, 300, 301],
    [4, 1000, 1024],
    [32, 4096, 4096],
];

type Program = fn(&Device) -> anyhow::Result<()>;

type Run = fn(&Device, [usize; 2], usize) -> anyhow::Result<()>;

/// An example, and the shapes that it runs on.
struct Example {
    name: &'static str,
    run: Run,
    shapes: &'static [[usize; 2]],
    /// A shape of a few ragged tiles.
    small: [usize; 2],
}

const EXAMPLES: [Example; 5] = [
    Example { name: "cluster_reduce", run: reduce, shapes: &REDUCED_SHAPES, small: [2, 1030] },
    Example { name: "tma_copy", run: copy, shapes: &SHAPES, small: [150, 72] },
    Example { name: "tma_copy_pipelined", run: copy_pipelined, shapes: &SHAPES, small: [400, 264] },
    Example { name: "tma_scale", run: scale, shapes: &SHAPES, small: [70, 36] },
    Example { name: "transpose", run: transposed, shapes: &TRANSPOSED_SHAPES, small: [68, 72] },
];

/// Returns a test for each program.
fn programs(programs: impl IntoIterator<Item = (&'static str, Program)>) -> impl Iterator<Item = Test> {
    let test = |(name, run)| Test { name: format!("examples::{name}"), run: Box::new(run) };
    programs.into_iter().map(test)
}

/// Returns a test for each instance of the dense GEMM, with these extents. The major dimension of C
/// alternates.
fn gemms(mnkl: [usize; 4]) -> impl Iterator<Item = Test> {
    let [m, n, k, l] = mnkl;
    dense_gemm::gemm::dense_gemm::INSTANCES.iter().enumerate().map(move |(i, kernel)| Test {
        name: format!("examples::{}::{m}x{n}x{k}x{l}", kernel.name),
        run: Box::new(move |device| {
            let options = dense_gemm::options_of(kernel, mnkl, ['n', 'm'][i % 2])?;
            dense_gemm::check(device, &options).map(drop)
        }),
    })
}

/// Returns a test for each step towards a fast GEMM, with these extents. Blocks that stay are at
/// most `most_blocks`.
fn gemm_steps(extents: [usize; 3], most_blocks: u32) -> impl Iterator<Item = Test> {
    let [m, n, k] = extents;
    gemm_steps::Step::ALL.into_iter().map(move |step| Test {
        name: format!("examples::gemm_steps::{step:?}::{m}x{n}x{k}"),
        run: Box::new(move |device| gemm_steps::check(device, step, extents, most_blocks)),
    })
}

/// Returns a test for each instance of attention, with this number of heads, queries and keys.
fn attentions(shape: [usize; 3]) -> impl Iterator<Item = Test> {
    let instances = [("bf16", false), ("bf16", true), ("f16", false), ("f16", true)];
    let [heads, queries, keys] = shape;
    instances.into_iter().map(move |(element, causal)| {
        let mask = if causal { "causal" } else { "full" };
        let options = attention::Options { shape, causal, element, iterations: 0, ..Default::default() };
        Test {
            name: format!("examples::attention::{element}_{mask}::{heads}x{queries}x{keys}"),
            run: Box::new(move |device| attention::check(device, &options).map(drop)),
        }
    })
}

fn multicasts(runs: usize) -> impl Iterator<Item = Test> {
    tma_multicast::PROGRAMS.iter().enumerate().map(move |(number, &(_, tiles, launch))| Test {
        name: format!("examples::tma_multicast::{number}"),
        run: Box::new(move |device| {
            (0..runs).try_for_each(|run| multicast(device, tiles, launch, run as u64))
        }),
    })
}

/// Returns a test for each example, of one run on a small shape if it takes shapes.
pub fn small_tests() -> Vec<Test> {
    let test = |Example { name, run, small, .. }| Test {
        name: format!("examples::{name}"),
        run: Box::new(move |device| run(device, small, 1)),
    };
    // Shapes of one block, with more steps than twice the stages of a ring.
    let of_bytes = |test: &Test| {
        let instance = test.name.trim_start_matches("examples::dense_gemm::");
        ["e4m3", "e5m2", "i8", "u8"].iter().any(|element| instance.starts_with(element))
    };
    let gemms = gemms([64, 32, 448, 1]).filter(move |test| !of_bytes(test));
    let gemms = gemms.chain(self::gemms([64, 32, 896, 1]).filter(of_bytes));
    // Two tiles for the blocks that stay, and more steps than the ring has slots.
    let steps = gemm_steps([136, 264, 328], 2);
    let products = gemms.chain(attentions([1, 100, 500])).chain(steps);
    EXAMPLES.into_iter().map(test).chain(programs(PROGRAMS)).chain(products).chain(multicasts(1)).collect()
}

/// Returns a test for each example and shape.
pub fn tests(options: &Options) -> Vec<Test> {
    let (runs, largest) = if options.quick { (QUICK_RUNS, QUICK_ELEMENTS) } else { (RUNS, usize::MAX) };
    let mut tests: Vec<_> = programs(PROGRAMS).chain(programs(PRODUCTS)).collect();
    if !options.quick {
        tests.extend(GEMM_SHAPES.into_iter().flat_map(gemms));
        tests.extend(STEP_SHAPES.into_iter().flat_map(|extents| gemm_steps(extents, u32::MAX)));
        tests.extend(ATTENTION_SHAPES.into_iter().flat_map(attentions));
    }
    for Example { name, run, shapes, .. } in EXAMPLES {
        for &[rows, cols] in shapes.iter().filter(|[rows, cols]| rows * cols <= largest) {
            tests.push(Test {
                name: format!("examples::{name}::{rows}x{cols}"),
                run: Box::new(move |device| run(device, [rows, cols], runs)),
            });
        }
    }
    tests.extend(multicasts(runs));
    tests
}

/// Subtracts means. The elements are integers, whose sums are exact in any order.
fn reduce(device: &Device, shape: [usize; 2], runs: usize) -> anyhow::Result<()> {
    let source: Vec<_> = (0..shape[0] * shape[1]).map(|i| (hash(75, i as u64) % 101) as f32).collect();
    let less_mean = |row: &[f32]| {
        let mean = row.iter().sum::<f32>() / shape[1] as f32;
        row.iter().map(|x| x - mean).collect::<Vec<_>>()
    };
    let wanted: Vec<_> = source.chunks(shape[1]).flat_map(less_mean).collect();
    let matrices = Matrices { source: &source, shape, wanted: &wanted, wanted_shape: shape };
    repeatedly(device, runs, &matrices, |src, dst| cluster_reduce::launch(device, src, dst))
}

fn multicast(
    device: &Device,
    tiles: &[usize],
    launch: tma_multicast::Launch,
    seed: u64,
) -> anyhow::Result<()> {
    let source = noise::<i32>(seed, 2 * 256);
    let wanted: Vec<_> = tiles.iter().flat_map(|tile| &source[tile * 256..][..256]).copied().collect();
    same_bits(&tma_multicast::run(device, launch, &source, tiles.len())?, &wanted)
}

fn copy(device: &Device, shape: [usize; 2], runs: usize) -> anyhow::Result<()> {
    let source = noise::<f16>(71, shape[0] * shape[1]);
    let matrices = Matrices { source: &source, shape, wanted: &source, wanted_shape: shape };
    repeatedly(device, runs, &matrices, |src, dst| Ok(tma_copy::launch(device, src, dst)?))
}

fn copy_pipelined(device: &Device, shape: [usize; 2], runs: usize) -> anyhow::Result<()> {
    let source = noise::<f16>(72, shape[0] * shape[1]);
    let mut work = device.zeros([2])?;
    let launch = |src: &_, dst: &mut _| Ok(tma_copy_pipelined::launch(device, src, dst, &mut work)?);
    let matrices = Matrices { source: &source, shape, wanted: &source, wanted_shape: shape };
    repeatedly(device, runs, &matrices, launch)
}

fn scale(device: &Device, shape: [usize; 2], runs: usize) -> anyhow::Result<()> {
    // Any number but NaN, whose bits differ among machines.
    let number = |i| Some(f32::random(hash(73, i))).filter(|x| !x.is_nan()).unwrap_or(0.5);
    let source = noise_of(shape[0] * shape[1], number);
    let wanted = noise_of(source.len(), |i| number(i) * FACTOR);
    let launch = |src: &_, dst: &mut _| Ok(tma_scale::launch(device, src, dst, FACTOR)?);
    let matrices = Matrices { source: &source, shape, wanted: &wanted, wanted_shape: shape };
    repeatedly(device, runs, &matrices, launch)
}

fn transposed(device: &Device, shape: [usize; 2], runs: usize) -> anyhow::Result<()> {
    let [rows, cols] = shape;
    let bits = |i| f32::random(hash(74, i) | 1);
    let source = noise_of(rows * cols, bits);
    // Computed from the indices: reading `source` by columns would take longer than everything
    // else.
    let (tall, wide) = (rows as u64, cols as u64);
    let wanted = noise_of(source.len(), |i| bits(i % tall * wide + i / tall));
    let launch = |src: &_, dst: &mut _| Ok(transpose::launch(device, src, dst)?);
    let matrices = Matrices { source: &source, shape, wanted: &wanted, wanted_shape: [cols, rows] };
    repeatedly(device, runs, &matrices, launch)
}

/// A matrix, and the expected result of an example.
struct Matrices<'a, T> {
    source: &'a [T],
    shape: [usize; 2],
    wanted: &'a [T],
    wanted_shape: [usize; 2],
}

/// Launches `runs` times, each time into memory with other contents, and compares all of it each
/// time.
fn repeatedly<T: Sample>(
    device: &Device,
    runs: usize,
    matrices: &Matrices<'_, T>,
    mut launch: impl FnMut(&DeviceTensor<T, 2>, &mut DeviceTensor<T, 2>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let Matrices { source, shape, wanted, wanted_shape } = *matrices;
    let src = device.tensor(source, shape)?;
    let mut dst = device.filled_bytes(wanted_shape, 0)?;
    let mut found = vec![T::default(); wanted.len()];
    for run in 0..runs {
        dst.fill_bytes(0xab_u8.wrapping_add(run as u8))?;
        launch(&src, &mut dst)?;
        dst.copy_to(&mut found)?;
        same_bits(&found, wanted).map_err(|error| error.context(format!("run {run}")))?;
    }
    Ok(())
}
