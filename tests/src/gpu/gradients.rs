//! The gradients of `tma_kernels::model` at the extents of models, compared with plain Rust in f64.

use anyhow::ensure;
use tma_kernels::model::{
    BiasBackwardOptions, EmbeddingBackwardOptions, Gate, NormBackwardOptions, SoftmaxOptions, bias_backward,
    embedding_backward, gated_packed_backward, layer_norm_backward, rms_norm_backward, softmax_backward,
};
use tma_runtime::prelude::*;

use super::runner::Test;
use crate::random::hash;

/// Returns a test of each kernel.
pub fn tests() -> Vec<Test> {
    vec![
        test("rms_norm_backward", |device| {
            [[3001, 4096], [20_001, 128], [1001, 8192], [301, 16384], [701, 1001], [33, 5001]]
                .into_iter()
                .try_for_each(|shape| norm(device, shape, false))
        }),
        test("layer_norm_backward", |device| {
            [[3001, 4096], [20_001, 128], [301, 16384], [701, 1001]]
                .into_iter()
                .try_for_each(|shape| norm(device, shape, true))
        }),
        test("gated_packed_backward", gates),
        test("softmax_backward", |device| {
            [[300, 4096], [5000, 128], [33, 1001], [3, 151_936]]
                .into_iter()
                .try_for_each(|shape| probabilities(device, shape))
        }),
        test("embedding_backward", table),
        test("bias_backward", |device| {
            [[3001, 4096], [20_001, 128], [701, 1001], [5, 40_000]]
                .into_iter()
                .try_for_each(|shape| bias(device, shape))
        }),
    ]
}

fn test(name: &str, run: impl Fn(&Device) -> anyhow::Result<()> + Send + Sync + 'static) -> Test {
    Test { name: format!("model::{name}"), run: Box::new(run) }
}

fn numbers(seed: u64, count: usize, size: f32) -> Vec<bf16> {
    let number = |i| bf16::from_f32(((hash(seed, i) >> 40) as f32 / 8_388_608.0 - 1.0) * size);
    (0..count as u64).map(number).collect()
}

fn values(all: &[bf16]) -> Vec<f64> {
    all.iter().map(|x| x.to_f64()).collect()
}

/// Compares a number that was rounded to `bf16`, after an error of this size.
fn near(found: f64, wanted: f64, error: f64) -> anyhow::Result<()> {
    let bound = wanted.abs() / 256.0 + error;
    ensure!((found - wanted).abs() <= bound, "{found}, not {wanted}: more than {bound:.1e} apart");
    Ok(())
}

/// Computes the gradients twice: the bits are the same.
fn norm(device: &Device, shape: [usize; 2], centred: bool) -> anyhow::Result<()> {
    let [rows, columns] = shape;
    let (x, dy) = (numbers(21, rows * columns, 3.0), numbers(22, rows * columns, 2.0));
    let (weight, old) = (numbers(23, columns, 2.0), numbers(24, rows * columns, 1.0));
    let (of_x, of_dy) = (device.tensor(&x, shape)?, device.tensor(&dy, shape)?);
    let of_weight = device.tensor(&weight, [columns])?;
    let mut found = vec![];
    for _ in 0..2 {
        let mut dx = device.tensor(&old, shape)?;
        let (mut dweight, mut dbias) =
            (device.zeros::<f32, 1>([columns])?, device.zeros::<f32, 1>([columns])?);
        let options = NormBackwardOptions {
            weight: Some(of_weight.view()),
            accumulate: true,
            dweight: Some(dweight.view_mut()),
            dbias: Some(dbias.view_mut()),
            ..Default::default()
        };
        match centred {
            true => layer_norm_backward(device, &of_x, &of_dy, &mut dx, options)?,
            false => rms_norm_backward(device, &of_x, &of_dy, &mut dx, options)?,
        }
        found.push((dx.to_vec()?, dweight.to_vec()?, dbias.to_vec()?));
    }
    ensure!(found[0] == found[1], "other bits the second time");
    let (dx, dweight, dbias) = &found[0];
    let (weight, mut sums) = (values(&weight), vec![[0.0_f64; 3]; columns]);
    for row in 0..rows {
        let part = row * columns..(row + 1) * columns;
        let [x, dy, old] = [&x, &dy, &old].map(|all| values(&all[part.clone()]));
        let h: Vec<f64> = dy.iter().zip(&weight).map(|(dy, weight)| dy * weight).collect();
        let mean = |all: &[f64]| if centred { all.iter().sum::<f64>() / columns as f64 } else { 0.0 };
        let [of_x, of_h] = [mean(&x), mean(&h)];
        let squares = x.iter().map(|x| (x - of_x).powi(2)).sum::<f64>() / columns as f64;
        let factor = (squares + 1e-6).sqrt().recip();
        let normal: Vec<f64> = x.iter().map(|x| (x - of_x) * factor).collect();
        let slope = normal.iter().zip(&h).map(|(n, h)| n * h).sum::<f64>() / columns as f64;
        for column in 0..columns {
            let wanted = old[column] + factor * (h[column] - of_h - normal[column] * slope);
            near(dx[part.start + column].to_f64(), wanted, factor * 2f64.powi(-14) + 2f64.powi(-20))?;
            let term = dy[column] * normal[column];
            let [of_weight, of_bias, size] = sums[column];
            sums[column] = [of_weight + term, of_bias + dy[column], size + term.abs() + dy[column].abs()];
        }
    }
    for (column, [of_weight, of_bias, size]) in sums.into_iter().enumerate() {
        for (found, wanted) in [(dweight[column], of_weight), (dbias[column], of_bias)] {
            let error = (f64::from(found) - wanted).abs();
            ensure!(error <= size * 2f64.powi(-18), "column {column} is {found}, not {wanted}");
        }
    }
    Ok(())
}

fn gates(device: &Device) -> anyhow::Result<()> {
    for [rows, columns] in [[100, 14336], [33, 1001]] {
        let (x, dy) = (numbers(25, rows * 2 * columns, 8.0), numbers(26, rows * columns, 2.0));
        let of_x = device.tensor(&x, [rows, 2 * columns])?;
        let of_dy = device.tensor(&dy, [rows, columns])?;
        let mut dx = device.filled_bytes::<bf16, 2>([rows, 2 * columns], 0xff)?;
        for activation in [Gate::Silu, Gate::GeluTanh] {
            gated_packed_backward(device, activation, &of_x, &of_dy, &mut dx)?;
            let found = dx.to_vec()?;
            for (i, dy) in dy.iter().enumerate() {
                let at = i / columns * 2 * columns + i % columns;
                let [gate, up, dy] = [x[at].to_f64(), x[at + columns].to_f64(), dy.to_f64()];
                let root = (8.0 / std::f64::consts::PI).sqrt();
                let [y, slope] = match activation {
                    Gate::Silu | Gate::Gelu => [gate, 1.0],
                    Gate::GeluTanh => [
                        root * (gate + 0.044_715 * gate.powi(3)),
                        root * (1.0 + 3.0 * 0.044_715 * gate * gate),
                    ],
                };
                let [s, rest] = [1.0 / (1.0 + (-y).exp()), 1.0 / (1.0 + y.exp())];
                let derivative = s * (1.0 + gate * rest * slope);
                let error = (dy * up).abs() * 2f64.powi(-15) + 2f64.powi(-20);
                near(found[at].to_f64(), dy * up * derivative, error)?;
                near(found[at + columns].to_f64(), dy * gate * s, 2f64.powi(-14))?;
            }
        }
    }
    Ok(())
}

fn probabilities(device: &Device, shape: [usize; 2]) -> anyhow::Result<()> {
    let [rows, columns] = shape;
    // Probabilities need not have a sum of 1.
    let y: Vec<bf16> =
        numbers(27, rows * columns, 1.0).iter().map(|y| bf16::from_f32(y.to_f32().abs() / 64.0)).collect();
    let dy = numbers(28, rows * columns, 2.0);
    let (of_y, of_dy) = (device.tensor(&y, shape)?, device.tensor(&dy, shape)?);
    let mut dx = device.filled_bytes::<bf16, 2>(shape, 0xff)?;
    for log in [false, true] {
        softmax_backward(device, &of_y, &of_dy, &mut dx, SoftmaxOptions { log, scale: 0.5 })?;
        let found = dx.to_vec()?;
        for (row, found) in found.chunks(columns).enumerate() {
            let [y, dy] = [&y, &dy].map(|all| values(&all[row * columns..][..columns]));
            let terms = || y.iter().zip(&dy).map(|(y, dy)| if log { *dy } else { y * dy });
            let [total, size] = [terms().sum::<f64>(), terms().map(f64::abs).sum::<f64>()];
            for ((y, dy), found) in y.iter().zip(&dy).zip(found) {
                let [factor, wanted] = match log {
                    true => [y.exp(), 0.5 * (dy - y.exp() * total)],
                    false => [*y, 0.5 * y * (dy - total)],
                };
                let error = factor * (size * 2f64.powi(-18) + 2f64.powi(-18));
                near(found.to_f64(), wanted, error + 2f64.powi(-20))?;
            }
        }
    }
    Ok(())
}

/// Adds the rows of tokens twice: the bits are the same. Every fourth token is the same one, and
/// some are not in the vocabulary.
fn table(device: &Device) -> anyhow::Result<()> {
    for [vocabulary, columns, count] in [[128_256, 512, 16384], [1000, 4096, 500], [50_257, 101, 3001]] {
        let token = |i| if i % 4 == 0 { 11 } else { hash(29, i) % (vocabulary as u64 + 100) };
        let tokens: Vec<u32> = (0..count as u64).map(|i| token(i) as u32).collect();
        let (of_tokens, dy) = (device.tensor(&tokens, [count])?, numbers(30, count * columns, 2.0));
        let of_dy = device.tensor(&dy, [count, columns])?;
        let mut found = vec![];
        for _ in 0..2 {
            let mut dtable = device.zeros::<f32, 2>([vocabulary, columns])?;
            let options = EmbeddingBackwardOptions { scale: 2.0, workspace: None };
            embedding_backward(device, &of_dy, &of_tokens, &mut dtable, options)?;
            found.push(dtable.to_vec()?);
        }
        ensure!(found[0] == found[1], "other bits the second time");
        let mut wanted = vec![[0.0_f64; 2]; vocabulary * columns];
        for (token, dy) in tokens.iter().zip(dy.chunks(columns)) {
            let row = wanted.chunks_mut(columns).nth(*token as usize);
            for (sum, dy) in row.into_iter().flatten().zip(dy) {
                let term = 2.0 * dy.to_f64();
                *sum = [sum[0] + term, sum[1] + term.abs()];
            }
        }
        for (i, (found, [wanted, size])) in found[0].iter().zip(&wanted).enumerate() {
            let error = (f64::from(*found) - wanted).abs();
            ensure!(error <= size * 2f64.powi(-18), "element {i} is {found}, not {wanted}");
        }
    }
    Ok(())
}

/// Adds up columns twice: the bits are the same.
fn bias(device: &Device, shape: [usize; 2]) -> anyhow::Result<()> {
    let [rows, columns] = shape;
    let dy = numbers(31, rows * columns, 2.0);
    let of_dy = device.tensor(&dy, shape)?;
    let mut found = vec![];
    for _ in 0..2 {
        let mut dbias = device.tensor(&vec![3.0_f32; columns], [columns])?;
        let options = BiasBackwardOptions { accumulate: true, workspace: None };
        bias_backward(device, &of_dy, &mut dbias, options)?;
        found.push(dbias.to_vec()?);
    }
    ensure!(found[0] == found[1], "other bits the second time");
    let mut wanted = vec![[3.0_f64; 2]; columns];
    for row in dy.chunks(columns) {
        for (sum, dy) in wanted.iter_mut().zip(row) {
            *sum = [sum[0] + dy.to_f64(), sum[1] + dy.to_f64().abs()];
        }
    }
    for (column, (found, [wanted, size])) in found[0].iter().zip(&wanted).enumerate() {
        let error = (f64::from(*found) - wanted).abs();
        ensure!(error <= size * 2f64.powi(-18), "column {column} is {found}, not {wanted}");
    }
    Ok(())
}
