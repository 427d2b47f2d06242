//! Gradients of linear layers.

use candle_core::{D, Module, Tensor};
use tma_kernels::gemm::{Activation, GemmOptions, gemm};
use tma_kernels::model::{BiasBackwardOptions, Gate, bias_backward};
use tma_runtime::prelude::*;

use super::rows::activated;
use super::{Differentiated, Gradients};
use crate::by_element;
use crate::error::Result;
use crate::linear::Linear;
use crate::operation::Operation;

/// The elements of 16 bytes, at whose multiples rows of matrices begin.
const ALIGNED: usize = 8;

/// Returns the gradients of `x`, `weight` and `bias`.
pub(super) fn gradients(of: &Differentiated<'_>, activation: Activation) -> Result<Gradients> {
    let (x, weight) = (&of.tensors[0], &of.tensors[1]);
    let d_sum = of_sum(of, activation)?;
    let aligned = with_aligned_rows(&d_sum)?;
    Ok([
        of.wanted(0, || of_input(of.name, &aligned, weight, x))?,
        of.wanted(1, || of_weight(of.name, &aligned, x, weight))?,
        of.wanted(2, || of_bias(of.name, &d_sum))?,
    ])
}

/// Returns the gradient of the sums before the activation. They are computed again for an
/// activation whose slope depends on them, since only its result is stored.
fn of_sum(of: &Differentiated<'_>, activation: Activation) -> Result<Tensor> {
    let sum = || Linear::new(of.tensors[1].clone(), of.tensors.get(2).cloned()).forward(&of.tensors[0]);
    match activation {
        Activation::None => Ok(of.dy.clone()),
        Activation::Relu => of.result.gt(0_f64)?.where_cond(&of.dy, &of.dy.zeros_like()?),
        Activation::Gelu => activated(of.name, Gate::GeluTanh, &sum()?, &of.dy),
        Activation::Silu => activated(of.name, Gate::Silu, &sum()?, &of.dy),
    }
}

/// Returns a tensor whose rows begin at multiples of 16 bytes: a part of a wider one if they do not
/// yet.
fn with_aligned_rows(tensor: &Tensor) -> Result<Tensor> {
    let columns = tensor.dim(D::Minus1)?;
    match columns.next_multiple_of(ALIGNED) - columns {
        0 => Ok(tensor.clone()),
        missing => tensor.pad_with_zeros(D::Minus1, 0, missing)?.narrow(D::Minus1, 0, columns),
    }
}

/// Returns `dy · weight`.
fn of_input(name: &'static str, dy: &Tensor, weight: &Tensor, x: &Tensor) -> Result<Tensor> {
    let inputs = [("dy", dy), ("weight", weight)];
    by_element!(name, "x", x, [bf16, f16], T => Operation::new(name, &inputs).run::<T>(x.shape(), |call| {
        let options =
            GemmOptions { workspace: Some(&mut call.queue().gemm_workspace()), ..GemmOptions::default() };
        let (dy, weight) = (call.input::<T, 2>("dy")?, call.input::<T, 2>("weight")?);
        Ok(gemm(call.on(), dy, weight, call.output::<T, 2>()?, options)?)
    }))
}

/// Returns `dyᵀ · x`.
fn of_weight(name: &'static str, dy: &Tensor, x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let inputs = [("dy", dy), ("x", x)];
    by_element!(name, "x", x, [bf16, f16], T => Operation::new(name, &inputs).run::<T>(weight.shape(), |call| {
        let options = GemmOptions {
            transpose_a: true,
            workspace: Some(&mut call.queue().gemm_workspace()),
            ..GemmOptions::default()
        };
        let (dy, x) = (call.input::<T, 2>("dy")?, call.input::<T, 2>("x")?);
        Ok(gemm(call.on(), dy, x, call.output::<T, 2>()?, options)?)
    }))
}

/// Returns the sums of columns.
fn of_bias(name: &'static str, dy: &Tensor) -> Result<Tensor> {
    let inputs = [("dy", dy)];
    let columns = dy.dim(D::Minus1)?;
    by_element!(name, "x", dy, [bf16, f16], T => Operation::new(name, &inputs).run::<T>(columns, |call| {
        let mut workspace = call.queue().gradient_workspace();
        let options = BiasBackwardOptions { workspace: Some(&mut workspace), ..Default::default() };
        Ok(bias_backward(call.on(), call.input::<T, 2>("dy")?, call.output::<T, 1>()?, options)?)
    }))
}
