//! The kernels of training at the extents of models, compared with plain Rust in f64.

use anyhow::ensure;
use tma_kernels::model::{
    CrossEntropyOptions, count_labels, cross_entropy_gradient, cross_entropy_in_place, mean_loss,
};
use tma_kernels::optimizer::{
    AdamW, AdamWOptions, Parameter, ParameterLayout, StepOptions, Weights, sum_squares,
};
use tma_runtime::prelude::*;

use super::runner::Test;
use crate::random::hash;

/// Returns a test of each kernel.
pub fn tests() -> Vec<Test> {
    vec![
        test("adamw", steps),
        test("cross_entropy", |device| {
            [[300, 4096], [33, 1001], [70, 50_257], [40, 131_072], [9, 151_936], [5, 262_144]]
                .into_iter()
                .try_for_each(|shape| losses(device, shape))
        }),
        // Enough rows to stay in shared memory, in one block, in two and in four, and too few.
        test("cross_entropy::many_rows", |device| {
            [[600, 32_000], [270, 50_257], [140, 131_072], [70, 151_936]]
                .into_iter()
                .try_for_each(|shape| losses(device, shape))
        }),
    ]
}

fn test(name: &str, run: impl Fn(&Device) -> anyhow::Result<()> + Send + Sync + 'static) -> Test {
    Test { name: format!("training::{name}"), run: Box::new(run) }
}

/// Returns a number from -1 to 1.
fn number(seed: u64, i: usize) -> f32 {
    (hash(seed, i as u64) >> 40) as f32 / 8_388_608.0 - 1.0
}

fn near(found: f64, wanted: f64, bound: f64) -> anyhow::Result<()> {
    ensure!((found - wanted).abs() <= bound, "{found}, not {wanted}: more than {bound:.1e} apart");
    Ok(())
}

/// Three steps, of which the second one is skipped, with limited gradients.
fn steps(device: &Device) -> anyhow::Result<()> {
    let parameters =
        [1000 * 1001, 7, 4096 * 300].map(|len| Parameter { weight_decay: 0.1, ..Parameter::new(len) });
    let layout = ParameterLayout::new(device, &parameters)?;
    let len = layout.len();
    let start: Vec<f32> = (0..len).map(|i| number(1, i)).collect();
    let rounded: Vec<bf16> = start.iter().map(|x| bf16::from_f32(*x)).collect();
    let (mut tensor, mut masters) = (device.tensor(&rounded, [len])?, device.tensor(&start, [len])?);
    let (mut firsts, mut seconds) = (device.zeros::<f32, 1>([len])?, device.zeros::<f32, 1>([len])?);
    let (mut sums, mut optimizer) =
        (device.zeros([layout.sums()])?, AdamW::new(device, AdamWOptions::default(), 0.01)?);
    let mut wanted: Vec<[f64; 3]> = start.iter().map(|x| [f64::from(*x), 0.0, 0.0]).collect();
    for step in 1..=3 {
        let is_skipped = step == 2;
        let mut gradients: Vec<bf16> = (0..len).map(|i| bf16::from_f32(number(1 + step, i))).collect();
        if is_skipped {
            gradients[layout.ranges()[2].end - 1] = bf16::INFINITY;
        }
        let of_gradients = device.tensor(&gradients, [len])?;
        sum_squares(device, &layout, &of_gradients, &mut sums)?;
        let options = StepOptions { squares: Some(sums.view()), max_norm: 100.0, ..StepOptions::default() };
        optimizer.begin_step(device, options)?;
        let weights = Weights {
            parameters: tensor.view_mut(),
            masters: Some(masters.view_mut()),
            firsts: firsts.view_mut(),
            seconds: seconds.view_mut(),
        };
        optimizer.update(device, &layout, weights, &of_gradients)?;
        if is_skipped {
            ensure!(optimizer.skipped()? == 1, "the second step is not skipped");
            continue;
        }
        let taken = optimizer.steps()?;
        let of_ranges = || layout.ranges().iter().flat_map(Clone::clone);
        let norm = of_ranges().map(|i| gradients[i].to_f64().powi(2)).sum::<f64>().sqrt();
        near(f64::from(optimizer.norm()?), norm, norm * 2f64.powi(-22))?;
        // As the kernel has them, in f32.
        let [beta1, beta2, rate, decay] = [0.9_f32, 0.999, 0.01, 0.1].map(f64::from);
        for i in of_ranges() {
            let g = gradients[i].to_f64() * (100.0 / norm).min(1.0);
            let [weight, first, second] = &mut wanted[i];
            *first = beta1 * *first + (1.0 - beta1) * g;
            *second = beta2 * *second + (1.0 - beta2) * g * g;
            let root = (*second / (1.0 - beta2.powi(taken as i32))).sqrt() + f64::from(1e-8_f32);
            *weight -= rate * (*first / (1.0 - beta1.powi(taken as i32)) / root + decay * *weight);
        }
    }
    ensure!(optimizer.steps()? == 2, "there are {} steps, not 2", optimizer.steps()?);
    let (found, rounded) = (masters.to_vec()?, tensor.to_vec()?);
    for i in layout.ranges().iter().flat_map(Clone::clone) {
        near(f64::from(found[i]), wanted[i][0], 2f64.powi(-20))?;
        ensure!(rounded[i] == bf16::from_f32(found[i]), "parameter {i} is not rounded once");
    }
    Ok(())
}

fn losses(device: &Device, shape: [usize; 2]) -> anyhow::Result<()> {
    let [rows, columns] = shape;
    let x: Vec<bf16> = (0..rows * columns).map(|i| bf16::from_f32(number(8, i) * 12.0)).collect();
    let label = |row| if row % 7 == 3 { u32::MAX } else { (hash(9, row as u64) % columns as u64) as u32 };
    let labels: Vec<u32> = (0..rows).map(label).collect();
    let (mut tensor, of_labels) = (device.tensor(&x, shape)?, device.tensor(&labels, [rows])?);
    let (mut count, mut mean) = (device.zeros([1])?, device.zeros([1])?);
    count_labels(device, &of_labels, u32::MAX, &mut count)?;
    let options = || CrossEntropyOptions {
        label_smoothing: 0.1,
        z_loss: 1e-4,
        count: Some(count.view()),
        ..CrossEntropyOptions::default()
    };
    let mut all = [device.zeros::<f32, 1>([rows])?, device.zeros::<f32, 1>([rows])?];
    let mut apart = device.filled_bytes::<bf16, 2>(shape, 0xff)?;
    cross_entropy_gradient(device, &tensor, &of_labels, &mut all[0], &mut apart, options())?;
    cross_entropy_in_place(device, &mut tensor, &of_labels, &mut all[1], options())?;
    mean_loss(device, &all[0], &count, &mut mean)?;
    let (found, gradients) = (all[0].to_vec()?, apart.to_vec()?);
    ensure!(found == all[1].to_vec()? && gradients == tensor.to_vec()?, "other bits in place");
    let valid = labels.iter().filter(|label| **label != u32::MAX).count() as f64;
    let mut sum = 0.0;
    for (row, label) in labels.iter().enumerate() {
        let gradient = &gradients[row * columns..][..columns];
        if *label == u32::MAX {
            ensure!(found[row] == 0.0 && gradient.iter().all(|x| x.to_f32() == 0.0), "row {row} counts");
            continue;
        }
        let x: Vec<f64> = x[row * columns..][..columns].iter().map(|x| x.to_f64()).collect();
        let log_sum = x.iter().map(|x| x.exp()).sum::<f64>().ln();
        let [smoothing, z_loss] = [0.1_f32, 1e-4].map(f64::from);
        let average = x.iter().sum::<f64>() / columns as f64;
        let loss = log_sum - (1.0 - smoothing) * x[*label as usize] - smoothing * average;
        let loss = loss + z_loss * log_sum * log_sum;
        near(f64::from(found[row]), loss, 2f64.powi(-16))?;
        sum += loss;
        for (column, found) in gradient.iter().enumerate() {
            let target = if column == *label as usize { 1.0 - smoothing } else { 0.0 };
            let share = (x[column] - log_sum).exp() * (1.0 + 2.0 * z_loss * log_sum);
            let wanted = (share - target - smoothing / columns as f64) / valid;
            near(found.to_f64(), wanted, (wanted.abs() / 256.0) + (share + target) / valid * 2f64.powi(-16))?;
        }
    }
    near(f64::from(mean.to_vec()?[0]), sum / valid, 2f64.powi(-16))
}
