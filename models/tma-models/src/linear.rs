//! Products with weights.

use tma_kernels::gemm::{self, GemmOptions, gemm};
use tma_runtime::launch::LaunchOn;
use tma_runtime::prelude::*;

use crate::ModelError;
use crate::loader::Linear;

/// Queues `out = activation(x · weightᵀ + bias)`.
pub(crate) fn multiply(
    on: &impl LaunchOn,
    linear: &Linear,
    x: TensorView<'_, bf16, 2>,
    out: TensorViewMut<'_, bf16, 2>,
    activation: gemm::Activation,
    workspace: &mut gemm::Workspace,
) -> Result<(), ModelError> {
    let options = GemmOptions {
        transpose_b: true,
        bias: linear.bias.as_ref().map(DeviceTensor::view),
        activation,
        constant_b: true,
        workspace: Some(workspace),
        ..GemmOptions::default()
    };
    Ok(gemm(on, x, &linear.weight, out, options)?)
}
