//! A decoder's step over latents (MLA), as of DeepSeek-V3. It reads each key once, of which most
//! columns are also the value. The figures are bytes per second, and operations per second: with
//! 128 heads, the tensor cores are the limit.

use anyhow::ensure;
use serde_json::json;
use tma_kernels::cached::{CacheWorkspace, LatentCache, MlaAttentionOptions, mla_attention};
use tma_runtime::prelude::*;

use super::measure::{Plan, Spread};
use super::products::problem::normal;
use super::slices::{Instruments, Slices};
use crate::random::{hash, noise_of};

/// Columns of keys and queries.
const DEPTH: usize = 576;
/// Columns of latents, which are also the values.
const LATENTS: usize = 512;
/// The rows of a page.
const PAGE: usize = 64;
/// Keys repeat this many numbers, which are no multiple of a row.
const NUMBERS: usize = 1_000_003;
/// The rows of the result that the host computes.
const ROWS: u64 = 4;
/// The largest absolute error of an element, relative to the greatest of its row.
const TOLERANCE: f64 = 2e-2;
/// The factor of scores: that of heads of 192 columns.
const SCALE: f64 = 0.072_168_784;
/// The shapes: sequences, heads of queries, and keys of each sequence.
const SHAPES: [[usize; 3]; 4] = [[32, 128, 8192], [32, 64, 8192], [64, 16, 8192], [1, 128, 8192]];
/// The shapes of a check.
const SMALL: [[usize; 3]; 2] = [[2, 16, 100], [1, 80, 100]];
/// The seeds of the operands.
const Q: u64 = 121;
const KEYS: u64 = 122;

/// Returns the names of the contestants: the layouts of the cache.
pub fn names() -> Vec<String> {
    ["contiguous", "pages_of_64"].map(str::to_owned).to_vec()
}

/// Checks and measures each layout of the cache.
///
/// # Errors
///
/// Errors of the device.
pub fn run(device: &Device, plan: &Plan) -> anyhow::Result<Vec<bool>> {
    run_at(device, plan, &SHAPES)
}

/// Checks each layout at small shapes.
///
/// # Errors
///
/// Errors of the device.
pub fn check(device: &Device, plan: &Plan) -> anyhow::Result<Vec<bool>> {
    run_at(device, plan, &SMALL)
}

/// The tensors of a step.
struct Step {
    shape: [usize; 3],
    numbers: Vec<bf16>,
    q: DeviceTensor<bf16, 4>,
    cache: DeviceTensor<bf16, 4>,
    /// The pages of each sequence, and the number of its keys.
    pages: Option<(DeviceTensor<u32, 2>, DeviceTensor<u32, 1>)>,
    o: DeviceTensor<bf16, 4>,
    workspace: CacheWorkspace,
}

impl Step {
    fn new(device: &Device, shape: [usize; 3], is_paged: bool) -> anyhow::Result<Self> {
        let [batch, heads, keys] = shape;
        let q = noise_of(batch * heads * DEPTH, |i| bf16::from_f64(normal(Q, i)));
        let numbers: Vec<bf16> = noise_of(NUMBERS, |i| bf16::from_f64(normal(KEYS, i)));
        let (width, rows) = if is_paged { (keys.div_ceil(PAGE), PAGE) } else { (1, keys) };
        let count = batch * width;
        // Pages are in reverse order. Rows beyond the length of a sequence have any numbers.
        let numbers_of = |page: usize| {
            let page = if is_paged { count - 1 - page } else { page };
            let first = page / width * keys + page % width * rows;
            (0..rows * DEPTH).map(move |i| (first * DEPTH + i) % NUMBERS)
        };
        let all: Vec<bf16> = (0..count).flat_map(numbers_of).map(|i| numbers[i]).collect();
        let pages = if is_paged {
            let table: Vec<u32> = (0..count as u32).rev().collect();
            let lengths = device.tensor(&vec![u32::try_from(keys)?; batch], [batch])?;
            Some((device.tensor(&table, [batch, width])?, lengths))
        } else {
            None
        };
        Ok(Self {
            shape,
            q: device.tensor(&q, [batch, heads, 1, DEPTH])?,
            cache: device.tensor(&all, [count, 1, rows, DEPTH])?,
            pages,
            o: device.filled_bytes([batch, heads, 1, LATENTS], 0xff)?,
            workspace: CacheWorkspace::new(device)?,
            numbers,
        })
    }

    fn queue(&mut self, stream: &Stream) -> anyhow::Result<()> {
        let [count, _, rows, _] = self.cache.shape();
        let latents = self.cache.view().slice([0..count, 0..1, 0..rows, 0..LATENTS])?;
        let rotated = self.cache.view().slice([0..count, 0..1, 0..rows, LATENTS..DEPTH])?;
        let cache = match &self.pages {
            None => LatentCache::contiguous(latents, rotated),
            Some((table, lengths)) => {
                LatentCache::paged(latents, rotated, table.view()).with_lengths(lengths.view())
            }
        };
        let options =
            MlaAttentionOptions { workspace: Some(&mut self.workspace), ..MlaAttentionOptions::default() };
        Ok(mla_attention(stream, &self.q, cache, &mut self.o, options)?)
    }

    /// Compares some rows with those that the host computes.
    fn check(&mut self, stream: &Stream) -> anyhow::Result<()> {
        let [batch, heads, keys] = self.shape;
        self.queue(stream)?;
        stream.synchronize()?;
        let (q, found) = (self.q.to_vec()?, self.o.to_vec()?);
        for sample in 0..ROWS {
            let row = (hash(Q, sample) % (batch * heads) as u64) as usize;
            let first = row / heads * keys * DEPTH;
            let key =
                |key: usize, column: usize| self.numbers[(first + key * DEPTH + column) % NUMBERS].to_f64();
            let query = &q[row * DEPTH..][..DEPTH];
            let score =
                |i| query.iter().enumerate().map(|(c, x)| x.to_f64() * key(i, c)).sum::<f64>() * SCALE;
            let scores: Vec<f64> = (0..keys).map(score).collect();
            let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let weights: Vec<f64> = scores.iter().map(|score| (score - top).exp()).collect();
            let total: f64 = weights.iter().sum();
            let weighted =
                |c| weights.iter().enumerate().map(|(i, weight)| weight * key(i, c)).sum::<f64>() / total;
            let wanted: Vec<f64> = (0..LATENTS).map(weighted).collect();
            let greatest = wanted.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
            let found = found[row * LATENTS..].iter().zip(&wanted);
            let is_right =
                |(found, wanted): (&bf16, &f64)| (found.to_f64() - wanted).abs() <= TOLERANCE * greatest;
            ensure!(found.into_iter().all(is_right), "row {row} of {:?} is wrong", self.shape);
        }
        Ok(())
    }

    /// Returns the bytes of keys that a step reads.
    fn bytes(&self) -> f64 {
        let [batch, _, keys] = self.shape;
        (batch * keys * DEPTH * size_of::<bf16>()) as f64
    }

    /// Returns the floating-point operations of a step.
    fn operations(&self) -> f64 {
        let [batch, heads, keys] = self.shape;
        (2 * batch * heads * keys * (DEPTH + LATENTS)) as f64
    }
}

fn run_at(device: &Device, plan: &Plan, shapes: &[[usize; 3]]) -> anyhow::Result<Vec<bool>> {
    let (stream, instruments) = (device.stream()?, Instruments::load(device)?);
    let slices = Slices { stream: &stream, instruments: &instruments, slice_ms: plan.products.slice_ms };
    let mut verdicts = vec![];
    for &shape in shapes {
        for (name, is_paged) in names().into_iter().zip([false, true]) {
            if !plan.names("latents", &name) {
                continue;
            }
            let mut step = Step::new(device, shape, is_paged)?;
            let checked = step.check(&stream);
            verdicts.push(checked.is_ok());
            let name = format!("latents/{name}");
            if let Err(error) = checked {
                println!("{}", json!({"benchmark": name, "shape": shape, "error": format!("{error:#}")}));
            } else if !plan.check_only {
                let (bytes, operations) = (step.bytes(), step.operations());
                let mut queue = || step.queue(&stream);
                let slice = slices.prepare(&mut queue)?;
                let rounds = 0..plan.products.rounds;
                // SAFETY: `step` has the tensors of the slice, and is borrowed.
                let measured = rounds.map(|_| unsafe { slices.run(&slice, bytes, &mut queue) });
                let speeds: Vec<f64> =
                    measured.map(|round| Ok(round?.tflops * 1e3)).collect::<anyhow::Result<_>>()?;
                let Spread { median, width } = Spread::of(&speeds);
                let tflops = median * operations / bytes / 1e3;
                println!(
                    "{}",
                    json!({"benchmark": name, "shape": shape, "gb_per_s": median, "spread": width, "tflops": tflops})
                );
            }
        }
    }
    Ok(verdicts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_layout_is_right_on_the_simulator() {
        let plan = Plan { check_only: true, ..Plan::default() };
        assert_eq!(check(&Device::simulator(), &plan).unwrap(), [true; SMALL.len() * 2]);
    }
}
