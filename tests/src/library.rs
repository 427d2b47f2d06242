//! The kernels of `tma-kernels`, compared with plain Rust. Each runs a small problem with ragged
//! extents, on so few clusters that each computes several tiles and reuses its ring more than once.
//! This is for mutation: the package's own tests cover every instance.

use anyhow::ensure;
use tma_kernels::conv::{ConvOptions, ConvTile, conv2d};
use tma_kernels::gemm::dense::kernels as dense;
use tma_kernels::gemm::full::with_options;
use tma_kernels::gemm::grouped::kernel::grouped;
use tma_kernels::gemm::ping_pong::kernels as ping_pong;
use tma_kernels::gemm::scaled::kernel::scaled;
use tma_kernels::gemm::{Activation, Choice, Division, GemmOptions, Tile, gemm};
use tma_kernels::team::AllReduceMethod;
use tma_kernels::{AttentionOptions, Lengths, attention};
use tma_runtime::launch::{Arg, KernelSpec, launch};
use tma_runtime::prelude::*;

use crate::gpu::collectives::{
    Extent, gathered_and_scattered, reduced, rounds_of_parts, rounds_of_pieces, rounds_of_slots,
    rounds_of_sums,
};
use crate::gpu::runner::{Run, Test};
use crate::random::hash;

/// Makes the body of a check.
type Make = fn() -> Box<Run>;

/// The checks. Each computes its inputs and the expected results once, when it is made.
const CHECKS: [(&str, Make); 16] = [
    ("tma_kernels::gemm", || {
        Box::new(of_one_cluster(&dense::plain::bf16_t128x128_cluster2x1_nt::SPEC, [200, 264, 712], 2))
    }),
    ("tma_kernels::gemm_split_k", || Box::new(folded())),
    ("tma_kernels::gemm_ping_pong", || Box::new(turns())),
    ("tma_kernels::gemm_with_options", || Box::new(shared_and_optional())),
    ("tma_kernels::gemm_grouped", || Box::new(grouped())),
    ("tma_kernels::gemm_scaled", || Box::new(scaled())),
    ("tma_kernels::attention", || Box::new(attended())),
    ("tma_kernels::attention_of_lengths", || Box::new(of_lengths())),
    ("tma_kernels::conv2d", || Box::new(convolved())),
    ("tma_kernels::all_reduce_in_one_shot", || {
        Box::new(|device| reduced_by(device, AllReduceMethod::OneShot))
    }),
    ("tma_kernels::all_reduce_in_two_shots", || {
        Box::new(|device| reduced_by(device, AllReduceMethod::TwoShot))
    }),
    ("tma_kernels::all_gather_and_reduce_scatter", || {
        Box::new(|device| gathered_and_scattered::<f32>(&Team::on(device, RANKS)?, &[OF_TWO_BLOCKS]))
    }),
    ("tma_kernels::rounds_of_sums", || Box::new(|device| rounds_of_sums(&Team::on(device, RANKS)?))),
    ("tma_kernels::rounds_of_slots", || Box::new(|device| rounds_of_slots(&Team::on(device, RANKS)?))),
    ("tma_kernels::rounds_of_pieces", || Box::new(|device| rounds_of_pieces(&Team::on(device, RANKS)?))),
    ("tma_kernels::rounds_of_parts", || Box::new(|device| rounds_of_parts(&Team::on(device, RANKS)?))),
];

/// Returns a check of each kernel.
pub fn tests() -> Vec<Test> {
    CHECKS.iter().map(|(name, make)| Test { name: (*name).to_owned(), run: make() }).collect()
}

/// Returns the check of this name.
pub fn test(name: &str) -> Option<Test> {
    let (name, make) = CHECKS.iter().find(|(known, _)| *known == name)?;
    Some(Test { name: (*name).to_owned(), run: make() })
}

/// The ranks of a team.
const RANKS: usize = 2;

/// Tensors with vectors for two blocks of threads.
const OF_TWO_BLOCKS: Extent = Extent { len: 2052, before: 0, blocks: None };

/// Adds up tensors over the ranks of a team: some with vectors for two blocks and an element after
/// them, then one of a single block.
fn reduced_by(device: &Device, method: AllReduceMethod) -> anyhow::Result<()> {
    let longer = Extent { len: RANKS * OF_TWO_BLOCKS.len + 1, ..OF_TWO_BLOCKS };
    reduced::<f32>(&Team::on(device, RANKS)?, &[longer, Extent { len: 100, ..longer }], Some(method))
}

/// Returns integers from -2 to 2, which are exact in each type, along with their sums.
fn integers(seed: u64, count: usize) -> Vec<f32> {
    (0..count as u64).map(|i| (hash(seed, i) % 5) as f32 - 2.0).collect()
}

fn halves(numbers: &[f32]) -> Vec<bf16> {
    numbers.iter().map(|number| bf16::from_f32(*number)).collect()
}

/// Returns `a · bᵀ`, with `k` elements in each row.
fn rows_by_rows(a: &[f32], b: &[f32], k: usize) -> Vec<f32> {
    let dot = |x: &[f32], y: &[f32]| x.iter().zip(y).map(|(x, y)| x * y).sum();
    a.chunks(k).flat_map(|x| b.chunks(k).map(move |y| dot(x, y))).collect()
}

fn equal(found: &[bf16], wanted: &[bf16]) -> anyhow::Result<()> {
    let wrong = found.iter().zip(wanted).position(|(found, wanted)| found != wanted);
    ensure!(wrong.is_none(), "element {wrong:?} is wrong");
    Ok(())
}

/// Computes `c = a · bᵀ` on a single cluster of two stacked blocks, which processes one tile of 128
/// columns after the other. Each of the last `halved` tiles is computed in two units.
fn of_one_cluster(
    kernel: &'static KernelSpec,
    [m, n, k]: [usize; 3],
    halved: u32,
) -> impl Fn(&Device) -> anyhow::Result<()> {
    let (a, b) = (integers(1, m * k), integers(2, n * k));
    let [wanted, a, b] = [rows_by_rows(&a, &b, k), a, b].map(|numbers| halves(&numbers));
    move |device| {
        let (a, b) = (device.tensor(&a, [1, m, k])?, device.tensor(&b, [1, n, k])?);
        let mut c = device.filled_bytes::<bf16, 3>([1, m, n], 0xff)?;
        let mut args = vec![Arg::map(a.view()), Arg::map(b.view()), Arg::map_mut(c.view_mut())];
        let (k_shift, band, tiles) = (0_u32, 1, n.div_ceil(128) as u32);
        let (units, whole) = (tiles + halved, tiles - halved);
        args.extend([m as u32, n as u32, k as u32, k_shift, band, units, whole].map(Arg::scalar));
        args.truncate(kernel.params.len());
        launch(device, kernel, Grid::new(1, 2, 1), &args)?;
        equal(&c.to_vec()?, &wanted)
    }
}

/// Computes `c = a · bᵀ` on a single cluster, with one to five steps per tile, and a ring of six
/// stages. The last two tiles belong to different warpgroups. The number of steps determines which
/// stage the last tile but one releases last, which `drain` waits for. With five steps the ring is
/// used five times.
fn turns() -> impl Fn(&Device) -> anyhow::Result<()> {
    let kernel = &ping_pong::ping_pong::bf16_ping_pong128x128_nt::SPEC;
    let extents = [[200, 264, 40], [200, 264, 72], [200, 264, 136], [200, 264, 200], [200, 648, 264]];
    let all = extents.map(|extents| of_one_cluster(kernel, extents, 0));
    move |device| all.iter().try_for_each(|product| product(device))
}

/// Computes `c = a · bᵀ` on a cluster whose blocks have eleven steps each: they reuse a ring of
/// five.
fn folded() -> impl Fn(&Device) -> anyhow::Result<()> {
    let [m, n, k] = [72, 72, 1352];
    let (a, b) = (integers(1, m * k), integers(2, n * k));
    let [wanted, a, b] = [rows_by_rows(&a, &b, k), a, b].map(|numbers| halves(&numbers));
    move |device| {
        let (a, b) = (device.tensor(&a, [m, k])?, device.tensor(&b, [n, k])?);
        let mut c = device.filled_bytes::<bf16, 2>([m, n], 0xff)?;
        let choice = Some(Choice { tile: Tile::SplitK128x128, division: Division::Whole });
        let options = GemmOptions { transpose_b: true, choice, ..GemmOptions::default() };
        gemm(device, &a, &b, &mut c, options)?;
        equal(&c.to_vec()?, &wanted)
    }
}

/// Runs the kernel with options twice: with all of them, and with sums that are shared evenly.
fn shared_and_optional() -> impl Fn(&Device) -> anyhow::Result<()> {
    let (optional, shared) = (with_all_options(), shared_evenly());
    move |device| optional(device).and_then(|()| shared(device))
}

/// Computes `c = max(a · bᵀ / 2 + 2 · c + residual + bias, 0)`. Two clusters split the sums of
/// three tiles among them, so that each processes three work units of ten steps.
fn with_all_options() -> impl Fn(&Device) -> anyhow::Result<()> {
    let [m, n, k] = [200, 264, 1224];
    let (a, b, bias) = (integers(1, m * k), integers(2, n * k), integers(14, n));
    let [before, residual] = [15, 16].map(|seed| integers(seed, m * n));
    let sums = rows_by_rows(&a, &b, k);
    let element =
        |place: usize| 0.5_f32.mul_add(sums[place], 2.0 * before[place]) + residual[place] + bias[place % n];
    let wanted: Vec<_> = (0..m * n).map(|place| element(place).max(0.0)).collect();
    let [a, b, bias, before] = [a, b, bias, before].map(|numbers| halves(&numbers));
    let [residual, wanted] = [residual, wanted].map(|numbers| halves(&numbers));
    move |device| {
        let (a, b) = (device.tensor(&a, [m, k])?, device.tensor(&b, [n, k])?);
        let mut c = device.tensor(&before, [m, n])?;
        let (residual, bias) = (device.tensor(&residual, [m, n])?, device.tensor(&bias, [n])?);
        let options = GemmOptions {
            transpose_b: true,
            alpha: 0.5,
            beta: 2.0,
            residual: Some(residual.view()),
            bias: Some(bias.view()),
            activation: Activation::Relu,
            choice: Some(Choice { tile: Tile::T128x128Cluster2x1, division: Division::Parts(2) }),
            ..GemmOptions::default()
        };
        gemm(device, &a, &b, &mut c, options)?;
        equal(&c.to_vec()?, &wanted)
    }
}

/// Computes `c = a · bᵀ` with four tiles of five steps. The first tile is one unit, and five more
/// units share the steps of the others, three each: the second and the fourth tile are in two
/// parts, the third in three, and two units end a tile and begin the next. Two clusters process
/// three units each, in alternation.
fn shared_evenly() -> impl Fn(&Device) -> anyhow::Result<()> {
    const SHARING: u32 = 5;
    // Two blocks of two warpgroups compute a tile. A unit stores at most two partial sums.
    const WARPGROUPS: usize = 4;
    const LEFT: usize = 2 * SHARING as usize * WARPGROUPS * 64 * 128;
    let [m, n, k] = [200, 392, 296];
    let (a, b) = (integers(21, m * k), integers(22, n * k));
    let [wanted, a, b] = [rows_by_rows(&a, &b, k), a, b].map(|numbers| halves(&numbers));
    move |device| {
        let (a, b) = (device.tensor(&a, [1, m, k])?, device.tensor(&b, [1, n, k])?);
        let mut c = device.filled_bytes::<bf16, 3>([1, m, n], 0xff)?;
        let nothing = device.zeros::<bf16, 1>([0])?;
        let mut partials = device.filled_bytes::<f32, 1>([LEFT], 0xff)?;
        let mut tickets = device.zeros::<u32, 1>([3 * WARPGROUPS])?;
        let mut args = vec![Arg::map(a.view()), Arg::map(b.view()), Arg::map_mut(c.view_mut())];
        let (k_shift, band) = (1_u32, 1);
        args.extend([m as u32, n as u32, k as u32, k_shift, band].map(Arg::scalar));
        let (whole, share, shared, length) = (1_u32, 3, 15, 5);
        args.extend([whole, SHARING, share, shared, length].map(Arg::scalar));
        args.extend([Arg::scalar(1.0_f32), Arg::scalar(0.0_f32)]);
        args.extend([Arg::global(nothing.slice()), Arg::global(nothing.slice())]);
        args.extend([Arg::scalar(Activation::None as u32), Arg::global_mut(partials.slice_mut())]);
        args.push(Arg::global_mut(tickets.slice_mut()));
        let mut by_threads = device.zeros::<bf16, 1>([0])?;
        args.push(Arg::global_mut(by_threads.slice_mut()));
        args.extend([Arg::scalar(0_u64), Arg::scalar(0_u64), Arg::scalar(u32::MAX)]);
        launch(device, &with_options::full::bf16_t128x128_cluster2x1_nt::SPEC, Grid::new(2, 2, 1), &args)?;
        equal(&c.to_vec()?, &wanted)?;
        ensure!(tickets.to_vec()?.iter().all(|ticket| *ticket == 0), "a counter is not as it was");
        Ok(())
    }
}

/// Groups of 5, 0, 200, 130 and 70 rows, each with its own B, on a single cluster. Its blocks are
/// side by side in the first and the last group, and stacked in the others. The second warpgroup
/// has no rows in the first group, nor in the lower block of the fourth.
fn grouped() -> impl Fn(&Device) -> anyhow::Result<()> {
    const ENDS: [u32; 5] = [5, 5, 205, 335, 405];
    let [m, n, k] = [405, 264, 328];
    let (a, b) = (integers(3, m * k), integers(4, ENDS.len() * n * k));
    let mut wanted = vec![];
    for (group, end) in ENDS.iter().enumerate() {
        let done = wanted.len() / n;
        wanted.extend(rows_by_rows(&a[done * k..*end as usize * k], &b[group * n * k..][..n * k], k));
    }
    let [a, b, wanted] = [a, b, wanted].map(|numbers| halves(&numbers));
    move |device| {
        let (a, b) = (device.tensor(&a, [1, m, k])?, device.tensor(&b, [ENDS.len(), n, k])?);
        let ends = device.tensor(&ENDS, [ENDS.len()])?;
        let mut c = device.filled_bytes::<bf16, 2>([m, n], 0xff)?;
        let mut maps = MapWorkspace::new(device, 2)?;
        let mut ended = device.zeros::<u64, 1>([1])?;
        let mut args = vec![
            Arg::map(a.view()),
            Arg::map(a.view()),
            Arg::map(b.view()),
            Arg::map(b.view()),
            Arg::map_mut(c.view_mut()),
            Arg::global_mut(maps.slice_mut()),
            Arg::global(ends.slice()),
            Arg::global_mut(ended.slice_mut()),
        ];
        args.extend([ENDS.len(), m, n, k].map(|number| Arg::scalar(number as u32)));
        launch(device, &grouped::rows::bf16_t128x256_cluster2x1_nt::SPEC, Grid::new(1, 2, 1), &args)?;
        equal(&c.to_vec()?, &wanted)
    }
}

/// Sums of 128 products, each times a scale of its row of A and one of its rows of B, on a single
/// cluster. There are seven steps: a batch of four with scales, and three, the last of them
/// partial.
fn scaled() -> impl Fn(&Device) -> anyhow::Result<()> {
    let [m, n, k]: [usize; 3] = [136, 392, 784];
    let (blocks, steps) = (n.div_ceil(128), k.div_ceil(128));
    let (a, b) = (integers(5, m * k), integers(6, n * k));
    let powers = |seed, count| integers(seed, count).iter().map(|x| x.exp2()).collect::<Vec<f32>>();
    let (of_a, of_b) = (powers(7, m * steps), powers(8, blocks * steps));
    let part = |i: usize, j: usize, step: usize| {
        let along = step * 128..k.min(step * 128 + 128);
        let sum: f32 = along.map(|x| a[i * k + x] * b[j * k + x]).sum();
        sum * of_a[i * steps + step] * of_b[j / 128 * steps + step]
    };
    let wanted: Vec<f32> =
        (0..m * n).map(|place| (0..steps).map(|step| part(place / n, place % n, step)).sum()).collect();
    let [a, b] = [a, b].map(|all| all.into_iter().map(e4m3::from_f32).collect::<Vec<_>>());
    let wanted = halves(&wanted);
    move |device| {
        let (a, b) = (device.tensor(&a, [m, k])?, device.tensor(&b, [n, k])?);
        let of_a = device.tensor(&of_a, [m, steps])?;
        let of_b = device.tensor(&of_b, [blocks, steps])?;
        let mut c = device.filled_bytes::<bf16, 2>([m, n], 0xff)?;
        let (grid, [m, n, k, steps]) = (Grid::new(1, 2, 1), [m, n, k, steps].map(|extent| extent as u32));
        let (along_m, along_k, band) = (steps, 1, 1);
        scaled::promoted::bf16_t128x128_cluster2x1::launch(
            device, grid, &a, &b, &mut c, &of_a, &of_b, m, n, k, along_m, along_k, band,
        )?;
        equal(&c.to_vec()?, &wanted)
    }
}

/// The tolerated difference of attention from plain Rust: probabilities are rounded to `bf16`, and
/// so are results of up to 2.
const ERROR: f32 = 0.04;

/// The number of elements of a query, a key or a value.
const DEPTH: usize = 64;

/// Returns `softmax(q · kᵀ / √DEPTH) · v`.
fn attention_of(q: &[f32], k: &[f32], v: &[f32]) -> Vec<f32> {
    let scale = 1.0 / (DEPTH as f32).sqrt();
    let of_row = |scores: &[f32]| {
        let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let weights: Vec<f32> = scores.iter().map(|score| ((score - most) * scale).exp()).collect();
        let total: f32 = weights.iter().sum();
        let sum = |at| weights.iter().zip(v.chunks(DEPTH)).map(|(weight, value)| weight * value[at]).sum();
        (0..DEPTH).map(|at| -> f32 { sum(at) }).map(|sum| sum / total).collect::<Vec<_>>()
    };
    rows_by_rows(q, k, DEPTH).chunks(k.len() / DEPTH).flat_map(of_row).collect()
}

fn near(found: &[bf16], wanted: &[f32]) -> anyhow::Result<()> {
    let is_near = |(found, wanted): (&bf16, &f32)| (found.to_f32() - wanted).abs() <= ERROR;
    let wrong = found.iter().zip(wanted).position(|both| !is_near(both));
    ensure!(wrong.is_none(), "element {wrong:?} is wrong");
    Ok(())
}

/// Runs two heads with the same keys on a block that processes several tiles: with several blocks
/// of keys, and with one, where the tiles follow each other directly.
fn attended() -> impl Fn(&Device) -> anyhow::Result<()> {
    let both = [300, 100].map(of_keys);
    move |device| both.iter().try_for_each(|attended| attended(device))
}

/// Runs the same with this many keys.
fn of_keys(keys: usize) -> impl Fn(&Device) -> anyhow::Result<()> {
    let [heads, queries] = [2, 150];
    let (q, k, v) =
        (integers(9, heads * queries * DEPTH), integers(10, keys * DEPTH), integers(11, keys * DEPTH));
    let wanted = attention_of(&q, &k, &v);
    let [q, k, v] = [q, k, v].map(|numbers| halves(&numbers));
    move |device| {
        let q = device.tensor(&q, [1, heads, queries, DEPTH])?;
        let (k, v) = (device.tensor(&k, [1, 1, keys, DEPTH])?, device.tensor(&v, [1, 1, keys, DEPTH])?);
        let mut o = device.filled_bytes::<bf16, 4>(q.shape(), 0xff)?;
        let options = AttentionOptions { blocks: Some(1), ..AttentionOptions::default() };
        attention(device, &q, &k, &v, &mut o, options)?;
        near(&o.to_vec()?, &wanted)
    }
}

/// Runs sequences of several lengths. Those with one block of keys come first, or after one with
/// several.
fn of_lengths() -> impl Fn(&Device) -> anyhow::Result<()> {
    let both = [[0, 100, 190, 490], [0, 200, 300, 600]].map(of_sequences);
    move |device| both.iter().try_for_each(|attended| attended(device))
}

/// Runs sequences of 150, 70 and 130 queries, with keys from one of these numbers to the next.
fn of_sequences(starts: [u32; 4]) -> impl Fn(&Device) -> anyhow::Result<()> {
    const QUERIES: [u32; 4] = [0, 150, 220, 350];
    let [queries, keys] = [QUERIES, starts].map(|starts| starts.map(|start| start as usize * DEPTH));
    let (q, k, v) = (integers(18, queries[3]), integers(19, keys[3]), integers(20, keys[3]));
    let of_sequence = |i: usize| {
        let (of_q, of_k) = (queries[i]..queries[i + 1], keys[i]..keys[i + 1]);
        attention_of(&q[of_q], &k[of_k.clone()], &v[of_k])
    };
    let wanted: Vec<_> = (0..3).flat_map(of_sequence).collect();
    let [q, k, v] = [q, k, v].map(|numbers| halves(&numbers));
    move |device| {
        let [q, k, v] = [&q, &k, &v].map(|all| device.tensor(all, [1, 1, all.len() / DEPTH, DEPTH]));
        let (q, k, v) = (q?, k?, v?);
        let (of_q, of_k) = (device.tensor(&QUERIES, [4])?, device.tensor(&starts, [4])?);
        let mut o = device.filled_bytes::<bf16, 4>(q.shape(), 0xff)?;
        let lengths =
            Some(Lengths { queries: of_q.view(), keys: of_k.view(), longest: 150, longest_keys: 150 });
        let options = AttentionOptions { blocks: Some(1), lengths, ..AttentionOptions::default() };
        attention(device, &q, &k, &v, &mut o, options)?;
        near(&o.to_vec()?, &wanted)
    }
}

/// Runs filters of 3 × 3 and a bias over two padded images of 9 × 7 pixels: six tiles, which three
/// of the simulator's four multiprocessors compute.
fn convolved() -> impl Fn(&Device) -> anyhow::Result<()> {
    let [images, height, width, channels, filters] = [2, 9, 7, 40, 264];
    let input = integers(12, images * height * width * channels);
    let weights = integers(13, filters * 9 * channels);
    let bias = integers(17, filters);
    let pixel = |image: usize, y: usize, x: usize, tap: usize| {
        let (y, x) = ((y + tap / 3).checked_sub(1)?, (x + tap % 3).checked_sub(1)?);
        let at = ((image * height + y) * width + x) * channels;
        (y < height && x < width).then(|| &input[at..at + channels])
    };
    let element = |place: usize| -> f32 {
        let (filter, place) = (place % filters, place / filters);
        let (image, y, x) = (place / (height * width), place / width % height, place % width);
        let taps = (0..9).filter_map(|tap| Some((tap, pixel(image, y, x, tap)?)));
        let sums = taps.map(|(tap, pixel)| {
            let weights = &weights[(filter * 9 + tap) * channels..];
            pixel.iter().zip(weights).map(|(x, y)| x * y).sum::<f32>()
        });
        (bias[filter] + sums.sum::<f32>()).max(0.0)
    };
    let wanted: Vec<f32> = (0..images * height * width * filters).map(element).collect();
    let [input, weights, bias, wanted] = [input, weights, bias, wanted].map(|numbers| halves(&numbers));
    move |device| {
        let input = device.tensor(&input, [images, height, width, channels])?;
        let weights = device.tensor(&weights, [filters, 3, 3, channels])?;
        let mut output = device.filled_bytes::<bf16, 4>([images, height, width, filters], 0xff)?;
        let bias = device.tensor(&bias, [filters])?;
        let options = ConvOptions {
            padding: [1; 2],
            bias: Some(bias.view()),
            relu: true,
            tile: Some(ConvTile::T64x128),
            ..ConvOptions::default()
        };
        conv2d(device, &input, &weights, &mut output, options)?;
        equal(&output.to_vec()?, &wanted)
    }
}
