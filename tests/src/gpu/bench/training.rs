//! The kernels of training, as contestants of [`model`](super::model).

use tma_kernels::model::{
    CrossEntropyOptions, ModelError, count_labels, cross_entropy, cross_entropy_gradient,
    cross_entropy_in_place,
};
use tma_kernels::optimizer::{
    AdamW, AdamWOptions, Parameter, ParameterLayout, StepOptions, Weights, sum_squares,
};
use tma_runtime::prelude::*;

use super::model::{Contestant, Prepared, judged, reported};
use crate::random::{hash, noise_of};

/// The elements of a matrix, and how many there are.
const MATRIX: usize = 4096 * 4096;
const MATRICES: usize = 8;

/// Logits of vocabularies, for clusters of several sizes, and of one whose rows begin anywhere.
const LOGITS: [usize; 2] = [2048, 131_072];
const LONG_LOGITS: [usize; 2] = [2048, 151_936];
const SHORT_LOGITS: [usize; 2] = [8192, 32_000];
const ODD_LOGITS: [usize; 2] = [4096, 50_257];

/// Norms and optimisers, losses and gradients.
pub const CONTESTANTS: [Contestant; 9] = [
    judged("sum_squares", squares),
    judged("adamw", |device| updated(device, false)),
    reported("adamw::step", |device| updated(device, true)),
    judged("cross_entropy", |device| losses(device, LOGITS)),
    judged("cross_entropy::gradient", gradient),
    judged("cross_entropy::in_place", |device| in_place(device, LOGITS)),
    reported("cross_entropy::long", |device| in_place(device, LONG_LOGITS)),
    reported("cross_entropy::short", |device| in_place(device, SHORT_LOGITS)),
    reported("cross_entropy::odd", |device| in_place(device, ODD_LOGITS)),
];

fn numbers(device: &Device, len: usize) -> Result<DeviceTensor<bf16, 1>, Error> {
    let number = |i| bf16::from_f32((hash(96, i) % 1021) as f32 / 128.0 - 4.0);
    device.tensor(&noise_of(len, number), [len])
}

/// Returns the layout of some matrices, each with a bias.
fn layout(device: &Device) -> Result<ParameterLayout, ModelError> {
    let matrix = Parameter { weight_decay: 0.1, ..Parameter::new(MATRIX) };
    let all: Vec<_> = (0..MATRICES).flat_map(|_| [matrix, Parameter::new(4096)]).collect();
    ParameterLayout::new(device, &all)
}

fn squares(device: &Device) -> anyhow::Result<Prepared> {
    let layout = layout(device)?;
    let (gradients, mut sums) = (numbers(device, layout.len())?, device.zeros([layout.sums()])?);
    let bytes = gradients.bytes();
    let launch = move |stream: &Stream| sum_squares(stream, &layout, &gradients, &mut sums);
    Ok(Prepared { bytes, launch: Box::new(launch) })
}

fn updated(device: &Device, is_whole_step: bool) -> anyhow::Result<Prepared> {
    let layout = layout(device)?;
    let len = layout.len();
    let (mut parameters, gradients) = (numbers(device, len)?, numbers(device, len)?);
    let mut moments = [device.zeros::<f32, 1>([len])?, device.zeros([len])?, device.zeros([len])?];
    let mut sums = device.zeros([layout.sums()])?;
    let mut optimizer = AdamW::new(device, AdamWOptions::default(), 1e-4)?;
    optimizer.begin_step(device, StepOptions::default())?;
    let of_update = parameters.bytes() + gradients.bytes() + 6 * moments[0].bytes();
    let bytes = if is_whole_step { of_update + gradients.bytes() } else { of_update };
    let launch = move |stream: &Stream| {
        if is_whole_step {
            sum_squares(stream, &layout, &gradients, &mut sums)?;
            let options = StepOptions { squares: Some(sums.view()), max_norm: 1.0, ..StepOptions::default() };
            optimizer.begin_step(stream, options)?;
        }
        let [masters, firsts, seconds] = moments.each_mut().map(|moment| moment.view_mut());
        let weights = Weights { parameters: parameters.view_mut(), masters: Some(masters), firsts, seconds };
        optimizer.update(stream, &layout, weights, &gradients)
    };
    Ok(Prepared { bytes, launch: Box::new(launch) })
}

fn logits(device: &Device, shape: [usize; 2]) -> Result<DeviceTensor<bf16, 2>, Error> {
    let number = |i| bf16::from_f32((hash(97, i) % 1021) as f32 / 64.0 - 8.0);
    device.tensor(&noise_of(shape[0] * shape[1], number), shape)
}

fn labels(device: &Device, [rows, columns]: [usize; 2]) -> Result<DeviceTensor<u32, 1>, Error> {
    device.tensor(&noise_of(rows, |i| (hash(98, i) % columns as u64) as u32), [rows])
}

fn losses(device: &Device, shape: [usize; 2]) -> anyhow::Result<Prepared> {
    let (x, labels, mut losses) = (logits(device, shape)?, labels(device, shape)?, device.zeros([shape[0]])?);
    let bytes = x.bytes();
    let launch = move |stream: &Stream| cross_entropy(stream, &x, &labels, &mut losses, Default::default());
    Ok(Prepared { bytes, launch: Box::new(launch) })
}

fn gradient(device: &Device) -> anyhow::Result<Prepared> {
    let (x, labels) = (logits(device, LOGITS)?, labels(device, LOGITS)?);
    let (mut losses, mut gradients) = (device.zeros([LOGITS[0]])?, device.zeros::<bf16, 2>(LOGITS)?);
    let mut count = device.zeros([1])?;
    count_labels(device, &labels, u32::MAX, &mut count)?;
    let bytes = 2 * x.bytes();
    let launch = move |stream: &Stream| {
        let options = CrossEntropyOptions { count: Some(count.view()), ..Default::default() };
        cross_entropy_gradient(stream, &x, &labels, &mut losses, &mut gradients, options)
    };
    Ok(Prepared { bytes, launch: Box::new(launch) })
}

/// The gradients of a launch are the logits of the next one.
fn in_place(device: &Device, shape: [usize; 2]) -> anyhow::Result<Prepared> {
    let (mut x, labels, mut losses) =
        (logits(device, shape)?, labels(device, shape)?, device.zeros([shape[0]])?);
    let bytes = 2 * x.bytes();
    let launch = move |stream: &Stream| {
        cross_entropy_in_place(stream, &mut x, &labels, &mut losses, Default::default())
    };
    Ok(Prepared { bytes, launch: Box::new(launch) })
}
