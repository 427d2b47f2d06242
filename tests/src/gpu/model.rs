//! The kernels of `tma_kernels::model` at the extents of models, compared with plain Rust in f64.

use anyhow::ensure;
use tma_kernels::cached::RotaryLayout;
use tma_kernels::model::{
    Gate, ModelError, NormOptions, RotaryAngles, RotaryScaling, RouteOptions, RouteWorkspace, RoutesMut,
    SampleOptions, ScaleBlocks, ScalesMut, SoftmaxOptions, arg_max, combine, embedding, gated_packed, gather,
    layer_norm, log_probability, quantize, rms_norm, rms_norm_quantized, rotary, rotary_tables, route,
    sample, softmax,
};
use tma_runtime::prelude::*;

use super::runner::Test;
use crate::random::hash;

/// Rows enough to pass through shared memory, in batches that are not full at the end.
const MANY_ROWS: [[usize; 2]; 3] = [[1201, 4096], [20001, 128], [301, 16384]];

/// Returns a test of each kernel.
pub fn tests() -> Vec<Test> {
    vec![
        test("rms_norm", |device| {
            [[300, 4096], [5000, 128], [40, 16384], [7, 20480], [33, 1001]]
                .into_iter()
                .chain(MANY_ROWS)
                .try_for_each(|shape| normalised(device, shape, false))
        }),
        test("layer_norm", |device| {
            [[300, 4096], [7, 20480], [33, 1001]]
                .into_iter()
                .chain(MANY_ROWS)
                .try_for_each(|shape| normalised(device, shape, true))
        }),
        test("rms_norm_quantized", quantised_norm),
        test("gated_packed", gated),
        test("embedding", looked_up),
        test("rotary", |device| {
            [RotaryLayout::Halves, RotaryLayout::Pairs]
                .into_iter()
                .try_for_each(|layout| rotated(device, layout))
        }),
        test("quantize", |device| {
            for blocks in [ScaleBlocks::Row, ScaleBlocks::Columns128] {
                for shape in [[300, 7168], [9, 20480], [33, 1001]].into_iter().chain(MANY_ROWS) {
                    quantised(device, shape, blocks)?;
                }
            }
            Ok(())
        }),
        test("softmax", |device| {
            [[300, 4096], [5000, 128], [3, 151_936], [33, 1001]]
                .into_iter()
                .chain(MANY_ROWS)
                .try_for_each(|shape| exponentials(device, shape))
        }),
        test("tokens", tokens),
        test("sample", sampled),
        test("experts", |device| {
            [[1, 128, 8], [64, 128, 8], [65, 60, 4], [4000, 128, 8], [20_001, 512, 16], [301, 8, 2]]
                .into_iter()
                .try_for_each(|router| routed(device, router))
        }),
        test("graph", replayed),
    ]
}

fn test(name: &str, run: impl Fn(&Device) -> anyhow::Result<()> + Send + Sync + 'static) -> Test {
    Test { name: format!("model::{name}"), run: Box::new(run) }
}

fn numbers(seed: u64, count: usize, size: f32) -> Vec<bf16> {
    let number = |i| bf16::from_f32(((hash(seed, i) >> 40) as f32 / 8_388_608.0 - 1.0) * size);
    (0..count as u64).map(number).collect()
}

fn near(found: f64, wanted: f64, bound: f64) -> anyhow::Result<()> {
    ensure!((found - wanted).abs() <= bound, "{found}, not {wanted}: more than {bound:.1e} apart");
    Ok(())
}

/// The error of a number that is rounded to `bf16` once, after errors of 2^-15.
fn bound(wanted: f64) -> f64 {
    wanted.abs() * (1.0 / 256.0 + 2f64.powi(-15)) + 2f64.powi(-18)
}

fn normalised(device: &Device, shape: [usize; 2], centred: bool) -> anyhow::Result<()> {
    let [rows, columns] = shape;
    let (x, added) = (numbers(1, rows * columns, 3.0), numbers(2, rows * columns, 2.0));
    let weight = numbers(3, columns, 2.0);
    let of_x = device.tensor(&x, shape)?;
    let (mut residual, of_weight) = (device.tensor(&added, shape)?, device.tensor(&weight, [columns])?);
    let mut out = device.filled_bytes::<bf16, 2>(shape, 0xff)?;
    let options = NormOptions {
        weight: Some(of_weight.view()),
        one_plus_weight: true,
        residual: Some(residual.view_mut()),
        ..Default::default()
    };
    if centred {
        layer_norm(device, &of_x, &mut out, options)?;
    } else {
        rms_norm(device, &of_x, &mut out, options)?;
    }
    let (found, sums) = (out.to_vec()?, residual.to_vec()?);
    for (i, (x, added)) in x.iter().zip(&added).enumerate() {
        ensure!(sums[i] == bf16::from_f32(x.to_f32() + added.to_f32()), "sum {i} is {}", sums[i]);
    }
    for (sums, found) in sums.chunks(columns).zip(found.chunks(columns)) {
        let values: Vec<f64> = sums.iter().map(|x| x.to_f64()).collect();
        let mean = if centred { values.iter().sum::<f64>() / columns as f64 } else { 0.0 };
        let squares = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / columns as f64;
        for ((value, weight), found) in values.iter().zip(&weight).zip(found) {
            let wanted = (value - mean) / (squares + 1e-6).sqrt() * (weight.to_f64() + 1.0);
            near(found.to_f64(), wanted, bound(wanted))?;
        }
    }
    Ok(())
}

fn quantised_norm(device: &Device) -> anyhow::Result<()> {
    let few = [([300, 4096], ScaleBlocks::Row), ([70, 7168], ScaleBlocks::Columns128)];
    let many = [([1201, 4096], ScaleBlocks::Row), ([601, 7168], ScaleBlocks::Columns128)];
    for (shape, blocks) in few.into_iter().chain(many) {
        let count = if blocks == ScaleBlocks::Row { 1 } else { shape[1] / 128 };
        let x = device.tensor(&numbers(4, shape[0] * shape[1], 3.0), shape)?;
        let mut normal = device.zeros::<bf16, 2>(shape)?;
        let (mut out, mut wanted) = (device.zeros::<e4m3, 2>(shape)?, device.zeros::<e4m3, 2>(shape)?);
        let (mut scales, mut wanted_scales) =
            (device.zeros::<f32, 2>([shape[0], count])?, device.zeros::<f32, 2>([shape[0], count])?);
        let to = ScalesMut { blocks, scales: scales.view_mut() };
        rms_norm_quantized(device, &x, &mut out, to, NormOptions::default())?;
        rms_norm(device, &x, &mut normal, NormOptions::default())?;
        quantize(device, &normal, &mut wanted, ScalesMut { blocks, scales: wanted_scales.view_mut() })?;
        ensure!(scales.to_vec()? == wanted_scales.to_vec()?, "the scales differ");
        let bits = |all: Vec<e4m3>| all.iter().map(e4m3::to_bits).collect::<Vec<_>>();
        ensure!(bits(out.to_vec()?) == bits(wanted.to_vec()?), "the elements differ");
    }
    Ok(())
}

fn gated(device: &Device) -> anyhow::Result<()> {
    for [rows, columns] in [[100, 14336], [33, 1001]] {
        let x = numbers(5, rows * 2 * columns, 8.0);
        let of_x = device.tensor(&x, [rows, 2 * columns])?;
        let mut out = device.filled_bytes::<bf16, 2>([rows, columns], 0xff)?;
        for activation in [Gate::Silu, Gate::GeluTanh] {
            gated_packed(device, activation, &of_x, &mut out)?;
            for (row, found) in x.chunks(2 * columns).zip(out.to_vec()?.chunks(columns)) {
                for (column, found) in found.iter().enumerate() {
                    let [gate, up] = [row[column], row[columns + column]].map(bf16::to_f64);
                    let exponent = match activation {
                        Gate::Silu | Gate::Gelu => -gate,
                        Gate::GeluTanh => {
                            -2.0 * (2.0 / std::f64::consts::PI).sqrt() * (gate + 0.044_715 * gate.powi(3))
                        }
                    };
                    let wanted = gate / (1.0 + exponent.exp()) * up;
                    near(found.to_f64(), wanted, bound(wanted))?;
                }
            }
        }
    }
    Ok(())
}

fn rotated(device: &Device, layout: RotaryLayout) -> anyhow::Result<()> {
    let shape @ [tokens, heads, depth] = [500, 8, 128];
    let x = numbers(11, tokens * heads * depth, 3.0);
    let (cos, sin) = rotary_tables(0..10_000, depth, 500_000.0, RotaryScaling::None);
    let extents = [10_000, depth / 2];
    let (of_cos, of_sin) = (device.tensor(&cos, extents)?, device.tensor(&sin, extents)?);
    let angles = RotaryAngles { cos: of_cos.view(), sin: of_sin.view(), layout };
    let positions: Vec<u32> = (0..tokens as u64).map(|token| (hash(12, token) % 10_000) as u32).collect();
    let mut out = device.filled_bytes::<bf16, 3>(shape, 0xff)?;
    rotary(device, &device.tensor(&x, shape)?, &device.tensor(&positions, [tokens])?, &mut out, angles)?;
    for (row, (x, found)) in x.chunks(depth).zip(out.to_vec()?.chunks(depth)).enumerate() {
        let position = positions[row / heads] as usize;
        for pair in 0..depth / 2 {
            let [first, second] = match layout {
                RotaryLayout::Halves => [pair, pair + depth / 2],
                RotaryLayout::Pairs => [2 * pair, 2 * pair + 1],
            };
            let at = position * depth / 2 + pair;
            let (cos, sin) = (f64::from(cos[at]), f64::from(sin[at]));
            let (a, b) = (x[first].to_f64(), x[second].to_f64());
            for (found, wanted) in [(found[first], a * cos - b * sin), (found[second], b * cos + a * sin)] {
                near(found.to_f64(), wanted, bound(wanted))?;
            }
        }
    }
    Ok(())
}

fn looked_up(device: &Device) -> anyhow::Result<()> {
    let [vocabulary, columns, count] = [1000, 4096, 500];
    let rows = numbers(6, vocabulary * columns, 3.0);
    let table = device.tensor(&rows, [vocabulary, columns])?;
    let tokens: Vec<u32> = (0..count as u64).map(|i| (hash(7, i) % 1100) as u32).collect();
    let mut out = device.filled_bytes::<bf16, 2>([count, columns], 0xff)?;
    embedding(device, &table, &device.tensor(&tokens, [count])?, &mut out, 64.0)?;
    for (token, found) in tokens.iter().zip(out.to_vec()?.chunks(columns)) {
        let row = rows.get(*token as usize * columns..).and_then(|rows| rows.get(..columns));
        let is_right = match row {
            Some(row) => found.iter().zip(row).all(|(y, x)| y.to_f32() == x.to_f32() * 64.0),
            None => found.iter().all(|y| *y == bf16::ZERO),
        };
        ensure!(is_right, "the row of token {token} is wrong");
    }
    Ok(())
}

fn quantised(device: &Device, shape: [usize; 2], blocks: ScaleBlocks) -> anyhow::Result<()> {
    let [rows, columns] = shape;
    let x = numbers(8, rows * columns, 3.0);
    let length = if blocks == ScaleBlocks::Row { columns } else { 128 };
    let mut scales = device.zeros::<f32, 2>([rows, columns.div_ceil(length)])?;
    let mut out = device.zeros::<e4m3, 2>(shape)?;
    let to = ScalesMut { blocks, scales: scales.view_mut() };
    quantize(device, &device.tensor(&x, shape)?, &mut out, to)?;
    let (found, scales) = (out.to_vec()?, scales.to_vec()?);
    let parts = x.chunks(columns).flat_map(|row| row.chunks(length));
    let found = found.chunks(columns).flat_map(|row| row.chunks(length));
    for ((x, found), scale) in parts.zip(found).zip(scales) {
        let greatest = x.iter().map(|x| x.to_f32().abs()).fold(0.0, f32::max);
        ensure!(scale == (greatest / 448.0).max(f32::MIN_POSITIVE), "a scale of {scale}");
        for (x, found) in x.iter().zip(found) {
            let wanted = e4m3::from_f32(x.to_f32() * (1.0 / scale));
            ensure!(found.to_bits() == wanted.to_bits(), "{found:?}, not {wanted:?}");
        }
    }
    Ok(())
}

fn exponentials(device: &Device, shape: [usize; 2]) -> anyhow::Result<()> {
    let [rows, columns] = shape;
    let x = numbers(9, rows * columns, 8.0);
    let of_x = device.tensor(&x, shape)?;
    let mut out = device.filled_bytes::<bf16, 2>(shape, 0xff)?;
    for log in [false, true] {
        softmax(device, &of_x, &mut out, SoftmaxOptions { log, scale: 0.5 })?;
        for (x, found) in x.chunks(columns).zip(out.to_vec()?.chunks(columns)) {
            let sum: f64 = x.iter().map(|x| (x.to_f64() * 0.5).exp()).sum();
            for (x, found) in x.iter().zip(found) {
                let wanted = x.to_f64() * 0.5 - sum.ln();
                let wanted = if log { wanted } else { wanted.exp() };
                near(found.to_f64(), wanted, bound(wanted))?;
            }
        }
    }
    Ok(())
}

/// Rows of logits: those of [`numbers`], but with other distances.
fn logits(rows: usize, columns: usize) -> Vec<f32> {
    let number = |i| (hash(10, i) >> 40) as f32 / 1_048_576.0;
    (0..(rows * columns) as u64).map(number).collect()
}

fn tokens(device: &Device) -> anyhow::Result<()> {
    for [rows, columns] in [[3, 151_936], [200, 1001], [1, 262_144]] {
        let x = logits(rows, columns);
        let of_x = device.tensor(&x, [rows, columns])?;
        let (mut best, mut log) = (device.zeros([rows])?, device.zeros([rows])?);
        arg_max(device, &of_x, &mut best)?;
        log_probability(device, &of_x, &best, &mut log)?;
        for ((x, best), log) in x.chunks(columns).zip(best.to_vec()?).zip(log.to_vec()?) {
            let greatest = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let first = x.iter().position(|x| *x == greatest);
            ensure!(first == Some(best as usize), "{best}, not {first:?}");
            let sum: f64 = x.iter().map(|x| f64::from(x - greatest).exp()).sum();
            near(f64::from(log), -sum.ln(), (sum.ln().abs() + 1.0) * 2f64.powi(-16))?;
        }
    }
    Ok(())
}

/// Samples one row in many positions. A token's frequency is within six standard deviations.
fn sampled(device: &Device) -> anyhow::Result<()> {
    let (rows, probabilities) = (20_000, [0.4, 0.3, 0.15, 0.1, 0.05]);
    let x = probabilities.map(|p: f32| p.ln()).repeat(rows);
    let of_x = device.tensor(&x, [rows, 5])?;
    let seeds = device.tensor(&vec![12_345; rows], [rows])?;
    let positions = device.tensor(&(0..rows as u32).collect::<Vec<_>>(), [rows])?;
    let (top_k, top_p) = (device.tensor(&vec![4; rows], [rows])?, device.tensor(&vec![0.8; rows], [rows])?);
    let mut out = device.zeros([rows])?;
    for (left, has_k, has_p) in [(5, false, false), (4, true, false), (3, false, true), (3, true, true)] {
        let mut options = SampleOptions::new(seeds.view(), positions.view());
        options.top_k = has_k.then(|| top_k.view());
        options.top_p = has_p.then(|| top_p.view());
        sample(device, &of_x, &mut out, options)?;
        let tokens = out.to_vec()?;
        let total: f32 = probabilities[..left].iter().sum();
        for (token, p) in probabilities.iter().enumerate() {
            let found = tokens.iter().filter(|found| **found as usize == token).count() as f64;
            let p = if token < left { f64::from(p / total) } else { 0.0 };
            near(found, rows as f64 * p, 6.0 * (rows as f64 * p * (1.0 - p)).sqrt())?;
        }
        sample(device, &of_x, &mut out, options)?;
        ensure!(out.to_vec()? == tokens, "the same seeds choose other tokens");
    }
    Ok(())
}

/// The tensors of a router's results.
struct Routes {
    experts: DeviceTensor<u32, 2>,
    weights: DeviceTensor<f32, 2>,
    rows: DeviceTensor<u32, 2>,
    ends: DeviceTensor<u32, 1>,
}

/// Routes tokens, and moves rows to their experts and back, with two sets of logits: the second
/// time in a graph that was captured before its logits were there.
fn routed(device: &Device, [tokens, experts, choices]: [usize; 3]) -> anyhow::Result<()> {
    const COLUMNS: usize = 136;
    let stream = device.stream()?;
    let shape = [tokens, choices];
    let mut to = Routes {
        experts: device.zeros(shape)?,
        weights: device.zeros(shape)?,
        rows: device.zeros(shape)?,
        ends: device.zeros([experts])?,
    };
    let mut workspace = RouteWorkspace::new(device, tokens, experts)?;
    let x = numbers(11, tokens * COLUMNS, 4.0);
    let of_x = device.tensor(&x, [tokens, COLUMNS])?;
    let mut grouped = device.zeros::<bf16, 2>([tokens * choices, COLUMNS])?;
    let mut out = device.zeros::<bf16, 2>([tokens, COLUMNS])?;
    let mut of_logits = device.zeros::<bf16, 2>([tokens, experts])?;
    for is_graph in [false, true] {
        let logits = numbers(12 + u64::from(is_graph), tokens * experts, 6.0);
        let mut run = |on: &tma_runtime::launch::With<'_>, logits: &DeviceTensor<bf16, 2>| {
            let routes = RoutesMut {
                experts: to.experts.view_mut(),
                weights: to.weights.view_mut(),
                rows: to.rows.view_mut(),
                ends: to.ends.view_mut(),
            };
            let options = RouteOptions { normalise: is_graph, workspace: Some(&mut workspace) };
            route(on, logits, routes, options)?;
            gather(on, &of_x, &to.rows, &mut grouped)?;
            combine(on, &grouped, &to.rows, &to.weights, &mut out)
        };
        if is_graph {
            let mut refused = None;
            let graph = stream.capture(|capture| {
                refused = run(&capture.with(), &of_logits).err();
                Ok(())
            })?;
            ensure!(refused.is_none(), "{refused:?}");
            of_logits.copy_from(&logits)?;
            device.synchronize()?; // the copy is not ordered with the stream
            graph.launch(&stream)?;
        } else {
            of_logits.copy_from(&logits)?;
            device.synchronize()?;
            run(&stream.with(), &of_logits)?;
        }
        stream.synchronize()?;
        check_routes(&to, &logits, is_graph)?;
        let (rows, weights) = (to.rows.to_vec()?, to.weights.to_vec()?);
        let (moved, sums) = (grouped.to_vec()?, out.to_vec()?);
        for (choice, row) in rows.iter().enumerate() {
            let [from, row] = [choice / choices * COLUMNS, *row as usize * COLUMNS];
            ensure!(moved[row..][..COLUMNS] == x[from..][..COLUMNS], "the row of choice {choice} is wrong");
        }
        for (i, sum) in sums.iter().enumerate() {
            let of_token = &weights[i / COLUMNS * choices..][..choices];
            let wanted = of_token.iter().fold(0.0_f32, |sum, weight| weight.mul_add(x[i].to_f32(), sum));
            ensure!(*sum == bf16::from_f32(wanted), "element {i} is {sum}, not {wanted}");
        }
    }
    Ok(())
}

/// Compares a router's results with a stable sort of logits, and of choices.
fn check_routes(found: &Routes, logits: &[bf16], normalise: bool) -> anyhow::Result<()> {
    let ([_, choices], [experts]) = (found.experts.shape(), found.ends.shape());
    let (chosen, weights) = (found.experts.to_vec()?, found.weights.to_vec()?);
    for (token, row) in logits.chunks(experts).enumerate() {
        let mut order: Vec<usize> = (0..experts).collect();
        order.sort_by(|a, b| row[*b].to_f32().total_cmp(&row[*a].to_f32()));
        let counted = if normalise { choices } else { experts };
        let sum: f64 = order[..counted].iter().map(|expert| row[*expert].to_f64().exp()).sum();
        for (choice, expert) in order[..choices].iter().enumerate() {
            let i = token * choices + choice;
            ensure!(chosen[i] as usize == *expert, "choice {i} is {}, not {expert}", chosen[i]);
            let wanted = row[*expert].to_f64().exp() / sum;
            near(f64::from(weights[i]), wanted, wanted * 2f64.powi(-17))?;
        }
    }
    let mut order: Vec<usize> = (0..chosen.len()).collect();
    order.sort_by_key(|choice| chosen[*choice]);
    let rows = found.rows.to_vec()?;
    let is_ordered = order.iter().enumerate().all(|(row, choice)| rows[*choice] as usize == row);
    ensure!(is_ordered, "the rows are not in the order of experts");
    let ends = found.ends.to_vec()?;
    let ends_of = |expert: u32| order.partition_point(|choice| chosen[*choice] <= expert);
    ensure!(ends.iter().zip(0..).all(|(end, expert)| *end as usize == ends_of(expert)), "an end is wrong");
    Ok(())
}

/// A graph of a norm, a gate and a quantisation takes what is there when it runs.
fn replayed(device: &Device) -> anyhow::Result<()> {
    let stream = device.stream()?;
    let mut x = device.zeros::<bf16, 2>([64, 512])?;
    let (mut normal, mut gates) = (device.zeros::<bf16, 2>([64, 512])?, device.zeros::<bf16, 2>([64, 256])?);
    let (mut out, mut scales) = (device.zeros::<e4m3, 2>([64, 256])?, device.zeros([64, 2])?);
    let graph = {
        let mut run = |on: &tma_runtime::launch::With<'_>| {
            rms_norm(on, &x, &mut normal, NormOptions::default())?;
            gated_packed(on, Gate::Silu, &normal, &mut gates)?;
            let to = ScalesMut { blocks: ScaleBlocks::Columns128, scales: scales.view_mut() };
            quantize(on, &gates, &mut out, to)
        };
        let mut refused = None;
        let graph = stream.capture(|capture| match run(&capture.with()) {
            Ok(()) => Ok(()),
            Err(ModelError::Runtime(error)) => Err(error),
            Err(error) => {
                refused = Some(error);
                Ok(())
            }
        })?;
        ensure!(refused.is_none(), "{refused:?}");
        graph
    };
    x.copy_from(&[bf16::from_f32(2.0); 64 * 512])?;
    device.synchronize()?; // the copy is not ordered with the stream
    graph.launch(&stream)?;
    stream.synchronize()?;
    // 1 / (1 + 1 / e), rounded to `bf16`.
    ensure!(scales.to_vec()?.iter().all(|scale| *scale == bf16::from_f32(0.731_058_6).to_f32() / 448.0));
    ensure!(out.to_vec()?.iter().all(|x| x.to_f32() == 448.0));
    Ok(())
}
