//! Losses of tokens, and the gradients of their mean.

use tma_kernels::model::{
    CrossEntropyOptions, LinearGradients, LinearMemory, LinearOperands, linear_cross_entropy, mean_loss,
};
use tma_runtime::launch::LaunchOn;
use tma_runtime::prelude::*;

use crate::TrainingError;
use crate::context::Context;
use crate::memory::Memory;
use crate::views::{matrix, matrix_mut};

/// Queues the losses of a micro-batch and their mean, the gradients of the mean over a step with
/// respect to the last norm's result, and adds those of the matrix of logits.
pub(crate) fn losses_and_gradients(
    on: &impl LaunchOn,
    context: &Context<'_>,
    memory: &mut Memory,
    gradients: &mut DeviceTensor<f32, 1>,
) -> Result<(), TrainingError> {
    let Context { options, model, layout, .. } = *context;
    let weight = matrix_mut(gradients, layout, &model.head)?;
    let Memory { last_normed, labels, losses, logits, mean, rows, all_rows, workspaces, gradients, .. } =
        memory;
    let operands = LinearOperands {
        x: last_normed.view(),
        weight: matrix(context.parameters, layout, &model.head)?,
        labels: labels.view(),
    };
    let options = CrossEntropyOptions {
        label_smoothing: options.label_smoothing,
        z_loss: options.z_loss,
        count: Some(all_rows.view()),
        ..CrossEntropyOptions::default()
    };
    let results = LinearGradients { x: gradients.normed.view_mut(), weight };
    let memory = LinearMemory { logits: logits.view_mut(), workspace: &mut workspaces.gemm };
    linear_cross_entropy(on, operands, &mut *losses, Some(results), memory, options)?;
    Ok(mean_loss(on, &*losses, &*rows, &mut *mean)?)
}

/// Queues the mean of a micro-batch's losses, without label smoothing and other additions.
pub(crate) fn plain_loss(
    on: &impl LaunchOn,
    context: &Context<'_>,
    memory: &mut Memory,
) -> Result<(), TrainingError> {
    let Context { model, layout, .. } = *context;
    let Memory { last_normed, labels, losses, logits, mean, rows, workspaces, .. } = memory;
    let operands = LinearOperands {
        x: last_normed.view(),
        weight: matrix(context.parameters, layout, &model.head)?,
        labels: labels.view(),
    };
    let no_gradients: Option<LinearGradients<'_, bf16>> = None;
    let memory = LinearMemory { logits: logits.view_mut(), workspace: &mut workspaces.gemm };
    let options = CrossEntropyOptions::default();
    linear_cross_entropy(on, operands, &mut *losses, no_gradients, memory, options)?;
    Ok(mean_loss(on, &*losses, &*rows, &mut *mean)?)
}
