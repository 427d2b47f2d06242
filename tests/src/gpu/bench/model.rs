//! The kernels of `tma_kernels::model`, each beside the driver's copy of as many bytes as the
//! kernel reads and writes, in the same rounds.

use anyhow::bail;
use tma_kernels::cached::RotaryLayout;
use tma_kernels::model::{
    Gate, ModelError, NormOptions, RotaryAngles, RotaryScaling, RouteOptions, RouteWorkspace, RoutesMut,
    SampleOptions, ScaleBlocks, ScalesMut, SoftmaxOptions, arg_max, combine, embedding, gated_packed, gather,
    layer_norm, log_probability, quantize, rms_norm, rms_norm_quantized, rotary, rotary_tables, route,
    sample, softmax,
};
use tma_runtime::prelude::*;

use super::gradients;
use super::measure::{Plan, Spread, interleaved, ratio};
use super::training;
use crate::random::{hash, noise_of};

/// The least ratio of a kernel's bandwidth to that of the copy.
const TARGET: f64 = 0.9;

/// The name of the copy in results.
const COPY: &str = "cuMemcpyDtoDAsync";

/// Rows of a hidden state, and of the heads in it.
pub(super) const HIDDEN: [usize; 2] = [16384, 4096];
pub(super) const HEADS: [usize; 2] = [16384 * 32, 128];
pub(super) const LONG: [usize; 2] = [4096, 16384];
/// Logits of a vocabulary.
const LOGITS: [usize; 2] = [512, 131_072];
/// Tokens, experts, and experts of a token, of Qwen3-30B-A3B; and columns of its hidden states.
const TOKENS: usize = 8192;
const EXPERTS: [usize; 2] = [128, 8];
const EXPERT_COLUMNS: usize = 2048;
/// Rows of a table of embeddings.
pub(super) const VOCABULARY: usize = 131_072;

/// Queues a kernel.
pub type Launch = dyn FnMut(&Stream) -> Result<(), ModelError>;

/// A kernel with its tensors.
pub struct Prepared {
    /// The bytes that it reads and writes.
    pub bytes: u64,
    /// Queues it.
    pub launch: Box<Launch>,
}

/// A kernel, and whether it has to reach the target.
pub struct Contestant {
    name: &'static str,
    has_target: bool,
    prepare: fn(&Device) -> anyhow::Result<Prepared>,
}

/// Returns a kernel that has to reach the target.
pub const fn judged(name: &'static str, prepare: fn(&Device) -> anyhow::Result<Prepared>) -> Contestant {
    Contestant { name, has_target: true, prepare }
}

/// Returns a kernel without a target.
pub const fn reported(name: &'static str, prepare: fn(&Device) -> anyhow::Result<Prepared>) -> Contestant {
    Contestant { name, has_target: false, prepare }
}

/// The kernels. Those of `sample` and `route` have no target: arithmetic and latency limit them,
/// not memory.
const CONTESTANTS: [Contestant; 24] = [
    judged("rms_norm", |device| norm(device, HIDDEN, false)),
    judged("rms_norm::residual", residual_norm),
    judged("rms_norm::heads", |device| norm(device, HEADS, false)),
    judged("rms_norm::long", |device| norm(device, LONG, false)),
    judged("layer_norm", |device| norm(device, HIDDEN, true)),
    judged("rms_norm_quantized", quantised_norm),
    judged("gated_packed::silu", |device| gate(device, Gate::Silu)),
    judged("gated_packed::gelu", |device| gate(device, Gate::Gelu)),
    judged("embedding", look_up),
    judged("rotary", rotated),
    judged("quantize::row", |device| quantised(device, ScaleBlocks::Row)),
    judged("quantize::columns128", |device| quantised(device, ScaleBlocks::Columns128)),
    judged("softmax", normalised),
    judged("arg_max", greatest),
    judged("log_probability", probability),
    reported("sample", |device| sampled(device, false)),
    reported("sample::top_k_top_p", |device| sampled(device, true)),
    reported("route::1", |device| routed(device, 1)),
    reported("route::64", |device| routed(device, 64)),
    reported("route::8192", |device| routed(device, TOKENS)),
    reported("gather::64", |device| gathered(device, 64)),
    judged("gather::8192", |device| gathered(device, TOKENS)),
    reported("combine::64", |device| combined(device, 64)),
    judged("combine::8192", |device| combined(device, TOKENS)),
];

/// Returns all contestants.
fn contestants() -> impl Iterator<Item = &'static Contestant> {
    CONTESTANTS.iter().chain(&gradients::CONTESTANTS).chain(&training::CONTESTANTS)
}

/// Returns the names of the contestants.
pub fn names() -> Vec<String> {
    contestants().map(|contestant| contestant.name.to_owned()).collect()
}

pub(super) fn numbers(device: &Device, shape: [usize; 2]) -> Result<DeviceTensor<bf16, 2>, Error> {
    let number = |i| bf16::from_f32((hash(91, i) % 1021) as f32 / 128.0 - 4.0);
    device.tensor(&noise_of(shape[0] * shape[1], number), shape)
}

fn norm(device: &Device, shape: [usize; 2], centred: bool) -> anyhow::Result<Prepared> {
    let (x, weight) = (numbers(device, shape)?, device.zeros::<bf16, 1>([shape[1]])?);
    let mut out = device.zeros::<bf16, 2>(shape)?;
    let bytes = x.bytes() + out.bytes();
    let launch = move |stream: &Stream| {
        let options = NormOptions { weight: Some(weight.view()), ..Default::default() };
        if centred {
            layer_norm(stream, &x, &mut out, options)
        } else {
            rms_norm(stream, &x, &mut out, options)
        }
    };
    Ok(Prepared { bytes, launch: Box::new(launch) })
}

fn residual_norm(device: &Device) -> anyhow::Result<Prepared> {
    let (x, weight) = (numbers(device, HIDDEN)?, device.zeros::<bf16, 1>([HIDDEN[1]])?);
    let (mut residual, mut out) = (device.zeros::<bf16, 2>(HIDDEN)?, device.zeros::<bf16, 2>(HIDDEN)?);
    let bytes = 4 * x.bytes(); // the residual is read and written
    let launch = move |stream: &Stream| {
        let residual = Some(residual.view_mut());
        let options = NormOptions { weight: Some(weight.view()), residual, ..Default::default() };
        rms_norm(stream, &x, &mut out, options)
    };
    Ok(Prepared { bytes, launch: Box::new(launch) })
}

fn quantised_norm(device: &Device) -> anyhow::Result<Prepared> {
    let (x, weight) = (numbers(device, HIDDEN)?, device.zeros::<bf16, 1>([HIDDEN[1]])?);
    let (mut out, mut scales) = (device.zeros::<e4m3, 2>(HIDDEN)?, device.zeros::<f32, 2>([HIDDEN[0], 1])?);
    let bytes = x.bytes() + out.bytes() + scales.bytes();
    let launch = move |stream: &Stream| {
        let scales = ScalesMut { blocks: ScaleBlocks::Row, scales: scales.view_mut() };
        let options = NormOptions { weight: Some(weight.view()), ..Default::default() };
        rms_norm_quantized(stream, &x, &mut out, scales, options)
    };
    Ok(Prepared { bytes, launch: Box::new(launch) })
}

fn gate(device: &Device, activation: Gate) -> anyhow::Result<Prepared> {
    let [rows, columns] = [8192, 14336];
    let x = numbers(device, [rows, 2 * columns])?;
    let mut out = device.zeros::<bf16, 2>([rows, columns])?;
    let bytes = x.bytes() + out.bytes();
    let launch = move |stream: &Stream| gated_packed(stream, activation, &x, &mut out);
    Ok(Prepared { bytes, launch: Box::new(launch) })
}

fn look_up(device: &Device) -> anyhow::Result<Prepared> {
    let table = device.zeros::<bf16, 2>([VOCABULARY, HIDDEN[1]])?;
    let tokens = noise_of(HIDDEN[0], |i| (hash(92, i) % VOCABULARY as u64) as u32);
    let tokens = device.tensor(&tokens, [HIDDEN[0]])?;
    let mut out = device.zeros::<bf16, 2>(HIDDEN)?;
    let bytes = 2 * out.bytes();
    let launch = move |stream: &Stream| embedding(stream, &table, &tokens, &mut out, 64.0);
    Ok(Prepared { bytes, launch: Box::new(launch) })
}

fn rotated(device: &Device) -> anyhow::Result<Prepared> {
    let [tokens, depth] = [HIDDEN[0], HEADS[1]];
    let x = numbers(device, HIDDEN)?;
    let mut out = device.zeros::<bf16, 2>(HIDDEN)?;
    let positions = device.tensor(&Vec::from_iter(0..tokens as u32), [tokens])?;
    let (cos, sin) = rotary_tables(0..tokens as u32, depth, 500_000.0, RotaryScaling::None);
    let (cos, sin) = (device.tensor(&cos, [tokens, depth / 2])?, device.tensor(&sin, [tokens, depth / 2])?);
    let bytes = x.bytes() + out.bytes() + positions.bytes() + cos.bytes() + sin.bytes();
    let launch = move |stream: &Stream| {
        let (shape, strides) = ([tokens, HIDDEN[1] / depth, depth], [HIDDEN[1], depth, 1]);
        let angles = RotaryAngles { cos: cos.view(), sin: sin.view(), layout: RotaryLayout::Halves };
        let to = out.view_mut().with_strides(shape, strides)?;
        rotary(stream, x.view().with_strides(shape, strides)?, &positions, to, angles)
    };
    Ok(Prepared { bytes, launch: Box::new(launch) })
}

fn quantised(device: &Device, blocks: ScaleBlocks) -> anyhow::Result<Prepared> {
    let count = if blocks == ScaleBlocks::Row { 1 } else { HIDDEN[1] / 128 };
    let x = numbers(device, HIDDEN)?;
    let (mut out, mut scales) = (device.zeros::<e4m3, 2>(HIDDEN)?, device.zeros([HIDDEN[0], count])?);
    let bytes = x.bytes() + out.bytes() + scales.bytes();
    let launch = move |stream: &Stream| {
        quantize(stream, &x, &mut out, ScalesMut { blocks, scales: scales.view_mut() })
    };
    Ok(Prepared { bytes, launch: Box::new(launch) })
}

fn normalised(device: &Device) -> anyhow::Result<Prepared> {
    let x = numbers(device, HIDDEN)?;
    let mut out = device.zeros::<bf16, 2>(HIDDEN)?;
    let bytes = x.bytes() + out.bytes();
    let launch = move |stream: &Stream| softmax(stream, &x, &mut out, SoftmaxOptions::default());
    Ok(Prepared { bytes, launch: Box::new(launch) })
}

fn logits(device: &Device) -> Result<DeviceTensor<f32, 2>, Error> {
    let number = |i| (hash(93, i) % (1 << 20)) as f32 / 65536.0;
    device.tensor(&noise_of(LOGITS[0] * LOGITS[1], number), LOGITS)
}

fn greatest(device: &Device) -> anyhow::Result<Prepared> {
    let (x, mut out) = (logits(device)?, device.zeros([LOGITS[0]])?);
    let bytes = x.bytes();
    Ok(Prepared { bytes, launch: Box::new(move |stream| arg_max(stream, &x, &mut out)) })
}

fn probability(device: &Device) -> anyhow::Result<Prepared> {
    let (x, tokens, mut out) = (logits(device)?, device.zeros([LOGITS[0]])?, device.zeros([LOGITS[0]])?);
    let bytes = x.bytes();
    Ok(Prepared { bytes, launch: Box::new(move |stream| log_probability(stream, &x, &tokens, &mut out)) })
}

fn sampled(device: &Device, limited: bool) -> anyhow::Result<Prepared> {
    let rows = [LOGITS[0]];
    let (x, mut out) = (logits(device)?, device.zeros(rows)?);
    let seeds = device.tensor(&noise_of(rows[0], |i| hash(94, i)), rows)?;
    let positions = device.zeros(rows)?;
    let (top_k, top_p) =
        (device.tensor(&vec![50; rows[0]], rows)?, device.tensor(&vec![0.9; rows[0]], rows)?);
    let bytes = x.bytes();
    let launch = move |stream: &Stream| {
        let mut options = SampleOptions::new(seeds.view(), positions.view());
        if limited {
            (options.top_k, options.top_p) = (Some(top_k.view()), Some(top_p.view()));
        }
        sample(stream, &x, &mut out, options)
    };
    Ok(Prepared { bytes, launch: Box::new(launch) })
}

fn router_logits(device: &Device, tokens: usize) -> Result<DeviceTensor<f32, 2>, Error> {
    let number = |i| (hash(95, i) % (1 << 20)) as f32 / 131_072.0;
    device.tensor(&noise_of(tokens * EXPERTS[0], number), [tokens, EXPERTS[0]])
}

fn routed(device: &Device, tokens: usize) -> anyhow::Result<Prepared> {
    let ([experts, choices], logits) = (EXPERTS, router_logits(device, tokens)?);
    let shape = [tokens, choices];
    let (mut chosen, mut weights) = (device.zeros(shape)?, device.zeros(shape)?);
    let (mut rows, mut ends) = (device.zeros(shape)?, device.zeros([experts])?);
    let mut workspace = RouteWorkspace::new(device, tokens, experts)?;
    let bytes = logits.bytes() + chosen.bytes() + weights.bytes() + rows.bytes();
    let launch = move |stream: &Stream| {
        let routes = RoutesMut {
            experts: chosen.view_mut(),
            weights: weights.view_mut(),
            rows: rows.view_mut(),
            ends: ends.view_mut(),
        };
        route(stream, &logits, routes, RouteOptions { normalise: true, workspace: Some(&mut workspace) })
    };
    Ok(Prepared { bytes, launch: Box::new(launch) })
}

/// Returns an order of rows like that of experts: the choices of a token are far apart.
fn expert_rows(device: &Device, tokens: usize) -> Result<DeviceTensor<u32, 2>, Error> {
    let choices = EXPERTS[1];
    let row = |i: u64| (i % choices as u64 * tokens as u64 + i / choices as u64) as u32;
    device.tensor(&noise_of(tokens * choices, row), [tokens, choices])
}

fn gathered(device: &Device, tokens: usize) -> anyhow::Result<Prepared> {
    let (x, rows) = (numbers(device, [tokens, EXPERT_COLUMNS])?, expert_rows(device, tokens)?);
    let mut out = device.zeros::<bf16, 2>([tokens * EXPERTS[1], EXPERT_COLUMNS])?;
    let bytes = x.bytes() + rows.bytes() + out.bytes();
    Ok(Prepared { bytes, launch: Box::new(move |stream| gather(stream, &x, &rows, &mut out)) })
}

fn combined(device: &Device, tokens: usize) -> anyhow::Result<Prepared> {
    let (y, rows) = (numbers(device, [tokens * EXPERTS[1], EXPERT_COLUMNS])?, expert_rows(device, tokens)?);
    let weights = device.tensor(&vec![0.125; tokens * EXPERTS[1]], [tokens, EXPERTS[1]])?;
    let mut out = device.zeros::<bf16, 2>([tokens, EXPERT_COLUMNS])?;
    let bytes = y.bytes() + rows.bytes() + weights.bytes() + out.bytes();
    Ok(Prepared { bytes, launch: Box::new(move |stream| combine(stream, &y, &rows, &weights, &mut out)) })
}

/// Measures each kernel of the plan beside the copy. Returns for each with a target whether it
/// reaches it.
///
/// # Errors
///
/// Errors of the device, and of the kernels.
pub fn run(device: &Device, plan: &Plan) -> anyhow::Result<Vec<bool>> {
    let stream = device.stream()?;
    let mut verdicts = vec![];
    for contestant in contestants().filter(|contestant| plan.names("model", contestant.name)) {
        let Prepared { bytes, mut launch } = (contestant.prepare)(device)?;
        // Half of the bytes are read, and half written.
        let half = [bytes as usize / 2];
        let (from, mut to) = (device.zeros::<u8, 1>(half)?, device.zeros::<u8, 1>(half)?);
        let contestants = [(COPY, bytes), (contestant.name, bytes)];
        let mut refused = None;
        let queue = |index: usize, stream: &Stream| match index {
            0 => to.copy_from_device(&from, stream),
            _ => match launch(stream) {
                Ok(()) => Ok(()),
                Err(ModelError::Runtime(error)) => Err(error),
                Err(error) => {
                    refused = Some(error);
                    Ok(())
                }
            },
        };
        let speeds = interleaved(plan, "model", &contestants, &stream, queue)?;
        if let Some(error) = refused {
            bail!("{}: {error}", contestant.name);
        }
        let Some(speeds) = speeds else { continue };
        let (speed, copy) = (Spread::of(&speeds[1]), Spread::of(&speeds[0]));
        let ratio = ratio(&speeds[1], &speeds[0]);
        println!(
            "{{\"benchmark\": \"model/{}\", \"gb_per_s\": {:.1}, \"copy_gb_per_s\": {:.1}, \
             \"ratio_to_copy\": {:.4}, \"spread\": {:.4}}}",
            contestant.name, speed.median, copy.median, ratio.median, ratio.width
        );
        verdicts.extend(contestant.has_target.then_some(ratio.median >= TARGET));
    }
    Ok(verdicts)
}
