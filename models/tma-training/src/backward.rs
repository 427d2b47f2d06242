//! The backward pass: from the gradient of the last norm's result to those of all parameters.

#![allow(clippy::single_range_in_vec_init, reason = "views of one dimension are sliced by one range")]

use tma_kernels::attention::{
    AttentionBackwardOptions, AttentionForward, AttentionGradients, AttentionWorkspace, attention_backward,
};
use tma_kernels::model::{
    BiasBackwardOptions, EmbeddingBackwardOptions, activate_backward, bias_backward, embedding_backward,
    gated_packed_backward, rotary_backward_in_place,
};
use tma_runtime::launch::LaunchOn;
use tma_runtime::prelude::*;

use crate::TrainingError;
use crate::context::{Context, MlpActivation, heads_of, mlp_activation, qkv_of, rotary_angles};
use crate::forward::layer_activations;
use crate::linear::{NormGradients, WeightOperands, multiply_backward, normalise_backward, weight_gradients};
use crate::memory::{Activations, Memory, ResultGradients};
use crate::options::TrainingOptions;
use crate::views::{Qkv, matrix_mut, vector_mut};

/// Queues the backward pass of a micro-batch, up to the gradients of parameters.
pub(crate) fn backward(
    on: &impl LaunchOn,
    context: &Context<'_>,
    memory: &mut Memory,
    gradients: &mut DeviceTensor<f32, 1>,
) -> Result<(), TrainingError> {
    let layers = context.model.layers.len();
    let Memory { residuals, gradients: results, workspaces, .. } = &mut *memory;
    let operands = NormGradients {
        x: &residuals[layers],
        dy: &results.normed,
        dx: &mut results.residual,
        accumulate: false,
    };
    let sums = &mut workspaces.sums;
    normalise_backward(on, context, &context.model.last_norm, operands, gradients, sums)?;
    for layer in (0..layers).rev() {
        // The forward pass has left the activations of the last layer.
        if context.options.recompute && layer + 1 < layers {
            layer_activations(on, context, memory, layer)?;
        }
        mlp_part_backward(on, context, memory, gradients, layer)?;
        attention_part_backward(on, context, memory, gradients, layer)?;
    }
    embed_backward(on, context, memory, gradients)
}

/// Queues the gradients of an MLP and its norm. The gradient of the residual is that of the layer's
/// result before, and that of the residual between attention and MLP after.
fn mlp_part_backward(
    on: &impl LaunchOn,
    context: &Context<'_>,
    memory: &mut Memory,
    gradients: &mut DeviceTensor<f32, 1>,
    index: usize,
) -> Result<(), TrainingError> {
    let (layer, slot) = (&context.model.layers[index], memory.slot(index));
    let Memory { activations, gradients: results, workspaces, .. } = memory;
    let Activations { middle, normed_middle, up, activated, .. } = &activations[slot];
    let ResultGradients { residual, normed, up: d_up, activated: d_activated, .. } = results;
    let operands = WeightOperands { x: activated, dy: residual };
    weight_gradients(on, context, &layer.down, operands, gradients, workspaces)?;
    multiply_backward(on, context, &layer.down, residual, d_activated, &mut workspaces.gemm)?;
    match mlp_activation(context.config) {
        MlpActivation::Gated(gate) => gated_packed_backward(on, gate, up, &*d_activated, &mut *d_up)?,
        MlpActivation::Plain(gate) => activate_backward(on, gate, up, &*d_activated, &mut *d_up)?,
    }
    let operands = WeightOperands { x: normed_middle, dy: d_up };
    weight_gradients(on, context, &layer.up, operands, gradients, workspaces)?;
    multiply_backward(on, context, &layer.up, d_up, normed, &mut workspaces.gemm)?;
    let operands = NormGradients { x: middle, dy: normed, dx: residual, accumulate: true };
    normalise_backward(on, context, &layer.before_mlp, operands, gradients, &mut workspaces.sums)
}

/// Queues the gradients of attention, its matrices and its norm. The gradient of the residual is
/// that of the layer's input after.
fn attention_part_backward(
    on: &impl LaunchOn,
    context: &Context<'_>,
    memory: &mut Memory,
    gradients: &mut DeviceTensor<f32, 1>,
    index: usize,
) -> Result<(), TrainingError> {
    let (layer, slot) = (&context.model.layers[index], memory.slot(index));
    let Memory { residuals, activations, gradients: results, workspaces, positions, angles, .. } = memory;
    let activations = &activations[slot];
    let dy = &results.residual;
    let operands = WeightOperands { x: &activations.attended, dy };
    weight_gradients(on, context, &layer.output, operands, gradients, workspaces)?;
    let d_attended = &mut results.attended;
    multiply_backward(on, context, &layer.output, dy, d_attended, &mut workspaces.gemm)?;
    attend_backward(on, context, activations, results, &mut workspaces.attention)?;
    let ResultGradients { residual, normed, qkv: d_qkv, .. } = results;
    if let Some(angles) = angles {
        let heads = qkv_of(context).rotated().rows_mut(d_qkv)?;
        rotary_backward_in_place(on, heads, &*positions, rotary_angles(angles))?;
    }
    let operands = WeightOperands { x: &activations.normed, dy: d_qkv };
    weight_gradients(on, context, &layer.qkv, operands, gradients, workspaces)?;
    multiply_backward(on, context, &layer.qkv, d_qkv, normed, &mut workspaces.gemm)?;
    let operands = NormGradients { x: &residuals[index], dy: normed, dx: residual, accumulate: true };
    normalise_backward(on, context, &layer.before_attention, operands, gradients, &mut workspaces.sums)
}

/// Queues the gradients of queries, keys and values.
fn attend_backward(
    on: &impl LaunchOn,
    context: &Context<'_>,
    activations: &Activations,
    results: &mut ResultGradients,
    workspace: &mut AttentionWorkspace,
) -> Result<(), TrainingError> {
    let Activations { qkv, attended, lse, .. } = activations;
    let parts = qkv_of(context);
    let Qkv { queries, keys, values } = parts;
    let heads = heads_of(context);
    let forward = AttentionForward {
        q: queries.view(qkv)?,
        k: keys.view(qkv)?,
        v: values.view(qkv)?,
        o: heads.view(attended)?,
        d_o: heads.view(&results.attended)?,
        lse: lse.view(),
    };
    let [dq, dk, dv] = parts.views_mut(&mut results.qkv)?;
    let options = AttentionBackwardOptions {
        causal: true,
        scale: Some(context.config.score_scale),
        workspace: Some(workspace),
        ..AttentionBackwardOptions::default()
    };
    Ok(attention_backward(on, forward, AttentionGradients { dq, dk, dv }, options)?)
}

/// Queues the gradients of the tables of tokens, to which is added, and of positions.
fn embed_backward(
    on: &impl LaunchOn,
    context: &Context<'_>,
    memory: &mut Memory,
    gradients: &mut DeviceTensor<f32, 1>,
) -> Result<(), TrainingError> {
    let Context { model, layout, .. } = *context;
    let Memory { tokens, gradients: results, workspaces, .. } = memory;
    let dy = &results.residual;
    let table = matrix_mut(gradients, layout, &model.embedding)?;
    let workspace = Some(&mut workspaces.sums);
    embedding_backward(on, dy, &*tokens, table, EmbeddingBackwardOptions { workspace, scale: 1.0 })?;
    let Some(table) = &model.positions else { return Ok(()) };
    // Each sequence has the same positions: the gradients of the table's first rows are sums over
    // sequences. Those of the others stay 0.
    let TrainingOptions { sequences, length, .. } = *context.options;
    let row = length * context.config.width;
    let dy = dy.view().with_strides([sequences, row], [row, 1])?;
    let dtable = vector_mut(gradients, layout, &table.tensors)?.slice([0..row])?;
    let workspace = Some(&mut workspaces.sums);
    bias_backward(on, dy, dtable, BiasBackwardOptions { accumulate: context.accumulate, workspace })?;
    Ok(())
}
