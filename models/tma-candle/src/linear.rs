//! Linear layers, with bias and activation in the GEMM.

use candle_core::{D, Module, Result, Tensor, bail};
use candle_nn::VarBuilder;
use tma_kernels::gemm::{Activation, GemmOptions, QuantizedOptions, gemm, gemm_quantized};
use tma_runtime::prelude::*;

use crate::backward::Backward;
use crate::by_element;
use crate::operation::{Argument, Operation};

/// A linear layer, `activation(x · weightᵀ + bias)`, of BF16 or F16.
#[derive(Clone, Debug)]
pub struct Linear {
    weight: Tensor,
    bias: Option<Tensor>,
    activation: Activation,
    is_constant: bool,
}

impl Linear {
    /// Makes a layer of weights, outputs × inputs, and a bias of the outputs.
    pub fn new(weight: Tensor, bias: Option<Tensor>) -> Self {
        Self { weight, bias, activation: Activation::None, is_constant: false }
    }

    /// Sets the function that is applied last, for which the GEMM needs no further kernel.
    pub fn with_activation(self, activation: Activation) -> Self {
        Self { activation, ..self }
    }

    /// States that weights were complete before the work that is queued when [`Module::forward`] is
    /// called, as after loading a model and waiting once. A kernel for few rows then reads them
    /// while the previous kernel still runs. If weights are written all the same, results are
    /// unspecified.
    pub fn with_constant_weight(self) -> Self {
        Self { is_constant: true, ..self }
    }

    /// Returns the weights, outputs × inputs.
    pub fn weight(&self) -> &Tensor {
        &self.weight
    }

    /// Returns the bias.
    pub fn bias(&self) -> Option<&Tensor> {
        self.bias.as_ref()
    }
}

impl From<candle_nn::Linear> for Linear {
    fn from(layer: candle_nn::Linear) -> Self {
        Self::new(layer.weight().clone(), layer.bias().cloned())
    }
}

impl Module for Linear {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut inputs: Vec<Argument<'_>> = vec![("x", x), ("weight", &self.weight)];
        inputs.extend(self.bias.as_ref().map(|bias| ("bias", bias)));
        let operation = Operation::new("linear", &inputs).with_backward(Backward::Linear(self.activation));
        let shape = shape_of_product(operation.name, x, &self.weight)?;
        by_element!(operation.name, "x", x, [bf16, f16], T => operation.run::<T>(shape, |call| {
            let (x, weight) = (call.input::<T, 2>("x")?, call.input::<T, 2>("weight")?);
            let options = GemmOptions {
                transpose_b: true,
                constant_b: self.is_constant,
                bias: call.optional("bias")?,
                activation: self.activation,
                workspace: Some(&mut call.queue().gemm_workspace()),
                ..GemmOptions::default()
            };
            Ok(gemm(call.on(), x, weight, call.output::<T, 2>()?, options)?)
        }))
    }
}

/// A linear layer of weights in F8E4M3 with a scale for each 128 × 128 of them, which take half of
/// the memory. Inputs and results are BF16.
///
/// It reads weights once for each 64 rows of inputs, and is for the few rows of a decoder.
#[derive(Clone, Debug)]
pub struct ScaledLinear {
    weight: Tensor,
    scales: Option<Tensor>,
}

impl ScaledLinear {
    /// Makes a layer of weights, outputs × inputs in F8E4M3, and scales in F32: outputs / 128 ×
    /// inputs / 128, both rounded up. Without scales, they are 1.
    pub fn new(weight: Tensor, scales: Option<Tensor>) -> Self {
        Self { weight, scales }
    }
}

impl Module for ScaledLinear {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut inputs: Vec<Argument<'_>> = vec![("x", x), ("weight", &self.weight)];
        inputs.extend(self.scales.as_ref().map(|scales| ("scales", scales)));
        let operation = Operation::new("scaled-linear", &inputs)
            .with_backward(Backward::Unsupported("its weights have 8 bits; use `Linear`"));
        let shape = shape_of_product(operation.name, x, &self.weight)?;
        operation.run::<bf16>(shape, |call| {
            let (x, weight) = (call.input("x")?, call.input::<e4m3, 2>("weight")?);
            let options = QuantizedOptions { scales: call.optional("scales")?, constant_b: false };
            Ok(gemm_quantized(call.on(), x, weight, call.output::<bf16, 2>()?, options)?)
        })
    }
}

/// Returns the shape of inputs with the outputs of these weights as the last dimension.
fn shape_of_product(name: &'static str, x: &Tensor, weight: &Tensor) -> Result<Vec<usize>> {
    Operation::new(name, &[("weight", weight)]).check_rank("weight", &["outputs", "inputs"])?;
    let (outputs, inputs) = weight.dims2()?;
    if x.rank() == 0 || x.dim(D::Minus1)? != inputs {
        bail!(
            "{name}: the last dimension of `x` must be the {inputs} inputs of `weight`: `x` is {:?}",
            x.dims()
        )
    }
    let mut shape = x.dims().to_vec();
    shape.pop();
    shape.push(outputs);
    Ok(shape)
}

/// Makes a layer with a bias from the variables `weight` and `bias`.
///
/// # Errors
///
/// Those of the variables.
pub fn linear(inputs: usize, outputs: usize, vb: VarBuilder<'_>) -> Result<Linear> {
    Ok(candle_nn::linear(inputs, outputs, vb)?.into())
}

/// Makes a layer without a bias from the variable `weight`.
///
/// # Errors
///
/// Those of the variable.
pub fn linear_no_bias(inputs: usize, outputs: usize, vb: VarBuilder<'_>) -> Result<Linear> {
    Ok(candle_nn::linear_no_bias(inputs, outputs, vb)?.into())
}

/// Makes a layer with or without a bias.
///
/// # Errors
///
/// Those of the variables.
pub fn linear_b(inputs: usize, outputs: usize, bias: bool, vb: VarBuilder<'_>) -> Result<Linear> {
    Ok(candle_nn::linear_b(inputs, outputs, bias, vb)?.into())
}
