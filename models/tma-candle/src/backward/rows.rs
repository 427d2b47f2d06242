//! Gradients of functions of rows: norms, softmax, gates and embeddings.

use candle_core::Tensor;
use tma_kernels::model::{
    EmbeddingBackwardOptions, Gate, GateGradientsMut, NormBackwardOptions, SoftmaxOptions, activate_backward,
    embedding_backward, gated_backward, layer_norm_backward, rms_norm_backward, softmax_backward,
};
use tma_runtime::prelude::*;

use super::{Differentiated, Gradients};
use crate::by_element;
use crate::error::Result;
use crate::operation::{Argument, Operation};

/// Returns memory for the gradient of a tensor.
fn zeros(of: &Tensor) -> Result<Tensor> {
    Tensor::zeros(of.shape(), of.dtype(), of.device())
}

/// Returns the gradients of `x`, `weight` and `bias`.
pub(super) fn norm(of: &Differentiated<'_>, is_centred: bool, eps: f32) -> Result<Gradients> {
    let (x, weight, bias) = (&of.tensors[0], &of.tensors[1], of.tensors.get(2));
    let d_weight = of.wanted(1, || zeros(weight))?;
    let d_bias = bias.map(|bias| of.wanted(2, || zeros(bias))).transpose()?.flatten();
    let inputs = [("x", x), ("weight", weight), ("dy", &of.dy)];
    let mut updated: Vec<Argument<'_>> = vec![];
    updated.extend(d_weight.as_ref().map(|tensor| ("dweight", tensor)));
    updated.extend(d_bias.as_ref().map(|tensor| ("dbias", tensor)));
    let operation = Operation { updated: &updated, ..Operation::new(of.name, &inputs) };
    let dx = by_element!(of.name, "x", x, [bf16, f16, f32], T => operation.run::<T>(x.shape(), |call| {
        let mut workspace = call.queue().gradient_workspace();
        let options = NormBackwardOptions {
            weight: Some(call.input("weight")?),
            epsilon: eps,
            dweight: d_weight.as_ref().map(|_| call.updated::<T, 1>("dweight")).transpose()?,
            dbias: d_bias.as_ref().map(|_| call.updated("dbias")).transpose()?,
            workspace: Some(&mut workspace),
            ..NormBackwardOptions::default()
        };
        let (x, dy) = (call.input::<T, 3>("x")?, call.input("dy")?);
        match is_centred {
            true => layer_norm_backward(call.on(), x, dy, call.output()?, options)?,
            false => rms_norm_backward(call.on(), x, dy, call.output()?, options)?,
        }
        Ok(())
    }))?;
    Ok([Some(dx), d_weight, d_bias])
}

/// Returns the gradient of `x`.
pub(super) fn softmax(of: &Differentiated<'_>, is_log: bool) -> Result<Tensor> {
    let inputs = [("y", &of.result), ("dy", &of.dy)];
    let operation = Operation::new(of.name, &inputs);
    by_element!(of.name, "x", of.dy, [bf16, f16, f32], T => operation.run::<T>(of.dy.shape(), |call| {
        let options = SoftmaxOptions { log: is_log, ..SoftmaxOptions::default() };
        let (y, dy) = (call.input::<T, 3>("y")?, call.input("dy")?);
        Ok(softmax_backward(call.on(), y, dy, call.output()?, options)?)
    }))
}

/// Returns the gradient of what was activated.
pub(super) fn activated(name: &'static str, activation: Gate, x: &Tensor, dy: &Tensor) -> Result<Tensor> {
    let inputs = [("x", x), ("dy", dy)];
    let operation = Operation::new(name, &inputs);
    by_element!(name, "x", x, [bf16, f16, f32], T => operation.run::<T>(x.shape(), |call| {
        let (x, dy) = (call.input::<T, 3>("x")?, call.input("dy")?);
        Ok(activate_backward(call.on(), activation, x, dy, call.output()?)?)
    }))
}

/// Returns the gradients of `gate` and `up`.
pub(super) fn gated(of: &Differentiated<'_>, activation: Gate) -> Result<Gradients> {
    let (gate, up) = (&of.tensors[0], &of.tensors[1]);
    let d_up = zeros(up)?;
    let inputs = [("gate", gate), ("up", up), ("dy", &of.dy)];
    let operation = Operation { updated: &[("dup", &d_up)], ..Operation::new(of.name, &inputs) };
    let d_gate = by_element!(of.name, "gate", gate, [bf16, f16, f32], T => {
        operation.run::<T>(gate.shape(), |call| {
            let gradients = GateGradientsMut { gate: call.output::<T, 3>()?, up: call.updated("dup")? };
            let (gate, up, dy) = (call.input("gate")?, call.input("up")?, call.input("dy")?);
            Ok(gated_backward(call.on(), activation, gate, up, dy, gradients)?)
        })
    })?;
    Ok([Some(d_gate), Some(d_up), None])
}

/// Returns the gradient of the table.
pub(super) fn embedding(of: &Differentiated<'_>) -> Result<Tensor> {
    let (indexes, table) = (&of.tensors[0], &of.tensors[1]);
    let inputs = [("indexes", indexes), ("dy", &of.dy)];
    // Gradients are added to zeros.
    let operation = Operation { is_partial: true, ..Operation::new(of.name, &inputs) };
    by_element!(of.name, "embeddings", table, [bf16, f16, f32], T => operation.run::<T>(table.shape(), |call| {
        let mut workspace = call.queue().gradient_workspace();
        let options = EmbeddingBackwardOptions { workspace: Some(&mut workspace), ..Default::default() };
        let (dy, tokens) = (call.input::<T, 2>("dy")?, call.input("indexes")?);
        Ok(embedding_backward(call.on(), dy, tokens, call.output::<T, 2>()?, options)?)
    }))
}
