//! The gradients of attention. As for [the forward pass](super::attention), rivals run in other
//! processes.
//!
//! Besides masks there are sums in a fixed order, windows, soft caps, packed sequences, and heads of
//! another depth than those of the compiled kernels. All operands are `bf16`, normally distributed.
//! There are 16 × 16384 queries in total, in one sequence or in several.

use std::ops::Range;

use anyhow::{Context, ensure};
use serde_json::json;
use tma_kernels::attention::{
    AttentionBackwardOptions, AttentionForward, AttentionGradients, AttentionWorkspace, attention_backward,
};
use tma_kernels::{AttentionOptions, Lengths, attention};
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
const DEPTHS: [usize; 3] = [64, 96, 128];
/// The limit of scores, whose standard deviation is 1.
const SOFT_CAP: f32 = 2.0;
/// The number of rows of each gradient that the host computes.
const ROWS: usize = 12;
/// The tolerated error of an element, relative to the square root of the sum of squares of what is
/// added up: four roundings of each to `bf16`, and the element's own.
const TOLERANCE: f64 = 1.0 / 64.0;

/// A form of the gradients, each of which is a contestant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Gradients with a mask.
    Masked(Mask),
    /// With sums in a fixed order.
    Fixed(Mask),
    /// With a causal mask that also hides keys which are far away.
    Window,
    /// With a causal mask and capped scores.
    SoftCap,
    /// With a causal mask, for three sequences that share the length.
    Packed,
}

/// All forms.
pub const FORMS: [Form; 7] = [
    Form::Masked(Mask::Full),
    Form::Masked(Mask::Causal),
    Form::Fixed(Mask::Full),
    Form::Fixed(Mask::Causal),
    Form::Window,
    Form::SoftCap,
    Form::Packed,
];

impl Form {
    /// Returns the name in results.
    const fn name(self) -> &'static str {
        match self {
            Self::Masked(mask) => mask.name(),
            Self::Fixed(Mask::Full) => "full_fixed",
            Self::Fixed(Mask::Causal) => "causal_fixed",
            Self::Window => "window",
            Self::SoftCap => "soft_cap",
            Self::Packed => "packed",
        }
    }

    /// Returns which of the keys query `i` sees, of as many queries.
    fn seen(self, i: usize, length: usize) -> Range<usize> {
        match self {
            Self::Masked(Mask::Full) | Self::Fixed(Mask::Full) => 0..length,
            Self::Masked(Mask::Causal) | Self::Fixed(Mask::Causal) | Self::SoftCap => 0..i + 1,
            Self::Window => i.saturating_sub(window(length))..i + 1,
            Self::Packed => starts(length).into_iter().rfind(|&start| start <= i).unwrap_or(0)..i + 1,
        }
    }

    fn is_causal(self) -> bool {
        !matches!(self, Self::Masked(Mask::Full) | Self::Fixed(Mask::Full))
    }

    fn window(self, length: usize) -> Option<usize> {
        (self == Self::Window).then_some(window(length))
    }

    fn soft_cap(self) -> Option<f32> {
        (self == Self::SoftCap).then_some(SOFT_CAP)
    }
}

/// Returns how many keys before its own position a query sees through a window.
const fn window(length: usize) -> usize {
    length / 4
}

/// Returns the starts of packed sequences, and the end of the last one.
const fn starts(length: usize) -> [usize; 4] {
    [0, length / 5, length / 2, length]
}

/// Returns `attention_backward/FORM/tma_kernels`, as in results.
fn name(form: Form) -> String {
    format!("attention_backward/{}/tma_kernels", form.name())
}

/// Returns the form of a contestant.
///
/// # Errors
///
/// An unknown name.
pub fn find(wanted: &str) -> anyhow::Result<Form> {
    FORMS.into_iter().find(|&form| name(form) == wanted).with_context(|| format!("there is no `{wanted}`"))
}

/// The operands of a backward pass, of 1 × heads of all sequences × length × depth, and its
/// results.
pub struct Pass {
    form: Form,
    /// The starts of packed sequences.
    starts: DeviceTensor<u32, 1>,
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
    pub fn new(stream: &Stream, shape: [usize; 3], form: Form) -> anyhow::Result<Self> {
        let (device, [heads, length, depth]) = (stream.device(), shape);
        let shape = [1, heads, length, depth];
        let tensor = |seed| device.tensor(&numbers(seed, shape.iter().product()), shape);
        let mut pass = Self {
            form,
            starts: device.tensor(&starts(length).map(|start| start as u32), [4])?,
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
        let lengths = lengths(form, &pass.starts, length);
        let options = AttentionOptions {
            causal: form.is_causal(),
            window: form.window(length),
            soft_cap: form.soft_cap(),
            lengths,
            lse: Some(pass.lse.view_mut()),
            ..Default::default()
        };
        attention(stream, &pass.q, &pass.k, &pass.v, &mut pass.o, options)?;
        pass.queue(stream)?; // allocates
        stream.synchronize()?;
        Ok(pass)
    }

    /// Returns the number of operations: 10 for each element of each pair of a query and a key that
    /// it sees, for five products.
    pub fn operations(&self) -> f64 {
        let [_, heads, length, depth] = self.q.shape();
        let pairs: usize = (0..length).map(|i| self.form.seen(i, length).len()).sum();
        10.0 * (heads * pairs * depth) as f64
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
        let length = self.q.shape()[2];
        let options = AttentionBackwardOptions {
            causal: self.form.is_causal(),
            window: self.form.window(length),
            soft_cap: self.form.soft_cap(),
            lengths: lengths(self.form, &self.starts, length),
            deterministic: matches!(self.form, Form::Fixed(_)),
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
            soft_cap: self.form.soft_cap().map(f64::from),
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
            let seen = self.form.seen(at, length);
            let keys = (first + seen.start..first + seen.end).map(|key| {
                let pair = host.pair(row, key);
                (pair.of_score * host.scale, host.row(&host.k, key))
            });
            check(&host, keys, &dq[row * depth..][..depth]).with_context(|| format!("dq, row {row}"))?;
            let sees = |query: &usize| self.form.seen(query - first, length).contains(&at);
            let queries = || (first..first + length).filter(sees);
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
    soft_cap: Option<f64>,
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
        let (limited, slope) = match self.soft_cap {
            Some(cap) => (cap * (score / cap).tanh(), 1.0 - (score / cap).tanh().powi(2)),
            None => (score, 1.0),
        };
        let weight = (limited - f64::from(self.lse[query])).exp();
        let delta = Self::dot(self.row(&self.o, query), d_o);
        Pair { weight, of_score: weight * slope * (Self::dot(self.row(&self.v, key), d_o) - delta) }
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

/// Returns the lengths of packed sequences, which have as many queries as keys.
fn lengths(form: Form, starts: &DeviceTensor<u32, 1>, length: usize) -> Option<Lengths<'_>> {
    (form == Form::Packed).then(|| Lengths {
        queries: starts.view(),
        keys: starts.view(),
        longest: length,
        longest_keys: length,
    })
}

/// Returns the names of the contestants: form and kernel.
pub fn names() -> Vec<String> {
    FORMS.map(|form| name(form).trim_start_matches("attention_backward/").to_owned()).to_vec()
}

/// Checks each form at each depth and length, and measures it. Returns a verdict for each check.
///
/// # Errors
///
/// Errors of the device.
pub fn run(device: &Device, plan: &Plan) -> anyhow::Result<Vec<bool>> {
    run_at(device, plan, QUERIES, &LENGTHS)
}

/// Checks each form at short lengths.
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
        for form in FORMS.into_iter().filter(|&form| name(form).contains(&plan.only)) {
            let (name, shape) = (name(form), [queries / length, length, depth]);
            let mut pass = Pass::new(&stream, shape, form)?;
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
        assert_eq!(check_short(&Device::simulator(), &plan).unwrap(), [true; 21]);
    }

    #[test]
    fn a_row_that_is_wrong_is_found() {
        let of = |factor| vec![(factor, [bf16::from_f32(1.0); 2])];
        let host = Host {
            depth: 2,
            scale: 1.0,
            soft_cap: None,
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
