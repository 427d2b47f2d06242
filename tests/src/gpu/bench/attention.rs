//! The forward pass of attention, by the kernels of this repository. The rivals are not libraries
//! that can be loaded: `tests/rivals` starts them, and requests [slices in
//! alternation](super::serve) from this program.
//!
//! Besides masks there are windows, soft caps and sinks, and heads of other depths than those of the
//! compiled kernels. Queries, keys and values are `bf16`, normally distributed. There are 16 × 16384 queries in
//! total, in one sequence or in several.

use std::ops::Range;

use anyhow::ensure;
use serde_json::json;
use tma_kernels::{AttentionOptions, attention};
use tma_runtime::prelude::*;

use super::measure::{Plan, Spread};
use super::products::problem::normal;
use super::slices::{Instruments, Measured, Slices};
use crate::examples::attention::forward;
use crate::random::{hash, noise_of};

/// The number of queries of all heads and sequences.
const QUERIES: usize = 16 * 16384;
/// The lengths of a sequence, which has equally many queries and keys.
const LENGTHS: [usize; 6] = [512, 1024, 2048, 4096, 8192, 16384];
/// The number of elements of a head.
const DEPTHS: [usize; 6] = [64, 80, 96, 128, 192, 256];
/// The limit of scores, whose standard deviation is 1.
const SOFT_CAP: f32 = 2.0;
/// The number of rows of the result that the host computes.
const ROWS: usize = 24;
/// The largest absolute error of an element. Elements are about 1/√keys, and rounded to `bf16`.
const TOLERANCE: f64 = 1e-2;

/// The mask of the scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mask {
    /// Queries see all keys.
    Full,
    /// Queries see the keys up to their own position.
    Causal,
}

impl Mask {
    /// Returns the name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Causal => "causal",
        }
    }
}

/// A form of attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Attention with a mask.
    Masked(Mask),
    /// With a causal mask that also hides keys which are far away.
    Window,
    /// With a causal mask and capped scores.
    SoftCap,
    /// With a causal mask and a sink per head.
    Sinks,
}

impl Form {
    /// Returns the name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Masked(mask) => mask.name(),
            Self::Window => "window",
            Self::SoftCap => "soft_cap",
            Self::Sinks => "sinks",
        }
    }

    /// Returns which of the keys query `i` sees.
    fn seen(self, i: usize, keys: usize) -> Range<usize> {
        match self {
            Self::Masked(Mask::Full) => 0..keys,
            Self::Masked(Mask::Causal) | Self::SoftCap | Self::Sinks => 0..i + 1,
            Self::Window => i.saturating_sub(window(keys))..i + 1,
        }
    }

    /// Returns the limit of scores.
    fn soft_cap(self) -> Option<f32> {
        match self {
            Self::SoftCap => Some(SOFT_CAP),
            Self::Masked(_) | Self::Window | Self::Sinks => None,
        }
    }
}

/// Returns how many keys before its own position a query sees through a window.
const fn window(keys: usize) -> usize {
    keys / 4
}

/// A kernel of attention in one form.
pub struct Contestant {
    /// The name in results.
    pub name: &'static str,
    /// The form that the kernel computes.
    pub form: Form,
    /// The numbers of elements that its heads may have.
    pub depths: &'static [usize],
    /// Queues the kernel.
    queue: fn(&Stream, &mut Heads, Form) -> anyhow::Result<()>,
}

/// All kernels. To add one, add a line for each of its forms.
#[rustfmt::skip]
pub const CONTESTANTS: [Contestant; 7] = [
    Contestant { name: "example", form: Form::Masked(Mask::Full), depths: &[128], queue: example::<false> },
    Contestant { name: "example", form: Form::Masked(Mask::Causal), depths: &[128], queue: example::<true> },
    Contestant { name: "tma_kernels", form: Form::Masked(Mask::Full), depths: &DEPTHS, queue: library },
    Contestant { name: "tma_kernels", form: Form::Masked(Mask::Causal), depths: &DEPTHS, queue: library },
    Contestant { name: "tma_kernels", form: Form::Window, depths: &[64, 128, 256], queue: library },
    Contestant { name: "tma_kernels", form: Form::SoftCap, depths: &[64, 128, 256], queue: library },
    Contestant { name: "tma_kernels", form: Form::Sinks, depths: &[64, 128, 256], queue: library },
];

fn library(stream: &Stream, heads: &mut Heads, form: Form) -> anyhow::Result<()> {
    let Heads { q, k, v, o, sinks } = heads;
    let [heads, length, depth] = q.shape();
    let (shape, head) = ([1, heads, length, depth], length * depth);
    let strides = [heads * head, head, depth, 1];
    let [q, k, v] = [&*q, &*k, &*v].map(|tensor| tensor.view().with_strides(shape, strides));
    let options = AttentionOptions {
        causal: form != Form::Masked(Mask::Full),
        window: (form == Form::Window).then_some(window(length)),
        soft_cap: form.soft_cap(),
        sinks: (form == Form::Sinks).then_some(sinks.view()),
        ..AttentionOptions::default()
    };
    Ok(attention(stream, q?, k?, v?, o.view_mut().with_strides(shape, strides)?, options)?)
}

fn example<const CAUSAL: bool>(stream: &Stream, heads: &mut Heads, _form: Form) -> anyhow::Result<()>
where
    forward::attention::Instance<bf16, CAUSAL>: forward::attention::Compiled,
{
    let Heads { q, k, v, o, .. } = heads;
    let [heads, queries, depth] = q.shape();
    let grid = Grid::new(u32::try_from(queries.div_ceil(128))?, u32::try_from(heads)?, 1);
    let (keys, scale) = (u32::try_from(k.shape()[1])?, std::f32::consts::LOG2_E / (depth as f32).sqrt());
    Ok(forward::attention::launch::<bf16, CAUSAL>(stream, grid, &*q, &*k, &*v, o, keys, 0, scale)?)
}

/// Returns `attention/FORM/KERNEL`, as in results.
pub fn name(contestant: &Contestant) -> String {
    format!("attention/{}/{}", contestant.form.name(), contestant.name)
}

/// Queries, keys, values and the result, each of heads of all sequences × length × depth, and a sink
/// per head.
pub struct Heads {
    q: DeviceTensor<bf16, 3>,
    k: DeviceTensor<bf16, 3>,
    v: DeviceTensor<bf16, 3>,
    o: DeviceTensor<bf16, 3>,
    sinks: DeviceTensor<f32, 1>,
}

impl Heads {
    /// Allocates and fills the tensors.
    ///
    /// # Errors
    ///
    /// Errors of the device.
    pub fn new(device: &Device, shape: [usize; 3]) -> Result<Self, Error> {
        let tensor = |seed| device.tensor(&numbers(seed, shape.iter().product()), shape);
        let (q, k, v) = (tensor(Q)?, tensor(K)?, tensor(V)?);
        let sinks = device.tensor(&sinks(shape[0]), [shape[0]])?;
        Ok(Self { q, k, v, o: device.filled_bytes(shape, 0xff)?, sinks })
    }

    /// Returns the number of operations: 4 for each element of each pair of a query and a key it
    /// sees.
    pub fn operations(&self, form: Form) -> f64 {
        let [heads, length, depth] = self.q.shape();
        let pairs: usize = (0..length).map(|i| form.seen(i, length).len()).sum();
        4.0 * (heads * pairs * depth) as f64
    }

    /// Runs the kernel once, into poisoned memory, and compares some rows with those that the host
    /// computes.
    ///
    /// # Errors
    ///
    /// Errors of the launch, and a row that is wrong.
    pub fn check(&mut self, contestant: &Contestant, stream: &Stream) -> anyhow::Result<()> {
        let [heads, length, depth] = self.q.shape();
        let takes = contestant.depths;
        ensure!(takes.contains(&depth), "heads have {depth} elements, and the kernel takes {takes:?}");
        self.o.fill_bytes(0xff)?;
        self.o.device().synchronize()?; // the copy is not ordered with the stream
        self.queue(contestant, stream)?;
        stream.synchronize()?;
        let found = self.o.to_vec()?;
        let [q, k, v] = [Q, K, V].map(|seed| numbers(seed, heads * length * depth));
        let sinks = sinks(heads);
        for sample in 0..ROWS as u64 {
            let row = (hash(94, sample) % (heads * length) as u64) as usize;
            let (head, seen) = (row / length, contestant.form.seen(row % length, length));
            let first = head * length + seen.start;
            let [k, v] = [&k, &v].map(|all| &all[first * depth..][..seen.len() * depth]);
            let softmax = Softmax {
                soft_cap: contestant.form.soft_cap().map(f64::from),
                sink: (contestant.form == Form::Sinks).then_some(f64::from(sinks[head])),
            };
            let wanted = reference_of(&q[row * depth..][..depth], k, v, softmax);
            let found = found[row * depth..].iter().zip(&wanted);
            let is_right = found.clone().all(|(found, wanted)| (found.to_f64() - wanted).abs() <= TOLERANCE);
            ensure!(is_right, "row {row} of {heads} × {length} is wrong");
        }
        Ok(())
    }

    /// Queues a kernel.
    ///
    /// # Errors
    ///
    /// Errors of the launch.
    pub fn queue(&mut self, contestant: &Contestant, stream: &Stream) -> anyhow::Result<()> {
        (contestant.queue)(stream, self, contestant.form)
    }
}

/// The seeds of the operands.
const Q: u64 = 95;
const K: u64 = 96;
const V: u64 = 97;
const SINKS: u64 = 98;

/// Returns a sink per head. A row of 1000 keys has a logarithm of its sum of about 7.
fn sinks(heads: usize) -> Vec<f32> {
    noise_of(heads, |i| 7.0 + normal(SINKS, i) as f32)
}

fn numbers(seed: u64, len: usize) -> Vec<bf16> {
    noise_of(len, |i| bf16::from_f64(normal(seed, i)))
}

/// Computes a row of the result in `f64`.
pub(super) fn reference(query: &[bf16], keys: &[bf16], values: &[bf16]) -> Vec<f64> {
    reference_of(query, keys, values, Softmax { soft_cap: None, sink: None })
}

/// Options of a softmax.
#[derive(Clone, Copy)]
struct Softmax {
    /// The limit of scores.
    soft_cap: Option<f64>,
    /// A score without a value.
    sink: Option<f64>,
}

/// Computes a row of the result in `f64`, with options.
fn reference_of(query: &[bf16], keys: &[bf16], values: &[bf16], softmax: Softmax) -> Vec<f64> {
    let capped = |score: f64| softmax.soft_cap.map_or(score, |cap| cap * (score / cap).tanh());
    let sink = softmax.sink.unwrap_or(f64::NEG_INFINITY);
    let dot = |key: &[bf16]| query.iter().zip(key).map(|(a, b)| a.to_f64() * b.to_f64()).sum::<f64>();
    let scores: Vec<f64> =
        keys.chunks(query.len()).map(|key| capped(dot(key) / (query.len() as f64).sqrt())).collect();
    let top = scores.iter().copied().fold(sink, f64::max);
    let weights: Vec<f64> = scores.iter().map(|score| (score - top).exp()).collect();
    let total = weights.iter().sum::<f64>() + (sink - top).exp();
    let weighted = |column: usize| {
        let values = values.chunks(query.len()).map(|value: &[bf16]| value[column].to_f64());
        values.zip(&weights).map(|(value, weight)| value * weight).sum::<f64>() / total
    };
    (0..query.len()).map(weighted).collect()
}

/// Returns the names of the contestants: form and kernel.
pub fn names() -> Vec<String> {
    let names = CONTESTANTS.iter().map(name);
    names.map(|name| name.trim_start_matches("attention/").to_owned()).collect()
}

/// Checks each kernel at each depth and length, and measures it. Returns a verdict for each check.
///
/// # Errors
///
/// Errors of the device.
pub fn run(device: &Device, plan: &Plan) -> anyhow::Result<Vec<bool>> {
    run_at(device, plan, QUERIES, &LENGTHS)
}

/// Checks each kernel at a short length.
///
/// # Errors
///
/// Errors of the device.
pub fn check(device: &Device, plan: &Plan) -> anyhow::Result<Vec<bool>> {
    run_at(device, plan, 512, &[256])
}

fn run_at(device: &Device, plan: &Plan, queries: usize, lengths: &[usize]) -> anyhow::Result<Vec<bool>> {
    let (stream, instruments) = (device.stream()?, Instruments::load(device)?);
    let slices = Slices { stream: &stream, instruments: &instruments, slice_ms: plan.products.slice_ms };
    let mut verdicts = vec![];
    for (depth, &length) in DEPTHS.into_iter().flat_map(|depth| lengths.iter().map(move |at| (depth, at))) {
        let shape = [queries / length, length, depth];
        let meant =
            |kernel: &&Contestant| kernel.depths.contains(&depth) && name(kernel).contains(&plan.only);
        let mut contestants = CONTESTANTS.iter().filter(meant).peekable();
        if contestants.peek().is_none() {
            continue;
        }
        let mut tensors = Heads::new(device, shape)?;
        for contestant in contestants {
            let name = name(contestant);
            if let Some(launches) = plan.launches {
                (0..launches).try_for_each(|_| tensors.queue(contestant, &stream))?;
                stream.synchronize()?;
                println!("{}", json!({"benchmark": name, "shape": shape, "launches": launches}));
                continue;
            }
            let checked = tensors.check(contestant, &stream);
            verdicts.push(checked.is_ok());
            if let Err(error) = checked {
                let error = format!("{error:#}");
                println!("{}", json!({"benchmark": name, "shape": shape, "right": false, "error": error}));
            } else if !plan.check_only {
                let measured = rounds(&slices, plan.products.rounds, &mut tensors, contestant)?;
                let speeds: Vec<f64> = measured.iter().map(|round| round.tflops).collect();
                let Spread { median, width } = Spread::of(&speeds);
                println!("{}", json!({"benchmark": name, "shape": shape, "tflops": median, "spread": width}));
            }
        }
    }
    Ok(verdicts)
}

fn rounds(
    slices: &Slices<'_>,
    rounds: usize,
    heads: &mut Heads,
    contestant: &Contestant,
) -> anyhow::Result<Vec<Measured>> {
    let operations = heads.operations(contestant.form);
    let mut queue = || heads.queue(contestant, slices.stream);
    let slice = slices.prepare(&mut queue)?;
    // SAFETY: `heads` are the tensors of the slice, and are borrowed.
    (0..rounds).map(|_| unsafe { slices.run(&slice, operations, &mut queue) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_is_right_on_the_simulator() {
        let plan = Plan { check_only: true, ..Plan::default() };
        assert_eq!(check(&Device::simulator(), &plan).unwrap(), [true; 23]);
    }

    #[test]
    fn a_mask_halves_the_work() {
        let heads = Heads::new(&Device::simulator(), [1, 128, 64]).unwrap();
        assert_eq!(heads.operations(Form::Masked(Mask::Full)), 4.0 * 64.0 * 128.0 * 128.0);
        assert_eq!(heads.operations(Form::Masked(Mask::Causal)), 4.0 * 64.0 * (128.0 * 129.0 / 2.0));
    }
}
