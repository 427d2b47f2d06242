//! The loss of a linear layer and its gradients, beside the three products alone: the logits, the
//! gradient of the rows and that of the matrix. The products have all rows at once, and memory for
//! all logits.

use anyhow::{Context, ensure};
use serde_json::json;
use tma_kernels::gemm::{GemmOptions, Workspace, gemm};
use tma_kernels::model::{
    CrossEntropyOptions, LinearGradients, LinearMemory, LinearOperands, linear_cross_entropy,
};
use tma_runtime::prelude::*;

use super::measure::{Plan, Spread};
use super::products::problem::normal;
use super::slices::{Instruments, Slices};
use crate::random::{hash, noise_of};

/// The shapes: rows, columns of logits, and depth. The vocabulary of Llama 3, at the widths of its
/// models of 1 and 8 billion parameters.
const SHAPES: [[usize; 3]; 2] = [[8192, 128_256, 2048], [8192, 128_256, 4096]];
/// The shape of a check.
const SMALL: [[usize; 3]; 1] = [[96, 520, 64]];
/// The rows whose logits are in memory at a time: a sixth of a gigabyte for each thousand.
const PIECE: usize = 4096;
/// The least ratio of the speed to that of the products alone.
const TARGET: f64 = 0.85;
/// The rows whose loss the host computes.
const ROWS: usize = 2;
/// The tolerated error of a loss: logits of some units are rounded to `bf16`.
const TOLERANCE: f64 = 1.0 / 32.0;
/// The seeds of the operands.
const X: u64 = 121;
const WEIGHT: u64 = 122;
const LABELS: u64 = 123;

/// Returns the names of the contestants.
pub fn names() -> Vec<String> {
    vec!["gradients".to_owned()]
}

/// Checks and measures each shape. Returns whether the losses are right and the target is reached.
///
/// # Errors
///
/// Errors of the device.
pub fn run(device: &Device, plan: &Plan) -> anyhow::Result<Vec<bool>> {
    run_at(device, plan, &SHAPES)
}

/// Checks a small shape.
///
/// # Errors
///
/// Errors of the device.
pub fn check(device: &Device, plan: &Plan) -> anyhow::Result<Vec<bool>> {
    run_at(device, plan, &SMALL)
}

/// The tensors of a layer and of its gradients.
struct Layer {
    x: DeviceTensor<bf16, 2>,
    weight: DeviceTensor<bf16, 2>,
    labels: DeviceTensor<u32, 1>,
    count: DeviceTensor<u32, 1>,
    losses: DeviceTensor<f32, 1>,
    of_x: DeviceTensor<bf16, 2>,
    of_weight: DeviceTensor<f32, 2>,
    logits: DeviceTensor<bf16, 2>,
    workspace: Workspace,
}

impl Layer {
    fn new(device: &Device, [rows, columns, depth]: [usize; 3]) -> anyhow::Result<Self> {
        // Logits have a deviation of 2.
        let factor = 2.0 / (depth as f64).sqrt();
        let numbers = |seed, len, factor| noise_of(len, |i| bf16::from_f64(factor * normal(seed, i)));
        let labels = noise_of(rows, |i| (hash(LABELS, i) % columns as u64) as u32);
        Ok(Self {
            x: device.tensor(&numbers(X, rows * depth, 1.0), [rows, depth])?,
            weight: device.tensor(&numbers(WEIGHT, columns * depth, factor), [columns, depth])?,
            labels: device.tensor(&labels, [rows])?,
            count: device.tensor(&[rows as u32], [1])?,
            losses: device.filled_bytes([rows], 0xff)?,
            of_x: device.zeros([rows, depth])?,
            of_weight: device.zeros([columns, depth])?,
            logits: device.zeros([rows, columns.next_multiple_of(8)])?,
            workspace: Workspace::new(device)?,
        })
    }

    /// Queues the losses and gradients.
    fn queue(&mut self, stream: &Stream) -> anyhow::Result<()> {
        let [rows, columns] = self.logits.shape();
        let operands =
            LinearOperands { x: self.x.view(), weight: self.weight.view(), labels: self.labels.view() };
        let gradients = LinearGradients { x: self.of_x.view_mut(), weight: self.of_weight.view_mut() };
        let piece = self.logits.view_mut().slice([0..rows.min(PIECE), 0..columns])?;
        let memory = LinearMemory { logits: piece, workspace: &mut self.workspace };
        let options =
            CrossEntropyOptions { count: Some(self.count.view()), ..CrossEntropyOptions::default() };
        let losses = self.losses.view_mut();
        Ok(linear_cross_entropy(stream, operands, losses, Some(gradients), memory, options)?)
    }

    /// Queues the products alone.
    fn queue_products(&mut self, stream: &Stream) -> anyhow::Result<()> {
        let Self { x, weight, of_x, of_weight, logits, workspace, .. } = self;
        let [rows, columns] = [x.shape()[0], weight.shape()[0]];
        let mut logits = logits.view_mut().slice([0..rows, 0..columns])?;
        let to_logits =
            GemmOptions { transpose_b: true, workspace: Some(&mut *workspace), ..GemmOptions::default() };
        gemm(stream, &*x, &*weight, logits.reborrow(), to_logits)?;
        let to_x = GemmOptions { workspace: Some(&mut *workspace), ..GemmOptions::default() };
        gemm(stream, logits.as_view(), &*weight, &mut *of_x, to_x)?;
        let to_weight = GemmOptions {
            transpose_a: true,
            beta: 1.0,
            workspace: Some(workspace),
            ..GemmOptions::default()
        };
        Ok(gemm(stream, logits.as_view(), &*x, &mut *of_weight, to_weight)?)
    }

    /// Runs the layer once, and compares some losses with those that the host computes.
    fn check(&mut self, stream: &Stream) -> anyhow::Result<()> {
        self.queue(stream)?;
        stream.synchronize()?;
        let [rows, depth] = self.x.shape();
        let (x, weight, labels) = (self.x.to_vec()?, self.weight.to_vec()?, self.labels.to_vec()?);
        let losses = self.losses.to_vec()?;
        for sample in 0..ROWS as u64 {
            let row = (hash(124, sample) % rows as u64) as usize;
            let of_row = &x[row * depth..][..depth];
            let logit = |column: &[bf16]| -> f64 {
                of_row.iter().zip(column).map(|(a, b)| a.to_f64() * b.to_f64()).sum()
            };
            let logits: Vec<f64> = weight.chunks(depth).map(logit).collect();
            let greatest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = logits.iter().map(|x| (x - greatest).exp()).sum();
            let wanted = greatest + sum.ln() - logits[labels[row] as usize];
            let found = f64::from(losses[row]);
            ensure!((found - wanted).abs() <= TOLERANCE, "row {row}: {found} instead of {wanted}");
        }
        Ok(())
    }
}

fn run_at(device: &Device, plan: &Plan, shapes: &[[usize; 3]]) -> anyhow::Result<Vec<bool>> {
    let (stream, instruments) = (device.stream()?, Instruments::load(device)?);
    let slices = Slices { stream: &stream, instruments: &instruments, slice_ms: plan.products.slice_ms };
    let name = "linear_loss/gradients";
    let mut verdicts = vec![];
    for &shape in shapes {
        let mut layer = Layer::new(device, shape)?;
        if let Some(launches) = plan.launches {
            (0..launches).try_for_each(|_| layer.queue(&stream))?;
            stream.synchronize()?;
            println!("{}", json!({"benchmark": name, "shape": shape, "launches": launches}));
            continue;
        }
        layer.check(&stream).with_context(|| format!("{name}, {shape:?}"))?;
        if plan.check_only {
            verdicts.push(true);
            continue;
        }
        let operations = 6.0 * shape.map(|extent| extent as f64).iter().product::<f64>();
        let whole = slices.prepare(&mut || layer.queue(&stream))?;
        let products = slices.prepare(&mut || layer.queue_products(&stream))?;
        let (mut speeds, mut ratios) = (vec![], vec![]);
        for _ in 0..plan.products.rounds {
            // SAFETY: `layer` has the tensors of both slices, and lives longer.
            let [ours, alone] = unsafe {
                [
                    slices.run(&whole, operations, &mut || layer.queue(&stream))?.tflops,
                    slices.run(&products, operations, &mut || layer.queue_products(&stream))?.tflops,
                ]
            };
            speeds.push(ours);
            ratios.push(ours / alone);
        }
        let [speed, ratio] = [Spread::of(&speeds), Spread::of(&ratios)];
        verdicts.push(ratio.median >= TARGET);
        let (tflops, spread) = (speed.median, ratio.width);
        println!(
            "{}",
            json!({"benchmark": name, "shape": shape, "tflops": tflops, "ratio_to_products": ratio.median, "spread": spread})
        );
    }
    Ok(verdicts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_right_on_the_simulator() {
        let plan = Plan { check_only: true, ..Plan::default() };
        assert_eq!(check(&Device::simulator(), &plan).unwrap(), [true]);
    }
}
