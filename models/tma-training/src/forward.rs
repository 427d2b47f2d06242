//! The forward pass: from tokens to losses.

#![allow(clippy::single_range_in_vec_init, reason = "views of one dimension are sliced by one range")]

use std::ops::Range;

use tma_kernels::cached::RotaryLayout;
use tma_kernels::model::{
    CrossEntropyOptions, Gate, LinearGradients, LinearMemory, LinearOperands as LossOperands, RotaryAngles,
    embedding, gated, gated_packed, linear_cross_entropy, mean_loss, rotary_in_place,
};
use tma_kernels::{AttentionOptions, attention};
use tma_models::config::{Activation, Config};
use tma_runtime::launch::LaunchOn;
use tma_runtime::prelude::*;

use crate::TrainingError;
use crate::linear::{Context, LinearOperands, NormOperands, multiply, normalise};
use crate::memory::{Activations, Memory};
use crate::views::{Heads, Qkv, matrix, matrix_mut};

/// Returns the rows of a micro-batch among those of all.
pub(crate) fn rows_of(context: &Context<'_>, micro_batch: usize) -> Range<usize> {
    let rows = context.options.rows();
    micro_batch * rows..(micro_batch + 1) * rows
}

/// Queues the forward pass of a micro-batch, up to the norm before the logits.
pub(crate) fn forward(
    on: &impl LaunchOn,
    context: &Context<'_>,
    memory: &mut Memory,
    micro_batch: usize,
) -> Result<(), TrainingError> {
    embed(on, context, memory, micro_batch)?;
    for layer in 0..context.model.layers.len() {
        run_layer(on, context, memory, layer)?;
        finish_layer(on, context, memory, layer)?;
    }
    let Memory { residuals, last_normed, .. } = memory;
    let x = residuals[context.model.layers.len()].view();
    let operands = NormOperands { x, residual: None, out: last_normed.view_mut() };
    normalise(on, context, &context.model.last_norm, operands)
}

/// Writes the embeddings of tokens to the first residual, and adds those of positions.
fn embed(
    on: &impl LaunchOn,
    context: &Context<'_>,
    memory: &mut Memory,
    micro_batch: usize,
) -> Result<(), TrainingError> {
    let Context { model, layout, parameters, .. } = *context;
    let Memory { tokens, positions, residuals, activations, .. } = memory;
    let tokens = tokens.view().slice([rows_of(context, micro_batch)])?;
    let residual = &mut residuals[0];
    embedding(on, matrix(parameters, layout, &model.embedding)?, tokens, &mut *residual, 1.0)?;
    let Some(table) = &model.positions else { return Ok(()) };
    // A norm adds its input to the residual. Its result is computed again by the first layer, as in
    // all others.
    let Activations { normed, middle, .. } = &mut activations[0];
    embedding(on, matrix(parameters, layout, table)?, &*positions, &mut *middle, 1.0)?;
    let operands =
        NormOperands { x: middle.view(), residual: Some(residual.view_mut()), out: normed.view_mut() };
    normalise(on, context, &model.layers[0].before_attention, operands)
}

/// Queues a layer up to the input of its last matrix: all that its backward pass reads.
pub(crate) fn run_layer(
    on: &impl LaunchOn,
    context: &Context<'_>,
    memory: &mut Memory,
    index: usize,
) -> Result<(), TrainingError> {
    let (layer, slot) = (&context.model.layers[index], memory.slot(index));
    let Memory { residuals, activations, positions, angles, ones, workspaces, .. } = memory;
    let (x, results) = (residuals[index].view(), &mut activations[slot]);
    let operands = NormOperands { x, residual: None, out: results.normed.view_mut() };
    normalise(on, context, &layer.before_attention, operands)?;
    let operands = LinearOperands { x: results.normed.view(), residual: None, out: results.qkv.view_mut() };
    multiply(on, context, &layer.qkv, operands, &mut workspaces.gemm)?;
    if let Some(angles) = angles {
        let heads = qkv_of(context).rotated().rows_mut(&mut results.qkv)?;
        rotary_in_place(on, heads, &*positions, rotary_angles(angles))?;
    }
    attend(on, context, results)?;
    let operands =
        LinearOperands { x: results.attended.view(), residual: Some(x), out: results.middle.view_mut() };
    multiply(on, context, &layer.output, operands, &mut workspaces.gemm)?;
    let operands =
        NormOperands { x: results.middle.view(), residual: None, out: results.normed_middle.view_mut() };
    normalise(on, context, &layer.before_mlp, operands)?;
    let operands =
        LinearOperands { x: results.normed_middle.view(), residual: None, out: results.up.view_mut() };
    multiply(on, context, &layer.up, operands, &mut workspaces.gemm)?;
    activate(on, context.config, results, ones)
}

/// Queues the last matrix of a layer, whose result is the next layer's input.
fn finish_layer(
    on: &impl LaunchOn,
    context: &Context<'_>,
    memory: &mut Memory,
    index: usize,
) -> Result<(), TrainingError> {
    let slot = memory.slot(index);
    let Memory { residuals, activations, workspaces, .. } = memory;
    let Activations { middle, activated, .. } = &activations[slot];
    let out = residuals[index + 1].view_mut();
    let operands = LinearOperands { x: activated.view(), residual: Some(middle.view()), out };
    multiply(on, context, &context.model.layers[index].down, operands, &mut workspaces.gemm)
}

/// Returns the heads of queries, keys and values in a row.
pub(crate) fn qkv_of(context: &Context<'_>) -> Qkv {
    let Config { heads, key_heads, depth, .. } = *context.config;
    let (sequences, length) = (context.options.sequences, context.options.length);
    let at = |first, count| Heads { sequences, length, first, count, depth };
    Qkv { queries: at(0, heads), keys: at(heads, key_heads), values: at(heads + key_heads, key_heads) }
}

/// Returns the heads of queries in a row that has nothing else.
pub(crate) fn heads_of(context: &Context<'_>) -> Heads {
    qkv_of(context).queries
}

pub(crate) fn rotary_angles([cos, sin]: &[DeviceTensor<f32, 2>; 2]) -> RotaryAngles<'_> {
    RotaryAngles { cos: cos.view(), sin: sin.view(), layout: RotaryLayout::Halves }
}

/// Queues attention.
fn attend(on: &impl LaunchOn, context: &Context<'_>, results: &mut Activations) -> Result<(), TrainingError> {
    let Activations { qkv, attended, lse, .. } = results;
    let Qkv { queries, keys, values } = qkv_of(context);
    let options = AttentionOptions {
        causal: true,
        scale: Some(context.config.score_scale),
        lse: Some(lse.view_mut()),
        ..AttentionOptions::default()
    };
    let (q, k, v) = (queries.view(qkv)?, keys.view(qkv)?, values.view(qkv)?);
    Ok(attention(on, q, k, v, heads_of(context).view_mut(attended.view_mut())?, options)?)
}

/// Returns the activation of an MLP, and whether it is that of gates.
pub(crate) fn gate_of(activation: Activation) -> (Gate, bool) {
    match activation {
        Activation::GatedSilu => (Gate::Silu, true),
        Activation::GatedGeluTanh => (Gate::GeluTanh, true),
        Activation::GeluTanh => (Gate::GeluTanh, false),
    }
}

/// Queues the function between the matrices of an MLP. What it is applied to is kept.
fn activate(
    on: &impl LaunchOn,
    config: &Config,
    results: &mut Activations,
    ones: &DeviceTensor<bf16, 1>,
) -> Result<(), TrainingError> {
    let Activations { up, activated, .. } = results;
    let shape = activated.shape();
    match gate_of(config.activation) {
        (gate, true) => gated_packed(on, gate, &*up, activated)?,
        (gate, false) => gated(on, gate, &*up, ones.view().with_strides(shape, [0, 1])?, activated)?,
    }
    Ok(())
}

/// Queues the losses of a micro-batch, the gradients of their mean over a step with respect to the
/// last norm's result, and adds those of the matrix of logits.
pub(crate) fn losses_and_gradients(
    on: &impl LaunchOn,
    context: &Context<'_>,
    memory: &mut Memory,
    gradients: &mut DeviceTensor<f32, 1>,
    micro_batch: usize,
) -> Result<(), TrainingError> {
    let Context { options, model, layout, .. } = *context;
    let weight = matrix_mut(gradients, layout, &model.head)?;
    let rows = rows_of(context, micro_batch);
    let Memory { last_normed, labels, losses, logits, all_rows, workspaces, gradients, .. } = memory;
    let operands = LossOperands {
        x: last_normed.view(),
        weight: matrix(context.parameters, layout, &model.head)?,
        labels: labels.view().slice([rows.clone()])?,
    };
    let options = CrossEntropyOptions {
        label_smoothing: options.label_smoothing,
        z_loss: options.z_loss,
        count: Some(all_rows.view()),
        ..CrossEntropyOptions::default()
    };
    let losses = losses.view_mut().slice([rows])?;
    let results = LinearGradients { x: gradients.normed.view_mut(), weight };
    let memory = LinearMemory { logits: logits.view_mut(), workspace: &mut workspaces.gemm };
    Ok(linear_cross_entropy(on, operands, losses, Some(results), memory, options)?)
}

/// Queues the mean of a micro-batch's losses, without label smoothing and other additions.
pub(crate) fn plain_loss(
    on: &impl LaunchOn,
    context: &Context<'_>,
    memory: &mut Memory,
) -> Result<(), TrainingError> {
    let Context { model, layout, .. } = *context;
    let range = rows_of(context, 0);
    let Memory { last_normed, labels, losses, logits, mean, rows, workspaces, .. } = memory;
    let operands = LossOperands {
        x: last_normed.view(),
        weight: matrix(context.parameters, layout, &model.head)?,
        labels: labels.view().slice([range.clone()])?,
    };
    let mut losses = losses.view_mut().slice([range])?;
    let no_gradients: Option<LinearGradients<'_, bf16>> = None;
    let memory = LinearMemory { logits: logits.view_mut(), workspace: &mut workspaces.gemm };
    let options = CrossEntropyOptions::default();
    linear_cross_entropy(on, operands, losses.reborrow(), no_gradients, memory, options)?;
    Ok(mean_loss(on, losses.as_view(), &*rows, &mut *mean)?)
}
