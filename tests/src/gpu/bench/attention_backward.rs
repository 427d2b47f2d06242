//! The gradients of attention. As for [the forward pass](super::attention), rivals run in other
//! processes.
//!
//! All operands are `bf16`, normally distributed. There are 16 × 16384 queries in total, in one
//! sequence or in several.

use anyhow::{Context, ensure};
use serde_json::json;
use tma_kernels::attention::{
    AttentionBackwardOptions, AttentionForward, AttentionGradients, AttentionWorkspace, attention_backward,
};
use tma_kernels::{AttentionOptions, attention};
use tma_runtime::prelude::*;

use super::attention::Mask;
use super::measure::{Plan, Spread};
use super::products::problem::normal;
use super::slices::{Instruments, Slices};
use crate::random::{hash, noise_of};

/// The number of queries of all heads and sequences.
const QUERIES: usize = 16 * 16384;
/// The lengths of a sequence, which has equally many queries and keys.
const LENGTHS: [usize; 4] = [2048, 4096, 8192, 16384];
/// The number of elements of a head.
const DEPTHS: [usize; 2] = [64, 128];
/// The number of rows of each gradient that the host computes.
const ROWS: usize = 12;
/// The tolerated error of an element, relative to the square root of the sum of squares of what is
/// added up: four roundings of each to `bf16`, and the element's own.
const TOLERANCE: f64 = 1.0 / 64.0;

/// The masks, each of which is a contestant.
pub const MASKS: [Mask; 2] = [Mask::Full, Mask::Causal];

/// Returns `attention_backward/MASK/tma_kernels`, as in results.
fn name(mask: Mask) -> String {
    format!("attention_backward/{}/tma_kernels", mask.name())
}

/// Returns the mask of a contestant.
///
/// # Errors
///
/// An unknown name.
pub fn find(wanted: &str) -> anyhow::Result<Mask> {
    MASKS.into_iter().find(|&mask| name(mask) == wanted).with_context(|| format!("there is no `{wanted}`"))
}

/// The operands of a backward pass, of 1 × heads of all sequences × length × depth, and its
/// results.
pub struct Pass {
    mask: Mask,
    q: DeviceTensor<bf16, 4>,
    k: DeviceTensor<bf16, 4>,
    v: DeviceTensor<bf16, 4>,
    o: DeviceTensor<bf16, 4>,
    d_o: DeviceTensor<bf16, 4>,
    lse: DeviceTensor<f32, 3>,
    dq: DeviceTensor<bf16, 4>,
    dk: DeviceTensor<bf16, 4>,
    dv: DeviceTensor<bf16, 4>,
    workspace: AttentionWorkspace,
}

impl Pass {
    /// Allocates and fills the tensors, and runs the forward pass.
    ///
    /// # Errors
    ///
    /// Errors of the device.
    pub fn new(stream: &Stream, shape: [usize; 3], mask: Mask) -> anyhow::Result<Self> {
        let (device, [heads, length, depth]) = (stream.device(), shape);
        let shape = [1, heads, length, depth];
        let tensor = |seed| device.tensor(&numbers(seed, shape.iter().product()), shape);
        let mut pass = Self {
            mask,
            q: tensor(Q)?,
            k: tensor(K)?,
            v: tensor(V)?,
            o: device.zeros(shape)?,
            d_o: tensor(D_O)?,
            lse: device.zeros([1, heads, length])?,
            dq: device.filled_bytes(shape, 0xff)?,
            dk: device.filled_bytes(shape, 0xff)?,
            dv: device.filled_bytes(shape, 0xff)?,
            workspace: AttentionWorkspace::new(device)?,
        };
        let causal = mask == Mask::Causal;
        let options = AttentionOptions { causal, lse: Some(pass.lse.view_mut()), ..Default::default() };
        attention(stream, &pass.q, &pass.k, &pass.v, &mut pass.o, options)?;
        pass.queue(stream)?; // allocates
        stream.synchronize()?;
        Ok(pass)
    }

    /// Returns the number of operations: 10 for each element of each pair of a query and a key that
    /// it sees, for five products.
    pub fn operations(&self) -> f64 {
        let [_, heads, length, depth] = self.q.shape();
        let pairs: usize = (0..length).map(|i| self.seen(i)).sum();
        10.0 * (heads * pairs * depth) as f64
    }

    fn seen(&self, query: usize) -> usize {
        match self.mask {
            Mask::Full => self.k.shape()[2],
            Mask::Causal => query + 1,
        }
    }

    /// Queues the kernels.
    ///
    /// # Errors
    ///
    /// Errors of the launches.
    pub fn queue(&mut self, stream: &Stream) -> anyhow::Result<()> {
        let forward = AttentionForward {
            q: self.q.view(),
            k: self.k.view(),
            v: self.v.view(),
            o: self.o.view(),
            d_o: self.d_o.view(),
            lse: self.lse.view(),
        };
        let gradients =
            AttentionGradients { dq: self.dq.view_mut(), dk: self.dk.view_mut(), dv: self.dv.view_mut() };
        let options = AttentionBackwardOptions {
            causal: self.mask == Mask::Causal,
            workspace: Some(&mut self.workspace),
            ..Default::default()
        };
        Ok(attention_backward(stream, forward, gradients, options)?)
    }

    /// Runs the kernels once, into poisoned memory, and compares some rows with those that the host
    /// computes from the results of the forward pass.
    ///
    /// # Errors
    ///
    /// Errors of the launches, and a row that is wrong.
    pub fn check(&mut self, stream: &Stream) -> anyhow::Result<()> {
        for gradient in [&mut self.dq, &mut self.dk, &mut self.dv] {
            gradient.fill_bytes(0xff)?;
        }
        self.q.device().synchronize()?; // the copies are not ordered with the stream
        self.queue(stream)?;
        stream.synchronize()?;
        let [_, heads, length, depth] = self.q.shape();
        let host = Host {
            depth,
            scale: 1.0 / (depth as f64).sqrt(),
            q: self.q.to_vec()?,
            k: self.k.to_vec()?,
            v: self.v.to_vec()?,
            o: self.o.to_vec()?,
            d_o: self.d_o.to_vec()?,
            lse: self.lse.to_vec()?,
        };
        let [dq, dk, dv] = [self.dq.to_vec()?, self.dk.to_vec()?, self.dv.to_vec()?];
        for sample in 0..ROWS as u64 {
            let row = (hash(98, sample) % (heads * length) as u64) as usize;
            let (first, at) = (row / length * length, row % length);
            let keys = (first..first + self.seen(at)).map(|key| {
                let pair = host.pair(row, key);
                (pair.of_score * host.scale, host.row(&host.k, key))
            });
            check(&host, keys, &dq[row * depth..][..depth]).with_context(|| format!("dq, row {row}"))?;
            let queries = || (first..first + length).filter(|query| at < self.seen(query - first));
            let of_key = queries().map(|query| {
                let pair = host.pair(query, row);
                (pair.of_score * host.scale, host.row(&host.q, query))
            });
            check(&host, of_key, &dk[row * depth..][..depth]).with_context(|| format!("dk, row {row}"))?;
            let of_value = queries().map(|query| (host.pair(query, row).weight, host.row(&host.d_o, query)));
            check(&host, of_value, &dv[row * depth..][..depth]).with_context(|| format!("dv, row {row}"))?;
        }
        Ok(())
    }
}

/// The operands on the host.
struct Host {
    depth: usize,
    scale: f64,
    q: Vec<bf16>,
    k: Vec<bf16>,
    v: Vec<bf16>,
    o: Vec<bf16>,
    d_o: Vec<bf16>,
    lse: Vec<f32>,
}

/// The weight of a key for a query, and the gradient of its score.
struct Pair {
    weight: f64,
    of_score: f64,
}

impl Host {
    fn row<'a>(&self, all: &'a [bf16], row: usize) -> &'a [bf16] {
        &all[row * self.depth..][..self.depth]
    }

    fn dot(a: &[bf16], b: &[bf16]) -> f64 {
        a.iter().zip(b).map(|(a, b)| a.to_f64() * b.to_f64()).sum()
    }

    fn pair(&self, query: usize, key: usize) -> Pair {
        let d_o = self.row(&self.d_o, query);
        let score = Self::dot(self.row(&self.q, query), self.row(&self.k, key)) * self.scale;
        let weight = (score - f64::from(self.lse[query])).exp();
        let delta = Self::dot(self.row(&self.o, query), d_o);
        Pair { weight, of_score: weight * (Self::dot(self.row(&self.v, key), d_o) - delta) }
    }
}

/// Compares a row with the sum of rows times factors.
fn check<'a>(
    host: &Host,
    terms: impl Iterator<Item = (f64, &'a [bf16])>,
    found: &[bf16],
) -> anyhow::Result<()> {
    let (mut sums, mut squares) = (vec![0.0; host.depth], vec![0.0; host.depth]);
    for (factor, row) in terms {
        for (i, x) in row.iter().enumerate() {
            let term = factor * x.to_f64();
            sums[i] += term;
            squares[i] += term * term;
        }
    }
    for ((found, sum), square) in found.iter().zip(sums).zip(squares) {
        let bound = (square.sqrt() + sum.abs()) * TOLERANCE;
        ensure!((found.to_f64() - sum).abs() <= bound, "{found} instead of {sum}");
    }
    Ok(())
}

/// The seeds of the operands.
const Q: u64 = 99;
const K: u64 = 100;
const V: u64 = 101;
const D_O: u64 = 102;

fn numbers(seed: u64, len: usize) -> Vec<bf16> {
    noise_of(len, |i| bf16::from_f64(normal(seed, i)))
}

/// Returns the names of the contestants: mask and kernel.
pub fn names() -> Vec<String> {
    MASKS.map(|mask| name(mask).trim_start_matches("attention_backward/").to_owned()).to_vec()
}

/// Checks each mask at each depth and length, and measures it. Returns a verdict for each check.
///
/// # Errors
///
/// Errors of the device.
pub fn run(device: &Device, plan: &Plan) -> anyhow::Result<Vec<bool>> {
    run_at(device, plan, QUERIES, &LENGTHS)
}

/// Checks each mask at short lengths.
///
/// # Errors
///
/// Errors of the device.
pub fn check_short(device: &Device, plan: &Plan) -> anyhow::Result<Vec<bool>> {
    run_at(device, plan, 512, &[256])
}

fn run_at(device: &Device, plan: &Plan, queries: usize, lengths: &[usize]) -> anyhow::Result<Vec<bool>> {
    let (stream, instruments) = (device.stream()?, Instruments::load(device)?);
    let slices = Slices { stream: &stream, instruments: &instruments, slice_ms: plan.products.slice_ms };
    let mut verdicts = vec![];
    for (depth, &length) in DEPTHS.into_iter().flat_map(|depth| lengths.iter().map(move |at| (depth, at))) {
        for mask in MASKS.into_iter().filter(|&mask| name(mask).contains(&plan.only)) {
            let (name, shape) = (name(mask), [queries / length, length, depth]);
            let mut pass = Pass::new(&stream, shape, mask)?;
            if let Some(launches) = plan.launches {
                (0..launches).try_for_each(|_| pass.queue(&stream))?;
                stream.synchronize()?;
                println!("{}", json!({"benchmark": name, "shape": shape, "launches": launches}));
                continue;
            }
            let checked = pass.check(&stream);
            verdicts.push(checked.is_ok());
            if let Err(error) = checked {
                let error = format!("{error:#}");
                println!("{}", json!({"benchmark": name, "shape": shape, "right": false, "error": error}));
            } else if !plan.check_only {
                let operations = pass.operations();
                let mut queue = || pass.queue(&stream);
                let slice = slices.prepare(&mut queue)?;
                // SAFETY: `pass` has the tensors of the slice, and is borrowed.
                let rounds =
                    (0..plan.products.rounds).map(|_| unsafe { slices.run(&slice, operations, &mut queue) });
                let speeds: Vec<f64> =
                    rounds.map(|round| Ok(round?.tflops)).collect::<anyhow::Result<_>>()?;
                let Spread { median, width } = Spread::of(&speeds);
                println!("{}", json!({"benchmark": name, "shape": shape, "tflops": median, "spread": width}));
            }
        }
    }
    Ok(verdicts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_gradient_is_right_on_the_simulator() {
        let plan = Plan { check_only: true, ..Plan::default() };
        assert_eq!(check_short(&Device::simulator(), &plan).unwrap(), [true; 4]);
    }

    #[test]
    fn a_row_that_is_wrong_is_found() {
        let of = |factor| vec![(factor, [bf16::from_f32(1.0); 2])];
        let host = Host {
            depth: 2,
            scale: 1.0,
            q: vec![],
            k: vec![],
            v: vec![],
            o: vec![],
            d_o: vec![],
            lse: vec![],
        };
        let judge = |found: f32| {
            let terms = of(0.5);
            let terms = terms.iter().map(|(factor, row)| (*factor, &row[..]));
            check(&host, terms, &[bf16::from_f32(0.5), bf16::from_f32(found)]).is_ok()
        };
        assert!(judge(0.5) && judge(0.51) && !judge(0.53) && !judge(f32::NAN));
    }
}
