//! Linear layers and norms, and their gradients.

use tma_kernels::gemm::{GemmOptions, Workspace, gemm};
use tma_kernels::model::{
    BiasBackwardOptions, GradientWorkspace, NormBackwardOptions, NormOptions, bias_backward, layer_norm,
    layer_norm_backward, rms_norm, rms_norm_backward,
};
use tma_models::config::NormKind;
use tma_runtime::launch::LaunchOn;
use tma_runtime::prelude::*;

use crate::TrainingError;
use crate::context::Context;
use crate::memory::Workspaces;
use crate::model::{Linear, Norm, Stored};
use crate::views::{matrix, matrix_mut, vector, vector_mut, vectors_mut};

/// The operands of a linear layer: rows × inputs, and rows × outputs.
#[derive(Debug)]
pub(crate) struct LinearOperands<'a> {
    pub(crate) x: TensorView<'a, bf16, 2>,
    /// Rows that are added to the result.
    pub(crate) residual: Option<TensorView<'a, bf16, 2>>,
    pub(crate) out: TensorViewMut<'a, bf16, 2>,
}

/// Queues the result of a linear layer.
pub(crate) fn multiply(
    on: &impl LaunchOn,
    context: &Context<'_>,
    linear: &Linear,
    operands: LinearOperands<'_>,
    workspace: &mut Workspace,
) -> Result<(), TrainingError> {
    let Context { layout, parameters, .. } = *context;
    let bias = linear.bias.as_ref().map(|bias| vector(parameters, layout, bias)).transpose()?;
    let options = GemmOptions {
        transpose_b: linear.stored == Stored::OutputsFirst,
        residual: operands.residual,
        bias,
        workspace: Some(workspace),
        ..GemmOptions::default()
    };
    Ok(gemm(on, operands.x, matrix(parameters, layout, &linear.weight)?, operands.out, options)?)
}

/// Queues the gradient of a linear layer's input, from that of its result.
pub(crate) fn multiply_backward(
    on: &impl LaunchOn,
    context: &Context<'_>,
    linear: &Linear,
    dy: &DeviceTensor<bf16, 2>,
    dx: &mut DeviceTensor<bf16, 2>,
    workspace: &mut Workspace,
) -> Result<(), TrainingError> {
    let weight = matrix(context.parameters, context.layout, &linear.weight)?;
    let options = GemmOptions {
        transpose_b: linear.stored == Stored::InputsFirst,
        workspace: Some(workspace),
        ..GemmOptions::default()
    };
    Ok(gemm(on, dy, weight, dx, options)?)
}

/// The input of a linear layer, rows × inputs, and the gradient of its result, rows × outputs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WeightOperands<'a> {
    pub(crate) x: &'a DeviceTensor<bf16, 2>,
    pub(crate) dy: &'a DeviceTensor<bf16, 2>,
}

/// Queues the gradients of a linear layer's matrix and bias.
pub(crate) fn weight_gradients(
    on: &impl LaunchOn,
    context: &Context<'_>,
    linear: &Linear,
    operands: WeightOperands<'_>,
    gradients: &mut DeviceTensor<f32, 1>,
    workspaces: &mut Workspaces,
) -> Result<(), TrainingError> {
    let (layout, WeightOperands { x, dy }) = (context.layout, operands);
    let [a, b] = match linear.stored {
        Stored::OutputsFirst => [dy, x],
        Stored::InputsFirst => [x, dy],
    };
    let options = GemmOptions {
        transpose_a: true,
        beta: if context.accumulate { 1.0 } else { 0.0 },
        workspace: Some(&mut workspaces.gemm),
        ..GemmOptions::default()
    };
    gemm(on, a, b, matrix_mut(gradients, layout, &linear.weight)?, options)?;
    let Some(bias) = &linear.bias else { return Ok(()) };
    let options =
        BiasBackwardOptions { accumulate: context.accumulate, workspace: Some(&mut workspaces.sums) };
    Ok(bias_backward(on, dy, vector_mut(gradients, layout, bias)?, options)?)
}

/// The operands of a norm, each rows × width.
#[derive(Debug)]
pub(crate) struct NormOperands<'a> {
    pub(crate) x: TensorView<'a, bf16, 2>,
    /// Rows to which `x` is added before; the sum is normalised.
    pub(crate) residual: Option<TensorViewMut<'a, bf16, 2>>,
    pub(crate) out: TensorViewMut<'a, bf16, 2>,
}

/// Queues a norm.
pub(crate) fn normalise(
    on: &impl LaunchOn,
    context: &Context<'_>,
    norm: &Norm,
    operands: NormOperands<'_>,
) -> Result<(), TrainingError> {
    let Context { config, layout, parameters, .. } = *context;
    let options = NormOptions {
        weight: Some(vector(parameters, layout, &norm.weight)?),
        bias: norm.bias.as_ref().map(|bias| vector(parameters, layout, bias)).transpose()?,
        epsilon: config.epsilon,
        residual: operands.residual,
        ..NormOptions::default()
    };
    match config.norm {
        NormKind::Layer => layer_norm(on, operands.x, operands.out, options)?,
        NormKind::Rms | NormKind::RmsOnePlus => rms_norm(on, operands.x, operands.out, options)?,
    }
    Ok(())
}

/// The operands of a norm's gradient, each rows × width.
#[derive(Debug)]
pub(crate) struct NormGradients<'a> {
    /// The input of the norm.
    pub(crate) x: &'a DeviceTensor<bf16, 2>,
    /// The gradient of the result.
    pub(crate) dy: &'a DeviceTensor<bf16, 2>,
    /// That of `x`.
    pub(crate) dx: &'a mut DeviceTensor<bf16, 2>,
    /// Whether it is added to what `dx` has.
    pub(crate) accumulate: bool,
}

/// Queues the gradients of a norm's input, weight and bias.
pub(crate) fn normalise_backward(
    on: &impl LaunchOn,
    context: &Context<'_>,
    norm: &Norm,
    operands: NormGradients<'_>,
    gradients: &mut DeviceTensor<f32, 1>,
    workspace: &mut GradientWorkspace,
) -> Result<(), TrainingError> {
    let Context { config, layout, parameters, .. } = *context;
    let NormGradients { x, dy, dx, accumulate } = operands;
    let (dweight, dbias) = match &norm.bias {
        None => (vector_mut(gradients, layout, &norm.weight)?, None),
        Some(bias) => {
            let [dweight, dbias] = vectors_mut(gradients, layout, &norm.weight, bias)?;
            (dweight, Some(dbias))
        }
    };
    let options = NormBackwardOptions {
        weight: Some(vector(parameters, layout, &norm.weight)?),
        epsilon: config.epsilon,
        accumulate,
        dweight: Some(dweight),
        dbias,
        accumulate_weights: context.accumulate,
        workspace: Some(workspace),
        ..NormBackwardOptions::default()
    };
    match config.norm {
        NormKind::Layer => layer_norm_backward(on, x, dy, dx, options)?,
        NormKind::Rms | NormKind::RmsOnePlus => rms_norm_backward(on, x, dy, dx, options)?,
    }
    Ok(())
}
