//! Functions of rows: norms, softmax, gates, and the greatest element.

use candle_core::{D, Result, Tensor, bail};
use tma_kernels::model::{self, NormOptions, SoftmaxOptions};
use tma_runtime::prelude::*;

use crate::backward::Backward;
use crate::operation::{Argument, Operation};
use crate::{Gate, by_element};

/// Returns `x / sqrt(mean(xs²) + eps) · weight` over the last dimension.
///
/// # Errors
///
/// Tensors that do not match.
pub fn rms_norm(x: &Tensor, weight: &Tensor, eps: f32) -> Result<Tensor> {
    Norm { name: "rms-norm", is_centred: false, weight, bias: None, eps }.of(x, None)
}

/// Returns `(x - mean(x)) / sqrt(variance(x) + eps) · weight + bias` over the last dimension.
///
/// # Errors
///
/// Tensors that do not match.
pub fn layer_norm(x: &Tensor, weight: &Tensor, bias: &Tensor, eps: f32) -> Result<Tensor> {
    Norm { name: "layer-norm", is_centred: true, weight, bias: Some(bias), eps }.of(x, None)
}

/// Adds `x` to `residual`, which is changed where it is, and returns [`rms_norm`] of the sum.
///
/// All tensors that share memory with `residual` see the sum.
///
/// # Errors
///
/// Tensors that do not match, or that share memory with `residual`.
pub fn rms_norm_residual(x: &Tensor, residual: &Tensor, weight: &Tensor, eps: f32) -> Result<Tensor> {
    Norm { name: "rms-norm", is_centred: false, weight, bias: None, eps }.of(x, Some(residual))
}

/// Adds `x` to `residual`, which is changed where it is, and returns [`layer_norm`] of the sum.
///
/// All tensors that share memory with `residual` see the sum.
///
/// # Errors
///
/// Tensors that do not match, or that share memory with `residual`.
pub fn layer_norm_residual(
    x: &Tensor,
    residual: &Tensor,
    weight: &Tensor,
    bias: &Tensor,
    eps: f32,
) -> Result<Tensor> {
    Norm { name: "layer-norm", is_centred: true, weight, bias: Some(bias), eps }.of(x, Some(residual))
}

/// A norm.
pub(crate) struct Norm<'a> {
    pub(crate) name: &'static str,
    /// Whether the mean is subtracted.
    pub(crate) is_centred: bool,
    pub(crate) weight: &'a Tensor,
    pub(crate) bias: Option<&'a Tensor>,
    pub(crate) eps: f32,
}

impl Norm<'_> {
    pub(crate) fn of(self, x: &Tensor, residual: Option<&Tensor>) -> Result<Tensor> {
        let mut inputs: Vec<Argument<'_>> = vec![("x", x), ("weight", self.weight)];
        inputs.extend(self.bias.map(|bias| ("bias", bias)));
        let updated: Vec<Argument<'_>> =
            residual.map(|residual| ("residual", residual)).into_iter().collect();
        let operation = Operation { updated: &updated, ..Operation::new(self.name, &inputs) };
        let operation = match residual {
            None => operation.with_backward(Backward::Norm { is_centred: self.is_centred, eps: self.eps }),
            Some(_) => operation,
        };
        by_element!(self.name, "x", x, [bf16, f16, f32], T => operation.run::<T>(x.shape(), |call| {
            let options = NormOptions {
                weight: Some(call.input("weight")?),
                bias: call.optional("bias")?,
                epsilon: self.eps,
                residual: residual.map(|_| call.updated("residual")).transpose()?,
                ..NormOptions::default()
            };
            let x = call.input::<T, 3>("x")?;
            match self.is_centred {
                true => model::layer_norm(call.on(), x, call.output()?, options)?,
                false => model::rms_norm(call.on(), x, call.output()?, options)?,
            }
            Ok(())
        }))
    }
}

/// Returns the softmax over the last dimension.
///
/// # Errors
///
/// A tensor of other elements than BF16, F16 and F32.
pub fn softmax_last_dim(x: &Tensor) -> Result<Tensor> {
    softmax("softmax-last-dim", x, SoftmaxOptions::default())
}

/// Returns the logarithm of the softmax over the last dimension.
///
/// # Errors
///
/// A tensor of other elements than BF16, F16 and F32.
pub fn log_softmax_last_dim(x: &Tensor) -> Result<Tensor> {
    softmax("log-softmax-last-dim", x, SoftmaxOptions { log: true, ..SoftmaxOptions::default() })
}

fn softmax(name: &'static str, x: &Tensor, options: SoftmaxOptions) -> Result<Tensor> {
    let inputs = [("x", x)];
    let operation = Operation::new(name, &inputs).with_backward(Backward::Softmax { is_log: options.log });
    by_element!(name, "x", x, [bf16, f16, f32], T => operation.run::<T>(x.shape(), |call| {
        Ok(model::softmax(call.on(), call.input::<T, 3>("x")?, call.output()?, options)?)
    }))
}

/// Returns `activation(gate) · up`, element by element, for tensors of one shape.
///
/// # Errors
///
/// Tensors that do not match.
pub fn gated(activation: Gate, gate: &Tensor, up: &Tensor) -> Result<Tensor> {
    gated_as("gated", activation, gate, up)
}

/// Returns `silu(gate) · up` of a tensor whose last dimension is all gates and then all others.
///
/// # Errors
///
/// A last dimension of odd extent.
pub fn swiglu(x: &Tensor) -> Result<Tensor> {
    let both = x.dim(D::Minus1)?;
    if !both.is_multiple_of(2) {
        bail!("swiglu: the last dimension must be even, since half of it are gates: it is {both}")
    }
    let columns = both / 2;
    let (gate, up) = (x.narrow(D::Minus1, 0, columns)?, x.narrow(D::Minus1, columns, columns)?);
    gated_as("swiglu", Gate::Silu, &gate, &up)
}

/// Returns `x / (1 + exp(-x))`. As the activation of a [`Linear`](crate::Linear) it takes no
/// kernel.
///
/// # Errors
///
/// A tensor of other elements than BF16, F16 and F32.
pub fn silu(x: &Tensor) -> Result<Tensor> {
    activated("silu", Gate::Silu, x)
}

/// Returns GELU in its approximation by a hyperbolic tangent, as `Tensor::gelu` does. As the
/// activation of a [`Linear`](crate::Linear) it takes no kernel.
///
/// # Errors
///
/// A tensor of other elements than BF16, F16 and F32.
pub fn gelu(x: &Tensor) -> Result<Tensor> {
    activated("gelu", Gate::GeluTanh, x)
}

/// Returns GELU by the error function, as `Tensor::gelu_erf` does.
///
/// # Errors
///
/// A tensor of other elements than BF16, F16 and F32.
pub fn gelu_erf(x: &Tensor) -> Result<Tensor> {
    activated("gelu-erf", Gate::Gelu, x)
}

/// Returns the activation times a row of ones, which all rows share.
fn activated(name: &'static str, activation: Gate, x: &Tensor) -> Result<Tensor> {
    let ones = Tensor::ones(x.dim(D::Minus1)?, x.dtype(), x.device())?;
    let ones = ones.broadcast_as(x.shape())?;
    let inputs = [("gate", x), ("up", &ones)];
    queue_gated(Operation::new(name, &inputs).with_backward(Backward::Activated(activation)), activation)
}

fn gated_as(name: &'static str, activation: Gate, gate: &Tensor, up: &Tensor) -> Result<Tensor> {
    let inputs = [("gate", gate), ("up", up)];
    queue_gated(Operation::new(name, &inputs).with_backward(Backward::Gated(activation)), activation)
}

/// Queues a gate of the inputs `gate` and `up`, the first of which has the shape of the result.
fn queue_gated(operation: Operation<'_>, activation: Gate) -> Result<Tensor> {
    let gate = operation.inputs[0].1;
    by_element!(operation.name, "gate", gate, [bf16, f16, f32], T => operation.run::<T>(gate.shape(), |call| {
        let (gate, up) = (call.input::<T, 3>("gate")?, call.input("up")?);
        Ok(model::gated(call.on(), activation, gate, up, call.output()?)?)
    }))
}

/// Returns the index of the greatest element along the last dimension, in U32: the first of equal
/// ones.
///
/// # Errors
///
/// A tensor of other elements than BF16, F16 and F32, or rows without elements.
pub fn argmax_last_dim(x: &Tensor) -> Result<Tensor> {
    let inputs = [("x", x)];
    let operation = Operation::new("argmax-last-dim", &inputs)
        .with_backward(Backward::Unsupported("the result is an index"));
    let shape = x.dims().split_last().map_or(&[][..], |(_, outer)| outer);
    by_element!(operation.name, "x", x, [bf16, f16, f32], T => operation.run::<u32>(shape, |call| {
        Ok(model::arg_max(call.on(), call.input::<T, 2>("x")?, call.output()?)?)
    }))
}
