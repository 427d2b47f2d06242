//! The gradients of `tma_kernels::model`, as contestants of [`model`](super::model).

use std::collections::BTreeSet;

use tma_kernels::cached::RotaryLayout;
use tma_kernels::model::{
    BiasBackwardOptions, EmbeddingBackwardOptions, Gate, GradientWorkspace, NormBackwardOptions,
    RotaryAngles, RotaryScaling, SoftmaxOptions, activate_backward, bias_backward, embedding_backward,
    gated_packed_backward, layer_norm_backward, rms_norm_backward, rotary_backward, rotary_tables,
    softmax_backward,
};
use tma_runtime::prelude::*;

use super::model::{Contestant, HEADS, HIDDEN, LONG, Prepared, VOCABULARY, judged, numbers, reported};
use crate::random::{hash, noise_of};

/// The kernels. The gradient of a table has no target: a table's rows are read and written in the
/// order of tokens.
pub(super) const CONTESTANTS: [Contestant; 13] = [
    judged("rms_norm_backward", |device| norm(device, HIDDEN, Norm::default())),
    judged("rms_norm_backward::residual", |device| {
        norm(device, HIDDEN, Norm { accumulate: true, ..Norm::default() })
    }),
    judged("rms_norm_backward::heads", |device| norm(device, HEADS, Norm::default())),
    judged("rms_norm_backward::8192", |device| norm(device, [8192, 8192], Norm::default())),
    reported("rms_norm_backward::long", |device| norm(device, LONG, Norm::default())),
    judged("layer_norm_backward", |device| norm(device, HIDDEN, Norm { centred: true, ..Norm::default() })),
    judged("gated_packed_backward::silu", |device| gate(device, Gate::Silu)),
    judged("gated_packed_backward::gelu", |device| gate(device, Gate::Gelu)),
    judged("activate_backward::gelu", activation),
    judged("rotary_backward", rotated),
    reported("embedding_backward", table),
    judged("softmax_backward", probabilities),
    judged("bias_backward", bias),
];

/// A norm. One that is centred has biases.
#[derive(Clone, Copy, Default)]
struct Norm {
    centred: bool,
    accumulate: bool,
}

fn norm(device: &Device, shape: [usize; 2], norm: Norm) -> anyhow::Result<Prepared> {
    let (x, dy) = (numbers(device, shape)?, numbers(device, shape)?);
    let weight = device.tensor(&vec![bf16::ONE; shape[1]], [shape[1]])?;
    let mut dx = device.zeros::<bf16, 2>(shape)?;
    let (mut dweight, mut dbias) = (device.zeros::<f32, 1>([shape[1]])?, device.zeros::<f32, 1>([shape[1]])?);
    let mut workspace = GradientWorkspace::for_norm(device, shape)?;
    let bytes = x.bytes() * if norm.accumulate { 4 } else { 3 };
    let launch = move |stream: &Stream| {
        let options = NormBackwardOptions {
            weight: Some(weight.view()),
            accumulate: norm.accumulate,
            dweight: Some(dweight.view_mut()),
            dbias: norm.centred.then(|| dbias.view_mut()),
            workspace: Some(&mut workspace),
            ..Default::default()
        };
        match norm.centred {
            true => layer_norm_backward(stream, &x, &dy, &mut dx, options),
            false => rms_norm_backward(stream, &x, &dy, &mut dx, options),
        }
    };
    Ok(Prepared { bytes, launch: Box::new(launch) })
}

fn gate(device: &Device, activation: Gate) -> anyhow::Result<Prepared> {
    let [rows, columns] = [8192, 14336];
    let (x, dy) = (numbers(device, [rows, 2 * columns])?, numbers(device, [rows, columns])?);
    let mut dx = device.zeros::<bf16, 2>([rows, 2 * columns])?;
    let bytes = x.bytes() + dy.bytes() + dx.bytes();
    let launch = move |stream: &Stream| gated_packed_backward(stream, activation, &x, &dy, &mut dx);
    Ok(Prepared { bytes, launch: Box::new(launch) })
}

fn activation(device: &Device) -> anyhow::Result<Prepared> {
    let shape = [8192, 14336];
    let (x, dy) = (numbers(device, shape)?, numbers(device, shape)?);
    let mut dx = device.zeros::<bf16, 2>(shape)?;
    let bytes = x.bytes() + dy.bytes() + dx.bytes();
    let launch = move |stream: &Stream| activate_backward(stream, Gate::Gelu, &x, &dy, &mut dx);
    Ok(Prepared { bytes, launch: Box::new(launch) })
}

fn rotated(device: &Device) -> anyhow::Result<Prepared> {
    let [tokens, depth] = [HIDDEN[0], HEADS[1]];
    let shape = [tokens, HIDDEN[1] / depth, depth];
    let dy = device.filled_bytes::<bf16, 3>(shape, 0x3f)?;
    let mut dx = device.zeros::<bf16, 3>(shape)?;
    let positions = device.tensor(&Vec::from_iter(0..tokens as u32), [tokens])?;
    let (cos, sin) = rotary_tables(0..tokens as u32, depth, 500_000.0, RotaryScaling::None);
    let (cos, sin) = (device.tensor(&cos, [tokens, depth / 2])?, device.tensor(&sin, [tokens, depth / 2])?);
    let bytes = dy.bytes() + dx.bytes() + positions.bytes() + cos.bytes() + sin.bytes();
    let launch = move |stream: &Stream| {
        let angles = RotaryAngles { cos: cos.view(), sin: sin.view(), layout: RotaryLayout::Halves };
        rotary_backward(stream, &dy, &positions, &mut dx, angles)
    };
    Ok(Prepared { bytes, launch: Box::new(launch) })
}

/// Every sixteenth token is the same one.
fn table(device: &Device) -> anyhow::Result<Prepared> {
    let token = |i| if i % 16 == 0 { 7 } else { (hash(96, i) % VOCABULARY as u64) as u32 };
    let host = noise_of(HIDDEN[0], token);
    let distinct = host.iter().collect::<BTreeSet<_>>().len();
    let (dy, tokens) = (numbers(device, HIDDEN)?, device.tensor(&host, [HIDDEN[0]])?);
    let mut dtable = device.zeros::<f32, 2>([VOCABULARY, HIDDEN[1]])?;
    let mut workspace = GradientWorkspace::for_embedding(device, HIDDEN)?;
    // Rows of the table are read and written.
    let bytes = dy.bytes() + (2 * distinct * HIDDEN[1] * size_of::<f32>()) as u64;
    let launch = move |stream: &Stream| {
        let options = EmbeddingBackwardOptions { scale: 1.0, workspace: Some(&mut workspace) };
        embedding_backward(stream, &dy, &tokens, &mut dtable, options)
    };
    Ok(Prepared { bytes, launch: Box::new(launch) })
}

fn probabilities(device: &Device) -> anyhow::Result<Prepared> {
    let (y, dy) = (numbers(device, HIDDEN)?, numbers(device, HIDDEN)?);
    let mut dx = device.zeros::<bf16, 2>(HIDDEN)?;
    let bytes = y.bytes() + dy.bytes() + dx.bytes();
    let launch = move |stream: &Stream| softmax_backward(stream, &y, &dy, &mut dx, SoftmaxOptions::default());
    Ok(Prepared { bytes, launch: Box::new(launch) })
}

/// The copy beside it writes as many bytes as it reads; this only reads.
fn bias(device: &Device) -> anyhow::Result<Prepared> {
    let dy = numbers(device, HIDDEN)?;
    let mut dbias = device.zeros::<f32, 1>([HIDDEN[1]])?;
    let mut workspace = GradientWorkspace::for_bias(device, HIDDEN[1])?;
    let bytes = dy.bytes() + dbias.bytes();
    let launch = move |stream: &Stream| {
        let options = BiasBackwardOptions { accumulate: false, workspace: Some(&mut workspace) };
        bias_backward(stream, &dy, &mut dbias, options)
    };
    Ok(Prepared { bytes, launch: Box::new(launch) })
}
