//! New keys and values of a decoder, written to its cache with a rotary embedding. The figures are the
//! bytes that a copy would move: keys, values and queries, each read and written once.

use anyhow::ensure;
use serde_json::json;
use tma_kernels::cached::{AppendOptions, KeyValueCacheMut, Rotary, RotaryLayout, RotaryQueries, append};
use tma_runtime::prelude::*;

use super::measure::{Plan, Spread};
use super::products::problem::normal;
use super::slices::{Instruments, Slices};
use crate::random::noise_of;

const DEPTH: usize = 128;
const HEADS: usize = 32;
const KEY_HEADS: usize = 8;
/// The rows of a page.
const PAGE: usize = 64;
/// The keys that each sequence has before the call.
const KEPT: usize = 100;
/// The shapes: sequences, and new tokens of each. A decoder's step, and the start of a long sequence.
const SHAPES: [[usize; 2]; 2] = [[64, 1], [1, 8192]];
/// The shape of a check.
const SMALL: [[usize; 2]; 1] = [[3, 40]];
/// The largest error of a rotated element, relative to its pair: a rounding to `bf16`, and the errors
/// of `f32`.
const TOLERANCE: f64 = 1.0 / 250.0;
/// The seeds of the operands.
const Q: u64 = 111;
const K: u64 = 112;
const V: u64 = 113;

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

/// Checks each layout at a small shape.
///
/// # Errors
///
/// Errors of the device.
pub fn check(device: &Device, plan: &Plan) -> anyhow::Result<Vec<bool>> {
    run_at(device, plan, &SMALL)
}

/// The tensors of a call.
struct Call {
    batch: usize,
    tokens: usize,
    is_paged: bool,
    /// Keys, values and queries, before the call.
    new: [Vec<bf16>; 3],
    /// Cosines and sines, positions × half the depth.
    angles: [Vec<f32>; 2],
    k: DeviceTensor<bf16, 4>,
    v: DeviceTensor<bf16, 4>,
    q: DeviceTensor<bf16, 4>,
    rotated: DeviceTensor<bf16, 4>,
    keys: DeviceTensor<bf16, 4>,
    values: DeviceTensor<bf16, 4>,
    table: DeviceTensor<u32, 2>,
    lengths: DeviceTensor<u32, 1>,
    cos: DeviceTensor<f32, 2>,
    sin: DeviceTensor<f32, 2>,
}

impl Call {
    fn new(device: &Device, [batch, tokens]: [usize; 2], is_paged: bool) -> anyhow::Result<Self> {
        let positions = KEPT + tokens;
        let width = positions.div_ceil(PAGE);
        let noise = |seed, heads: usize| {
            noise_of(batch * heads * tokens * DEPTH, |i| bf16::from_f64(normal(seed, i)))
        };
        let new = [noise(K, KEY_HEADS), noise(V, KEY_HEADS), noise(Q, HEADS)];
        let angle = |i: usize| {
            let (position, pair) = (i / (DEPTH / 2), i % (DEPTH / 2));
            position as f64 * 10_000_f64.powf(-2.0 * pair as f64 / DEPTH as f64)
        };
        let of = |function: fn(f64) -> f64| -> Vec<f32> {
            (0..positions * DEPTH / 2).map(|i| function(angle(i)) as f32).collect()
        };
        let angles = [of(f64::cos), of(f64::sin)];
        let cache = if is_paged {
            [batch * width, KEY_HEADS, PAGE, DEPTH]
        } else {
            [batch, KEY_HEADS, positions, DEPTH]
        };
        // Pages in the opposite order.
        let table: Vec<u32> = (0..(batch * width) as u32).rev().collect();
        let of_heads = |heads| [batch, heads, tokens, DEPTH];
        let to_device = |all: &[bf16], heads| device.tensor(all, of_heads(heads));
        Ok(Self {
            batch,
            tokens,
            is_paged,
            k: to_device(&new[0], KEY_HEADS)?,
            v: to_device(&new[1], KEY_HEADS)?,
            q: to_device(&new[2], HEADS)?,
            rotated: device.filled_bytes(of_heads(HEADS), 0xff)?,
            keys: device.filled_bytes(cache, 0xff)?,
            values: device.filled_bytes(cache, 0xff)?,
            table: device.tensor(&table, [batch, width])?,
            lengths: device.tensor(&vec![KEPT as u32; batch], [batch])?,
            cos: device.tensor(&angles[0], [positions, DEPTH / 2])?,
            sin: device.tensor(&angles[1], [positions, DEPTH / 2])?,
            new,
            angles,
        })
    }

    fn queue(&mut self, stream: &Stream) -> anyhow::Result<()> {
        let (keys, values) = (self.keys.view_mut(), self.values.view_mut());
        let cache = match self.is_paged {
            false => KeyValueCacheMut::contiguous(keys, values),
            true => KeyValueCacheMut::paged(keys, values, self.table.view()),
        };
        let queries = RotaryQueries::To { q: self.q.view(), rotated: self.rotated.view_mut() };
        let rotary = Rotary {
            cos: self.cos.view(),
            sin: self.sin.view(),
            layout: RotaryLayout::Halves,
            queries: Some(queries),
        };
        let options = AppendOptions { rotary: Some(rotary), ..AppendOptions::default() };
        Ok(append(stream, &self.k, &self.v, cache.with_lengths(self.lengths.view()), options)?)
    }

    /// Compares the cache and the queries with those that the host computes.
    fn check(&mut self, stream: &Stream) -> anyhow::Result<()> {
        self.queue(stream)?;
        stream.synchronize()?;
        let (keys, values, rotated) = (self.keys.to_vec()?, self.values.to_vec()?, self.rotated.to_vec()?);
        for row in 0..self.batch * HEADS * self.tokens {
            let (head, token) = (row / self.tokens % HEADS, row % self.tokens);
            self.check_rotated(&self.new[2][row * DEPTH..], &rotated[row * DEPTH..], token)?;
            if head >= KEY_HEADS {
                continue;
            }
            let sequence = row / self.tokens / HEADS;
            let source = ((sequence * KEY_HEADS + head) * self.tokens + token) * DEPTH;
            let target = self.row_of([sequence, head, KEPT + token]) * DEPTH;
            self.check_rotated(&self.new[0][source..], &keys[target..], token)?;
            ensure!(self.new[1][source..][..DEPTH] == values[target..][..DEPTH], "values of token {token}");
        }
        let untouched = keys[self.row_of([0, 0, KEPT - 1]) * DEPTH..].iter().take(DEPTH);
        ensure!(untouched.map(|x| x.to_bits()).all(|bits| bits == u16::MAX), "a row before the new ones");
        Ok(())
    }

    /// Returns the row of the cache that has a position.
    fn row_of(&self, [sequence, head, position]: [usize; 3]) -> usize {
        let positions = KEPT + self.tokens;
        if !self.is_paged {
            return (sequence * KEY_HEADS + head) * positions + position;
        }
        let width = positions.div_ceil(PAGE);
        let page = self.batch * width - 1 - (sequence * width + position / PAGE);
        (page * KEY_HEADS + head) * PAGE + position % PAGE
    }

    fn check_rotated(&self, from: &[bf16], found: &[bf16], token: usize) -> anyhow::Result<()> {
        for pair in 0..DEPTH / 2 {
            let [cos, sin] = [0, 1].map(|i| f64::from(self.angles[i][(KEPT + token) * DEPTH / 2 + pair]));
            let (x, y) = (from[pair].to_f64(), from[pair + DEPTH / 2].to_f64());
            let wanted = [x * cos - y * sin, y * cos + x * sin];
            let errors = [found[pair].to_f64() - wanted[0], found[pair + DEPTH / 2].to_f64() - wanted[1]];
            let most = TOLERANCE * x.hypot(y);
            ensure!(errors.iter().all(|error| error.abs() <= most), "pair {pair} of token {token} is wrong");
        }
        Ok(())
    }

    /// Returns the bytes that are read and written once.
    fn bytes(&self) -> f64 {
        (self.batch * self.tokens * (2 * KEY_HEADS + HEADS) * DEPTH * 2 * size_of::<bf16>()) as f64
    }
}

fn run_at(device: &Device, plan: &Plan, shapes: &[[usize; 2]]) -> anyhow::Result<Vec<bool>> {
    let (stream, instruments) = (device.stream()?, Instruments::load(device)?);
    let slices = Slices { stream: &stream, instruments: &instruments, slice_ms: plan.products.slice_ms };
    let mut verdicts = vec![];
    for &shape in shapes {
        for (name, is_paged) in names().into_iter().zip([false, true]) {
            if !plan.names("append", &name) {
                continue;
            }
            let mut call = Call::new(device, shape, is_paged)?;
            let checked = call.check(&stream);
            verdicts.push(checked.is_ok());
            let benchmark = format!("append/{name}");
            if let Err(error) = checked {
                println!(
                    "{}",
                    json!({"benchmark": benchmark, "shape": shape, "error": format!("{error:#}")})
                );
            } else if !plan.check_only {
                let bytes = call.bytes();
                let mut queue = || call.queue(&stream);
                let slice = slices.prepare(&mut queue)?;
                // SAFETY: `call` has the tensors of the slice, and is borrowed.
                let measured =
                    (0..plan.products.rounds).map(|_| unsafe { slices.run(&slice, bytes, &mut queue) });
                let speeds: Vec<f64> =
                    measured.map(|round| Ok(round?.tflops * 1e3)).collect::<anyhow::Result<_>>()?;
                let Spread { median, width } = Spread::of(&speeds);
                let line =
                    json!({"benchmark": benchmark, "shape": shape, "gb_per_s": median, "spread": width});
                println!("{line}");
            }
        }
    }
    Ok(verdicts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cache_is_right_on_the_simulator() {
        let plan = Plan { check_only: true, ..Plan::default() };
        assert_eq!(check(&Device::simulator(), &plan).unwrap(), [true; 2]);
    }
}
