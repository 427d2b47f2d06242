//! The kernels of `tma-kernels`, each on a small problem with ragged extents and a K that goes round
//! its ring more than once, against plain Rust. For mutation: the package's own tests try every
//! instance.

use anyhow::{Context, ensure};
use tma_kernels::conv::{ConvOptions, conv2d};
use tma_kernels::gemm::turns::alternating;
use tma_kernels::gemm::{
    Choice, Division, GemmOptions, GroupedOptions, Scales, Tile, gemm, gemm_grouped, gemm_scaled,
};
use tma_kernels::{AttentionOptions, attention};
use tma_runtime::launch::{Arg, launch};
use tma_runtime::prelude::*;

use crate::gpu::runner::Test;
use crate::random::hash;

/// A check of each kernel.
pub fn tests() -> Vec<Test> {
    vec![
        test("gemm", product(Choice { tile: Tile::Square, division: Division::Whole }, 1.0)),
        test("gemm_folded", product(Choice { tile: Tile::Folded, division: Division::Whole }, 1.0)),
        test("gemm_turns", turns()),
        test("gemm_with_options", product(Choice { tile: Tile::Square, division: Division::Parts(2) }, 0.5)),
        test("gemm_grouped", grouped()),
        test("gemm_scaled", scaled()),
        test("attention", attended()),
        test("conv2d", convolved()),
    ]
}

fn test(name: &str, run: impl Fn(&Device) -> anyhow::Result<()> + Send + Sync + 'static) -> Test {
    Test { name: format!("tma_kernels::{name}"), run: Box::new(run) }
}

/// -2 to 2: exact in each type, as are their sums.
fn integers(seed: u64, count: usize) -> Vec<f32> {
    (0..count as u64).map(|i| (hash(seed, i) % 5) as f32 - 2.0).collect()
}

fn halves(numbers: &[f32]) -> Vec<bf16> {
    numbers.iter().map(|number| bf16::from_f32(*number)).collect()
}

/// `a · bᵀ`, with `k` elements in each row.
fn rows_by_rows(a: &[f32], b: &[f32], k: usize) -> Vec<f32> {
    let dot = |x: &[f32], y: &[f32]| x.iter().zip(y).map(|(x, y)| x * y).sum();
    a.chunks(k).flat_map(|x| b.chunks(k).map(move |y| dot(x, y))).collect()
}

fn equal(found: &[bf16], wanted: &[bf16]) -> anyhow::Result<()> {
    let wrong = found.iter().zip(wanted).position(|(found, wanted)| found != wanted);
    ensure!(wrong.is_none(), "element {wrong:?} is wrong");
    Ok(())
}

/// `c = a · bᵀ` by a single cluster, so that its warpgroups take turns.
fn turns() -> impl Fn(&Device) -> anyhow::Result<()> {
    let [m, n, k] = [200, 264, 584];
    let (a, b) = (integers(1, m * k), integers(2, n * k));
    let [wanted, a, b] = [rows_by_rows(&a, &b, k), a, b].map(|numbers| halves(&numbers));
    move |device| {
        let (a, b) = (device.tensor(&a, [1, m, k])?, device.tensor(&b, [1, n, k])?);
        let mut c = device.filled_bytes::<bf16, 3>([1, m, n], 0xff)?;
        let mut all = alternating::turns::INSTANCES.iter();
        let kernel = all.find(|kernel| kernel.name.ends_with("bf16_turns128_nt")).context("no instance")?;
        let mut args = vec![Arg::map(a.view()), Arg::map(b.view()), Arg::map_mut(c.view_mut())];
        let (stagger, band, batches) = (0_u32, 1, 1);
        args.extend([m as u32, n as u32, k as u32, stagger, band, batches].map(Arg::scalar));
        launch(device, kernel, Grid::new(1, 2, 1), &args)?;
        equal(&c.to_vec()?, &wanted)
    }
}

/// `c = alpha · a · bᵀ`.
fn product(choice: Choice, alpha: f32) -> impl Fn(&Device) -> anyhow::Result<()> {
    let [m, n, k] = [200, 136, 584];
    let (a, b) = (integers(1, m * k), integers(2, n * k));
    let wanted: Vec<f32> = rows_by_rows(&a, &b, k).iter().map(|sum| alpha * sum).collect();
    let [a, b, wanted] = [a, b, wanted].map(|numbers| halves(&numbers));
    move |device| {
        let (a, b) = (device.tensor(&a, [m, k])?, device.tensor(&b, [n, k])?);
        let mut c = device.filled_bytes::<bf16, 2>([m, n], 0xff)?;
        let options =
            GemmOptions { transpose_b: true, alpha, choice: Some(choice), ..GemmOptions::default() };
        gemm(device, &a, &b, &mut c, options)?;
        equal(&c.to_vec()?, &wanted)
    }
}

/// Groups of 5, 0 and 130 rows, each with a B of its own.
fn grouped() -> impl Fn(&Device) -> anyhow::Result<()> {
    const ENDS: [u32; 3] = [5, 5, 135];
    let [m, n, k] = [135, 136, 328];
    let (a, b) = (integers(3, m * k), integers(4, ENDS.len() * n * k));
    let mut wanted = rows_by_rows(&a[..5 * k], &b[..n * k], k);
    wanted.extend(rows_by_rows(&a[5 * k..], &b[2 * n * k..], k));
    let [a, b, wanted] = [a, b, wanted].map(|numbers| halves(&numbers));
    move |device| {
        let (a, b) = (device.tensor(&a, [m, k])?, device.tensor(&b, [ENDS.len(), n, k])?);
        let ends = device.tensor(&ENDS, [ENDS.len()])?;
        let mut c = device.filled_bytes::<bf16, 2>([m, n], 0xff)?;
        let options = GroupedOptions { transpose_b: true, tile: Some(Tile::Beside), maps: None };
        gemm_grouped(device, &a, &b, &ends, &mut c, options)?;
        equal(&c.to_vec()?, &wanted)
    }
}

/// Sums of 128 products, each times a scale of its row of A and one of its rows of B.
fn scaled() -> impl Fn(&Device) -> anyhow::Result<()> {
    let [m, n, k]: [usize; 3] = [136, 200, 656];
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
        let scales = Scales { a: of_a.view(), b: of_b.view() };
        gemm_scaled(device, &a, &b, Some(scales), &mut c)?;
        equal(&c.to_vec()?, &wanted)
    }
}

/// How far attention may be from plain Rust: probabilities are rounded to `bf16`, and so are results
/// of up to 2.
const ERROR: f32 = 0.04;

/// Two heads with the same keys, by two blocks that go from tile to tile.
fn attended() -> impl Fn(&Device) -> anyhow::Result<()> {
    let [heads, queries, keys, depth] = [2, 150, 300, 64];
    let (q, k, v) =
        (integers(9, heads * queries * depth), integers(10, keys * depth), integers(11, keys * depth));
    let scale = 1.0 / (depth as f32).sqrt();
    let wanted: Vec<f32> = rows_by_rows(&q, &k, depth)
        .chunks(keys)
        .flat_map(|scores| {
            let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let weights: Vec<f32> = scores.iter().map(|score| ((score - most) * scale).exp()).collect();
            let total: f32 = weights.iter().sum();
            let values = &v;
            (0..depth).map(move |at| {
                let terms = weights.iter().enumerate().map(|(key, weight)| weight * values[key * depth + at]);
                terms.sum::<f32>() / total
            })
        })
        .collect();
    let [q, k, v] = [q, k, v].map(|numbers| halves(&numbers));
    move |device| {
        let q = device.tensor(&q, [1, heads, queries, depth])?;
        let (k, v) = (device.tensor(&k, [1, 1, keys, depth])?, device.tensor(&v, [1, 1, keys, depth])?);
        let mut o = device.filled_bytes::<bf16, 4>(q.shape(), 0xff)?;
        let options = AttentionOptions { blocks: Some(2), ..AttentionOptions::default() };
        attention(device, &q, &k, &v, &mut o, options)?;
        let found = o.to_vec()?;
        let is_near = |(found, wanted): (&bf16, &f32)| (found.to_f32() - wanted).abs() <= ERROR;
        let wrong = found.iter().zip(&wanted).position(|both| !is_near(both));
        ensure!(wrong.is_none(), "element {wrong:?} is wrong");
        Ok(())
    }
}

/// Filters of 3 × 3 over three padded images of 9 × 7 pixels.
fn convolved() -> impl Fn(&Device) -> anyhow::Result<()> {
    let [images, height, width, channels, filters] = [3, 9, 7, 72, 72];
    let input = integers(12, images * height * width * channels);
    let weights = integers(13, filters * 9 * channels);
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
        sums.sum()
    };
    let wanted: Vec<f32> = (0..images * height * width * filters).map(element).collect();
    let [input, weights, wanted] = [input, weights, wanted].map(|numbers| halves(&numbers));
    move |device| {
        let input = device.tensor(&input, [images, height, width, channels])?;
        let weights = device.tensor(&weights, [filters, 3, 3, channels])?;
        let mut output = device.filled_bytes::<bf16, 4>([images, height, width, filters], 0xff)?;
        let options = ConvOptions { padding: [1; 2], ..ConvOptions::default() };
        conv2d(device, &input, &weights, &mut output, options)?;
        equal(&output.to_vec()?, &wanted)
    }
}
