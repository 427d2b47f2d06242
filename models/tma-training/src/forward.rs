//! The forward pass: from tokens to the norm before the logits.

use tma_kernels::model::{embedding, gated, gated_packed, rotary_in_place};
use tma_kernels::{AttentionOptions, attention};
use tma_runtime::launch::LaunchOn;
use tma_runtime::prelude::*;

use crate::TrainingError;
use crate::context::{Context, MlpActivation, heads_of, mlp_activation, qkv_of, rotary_angles};
use crate::linear::{LinearOperands, NormOperands, multiply, normalise};
use crate::memory::{Activations, Memory};
use crate::views::{Qkv, matrix};

/// Queues the forward pass of a micro-batch, up to the norm before the logits.
pub(crate) fn forward(
    on: &impl LaunchOn,
    context: &Context<'_>,
    memory: &mut Memory,
) -> Result<(), TrainingError> {
    embed(on, context, memory)?;
    for layer in 0..context.model.layers.len() {
        // The sum of embeddings of tokens and positions is normalised with them.
        if layer > 0 || context.model.positions.is_none() {
            normalise_input(on, context, memory, layer)?;
        }
        normalised_layer_activations(on, context, memory, layer)?;
        finish_layer(on, context, memory, layer)?;
    }
    let Memory { residuals, last_normed, .. } = memory;
    let x = residuals[context.model.layers.len()].view();
    let operands = NormOperands { x, residual: None, out: last_normed.view_mut() };
    normalise(on, context, &context.model.last_norm, operands)
}

/// Writes the embeddings of tokens to the first residual. Those of learned positions are added by
/// the norm of the first layer, which adds its input to the residual.
fn embed(on: &impl LaunchOn, context: &Context<'_>, memory: &mut Memory) -> Result<(), TrainingError> {
    let Context { model, layout, parameters, .. } = *context;
    let Memory { tokens, positions, residuals, activations, .. } = memory;
    let residual = &mut residuals[0];
    embedding(on, matrix(parameters, layout, &model.embedding)?, &*tokens, &mut *residual, 1.0)?;
    let Some(table) = &model.positions else { return Ok(()) };
    let Activations { normed, middle, .. } = &mut activations[0];
    embedding(on, matrix(parameters, layout, table)?, &*positions, &mut *middle, 1.0)?;
    let operands =
        NormOperands { x: middle.view(), residual: Some(residual.view_mut()), out: normed.view_mut() };
    normalise(on, context, &model.layers[0].before_attention, operands)
}

/// Queues a layer up to the input of its last matrix: all that its backward pass reads.
pub(crate) fn layer_activations(
    on: &impl LaunchOn,
    context: &Context<'_>,
    memory: &mut Memory,
    index: usize,
) -> Result<(), TrainingError> {
    normalise_input(on, context, memory, index)?;
    normalised_layer_activations(on, context, memory, index)
}

/// Queues the norm of a layer's input.
fn normalise_input(
    on: &impl LaunchOn,
    context: &Context<'_>,
    memory: &mut Memory,
    index: usize,
) -> Result<(), TrainingError> {
    let slot = memory.slot(index);
    let Memory { residuals, activations, .. } = memory;
    let (x, out) = (residuals[index].view(), activations[slot].normed.view_mut());
    let operands = NormOperands { x, residual: None, out };
    normalise(on, context, &context.model.layers[index].before_attention, operands)
}

/// Queues a layer from its normalised input up to the input of its last matrix.
fn normalised_layer_activations(
    on: &impl LaunchOn,
    context: &Context<'_>,
    memory: &mut Memory,
    index: usize,
) -> Result<(), TrainingError> {
    attention_part(on, context, memory, index)?;
    mlp_part(on, context, memory, index)
}

/// Queues attention, with its matrices. The result is the residual between attention
/// and MLP.
fn attention_part(
    on: &impl LaunchOn,
    context: &Context<'_>,
    memory: &mut Memory,
    index: usize,
) -> Result<(), TrainingError> {
    let (layer, slot) = (&context.model.layers[index], memory.slot(index));
    let Memory { residuals, activations, positions, angles, workspaces, .. } = memory;
    let Activations { normed, qkv, attended, lse, middle, .. } = &mut activations[slot];
    let operands = LinearOperands { x: normed.view(), residual: None, out: qkv.view_mut() };
    multiply(on, context, &layer.qkv, operands, &mut workspaces.gemm)?;
    if let Some(angles) = angles {
        let heads = qkv_of(context).rotated().rows_mut(qkv)?;
        rotary_in_place(on, heads, &*positions, rotary_angles(angles))?;
    }
    attend(on, context, qkv, attended, lse)?;
    let residual = Some(residuals[index].view());
    let operands = LinearOperands { x: attended.view(), residual, out: middle.view_mut() };
    multiply(on, context, &layer.output, operands, &mut workspaces.gemm)
}

/// Queues an MLP, with its norm, up to the input of its last matrix.
fn mlp_part(
    on: &impl LaunchOn,
    context: &Context<'_>,
    memory: &mut Memory,
    index: usize,
) -> Result<(), TrainingError> {
    let (layer, slot) = (&context.model.layers[index], memory.slot(index));
    let Memory { activations, ones, workspaces, .. } = memory;
    let Activations { middle, normed_middle, up, activated, .. } = &mut activations[slot];
    let operands = NormOperands { x: middle.view(), residual: None, out: normed_middle.view_mut() };
    normalise(on, context, &layer.before_mlp, operands)?;
    let operands = LinearOperands { x: normed_middle.view(), residual: None, out: up.view_mut() };
    multiply(on, context, &layer.up, operands, &mut workspaces.gemm)?;
    // The input of the function is kept for its gradient.
    let shape = activated.shape();
    match mlp_activation(context.config) {
        MlpActivation::Gated(gate) => gated_packed(on, gate, &*up, activated)?,
        MlpActivation::Plain(gate) => {
            gated(on, gate, &*up, ones.view().with_strides(shape, [0, 1])?, activated)?;
        }
    }
    Ok(())
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

/// Queues attention.
fn attend(
    on: &impl LaunchOn,
    context: &Context<'_>,
    qkv: &DeviceTensor<bf16, 2>,
    attended: &mut DeviceTensor<bf16, 2>,
    lse: &mut DeviceTensor<f32, 3>,
) -> Result<(), TrainingError> {
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
