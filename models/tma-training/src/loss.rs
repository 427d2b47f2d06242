//! Losses of tokens, and the gradients of their mean.

#![allow(clippy::single_range_in_vec_init, reason = "views of one dimension are sliced by one range")]

use tma_kernels::model::{
    CrossEntropyOptions, LinearGradients, LinearMemory, LinearOperands, linear_cross_entropy, mean_loss,
};
use tma_runtime::launch::LaunchOn;
use tma_runtime::prelude::*;

use crate::TrainingError;
use crate::context::{Context, rows_of};
use crate::memory::Memory;
use crate::views::{matrix, matrix_mut};

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
    let operands = LinearOperands {
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
    let operands = LinearOperands {
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
