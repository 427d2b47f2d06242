//! Norms and embeddings as layers.

use candle_core::{Module, Result, Tensor};
use candle_nn::VarBuilder;
use candle_nn::layer_norm::LayerNormConfig;
use tma_kernels::model;
use tma_runtime::prelude::*;

use crate::backward::Backward;
use crate::by_element;
use crate::operation::Operation;
use crate::ops::{self, Norm};

/// RMSNorm with a weight for each column.
#[derive(Clone, Debug)]
pub struct RmsNorm(candle_nn::RmsNorm);

impl RmsNorm {
    /// Makes a layer.
    pub fn new(weight: Tensor, eps: f64) -> Self {
        Self(candle_nn::RmsNorm::new(weight, eps))
    }

    /// Returns the weight.
    pub fn weight(&self) -> &Tensor {
        self.0.weight()
    }

    /// Adds `x` to `residual`, which is changed where it is, and returns the norm of the sum.
    ///
    /// # Errors
    ///
    /// Those of [`ops::rms_norm_residual`].
    pub fn forward_residual(&self, x: &Tensor, residual: &Tensor) -> Result<Tensor> {
        ops::rms_norm_residual(x, residual, self.0.weight(), self.0.eps() as f32)
    }
}

impl From<candle_nn::RmsNorm> for RmsNorm {
    fn from(layer: candle_nn::RmsNorm) -> Self {
        Self(layer)
    }
}

impl Module for RmsNorm {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::rms_norm(x, self.0.weight(), self.0.eps() as f32)
    }
}

/// LayerNorm with a weight and perhaps a bias for each column.
#[derive(Clone, Debug)]
pub struct LayerNorm(candle_nn::LayerNorm);

impl LayerNorm {
    /// Makes a layer.
    pub fn new(weight: Tensor, bias: Tensor, eps: f64) -> Self {
        Self(candle_nn::LayerNorm::new(weight, bias, eps))
    }

    /// Makes a layer without a bias.
    pub fn new_no_bias(weight: Tensor, eps: f64) -> Self {
        Self(candle_nn::LayerNorm::new_no_bias(weight, eps))
    }

    /// Adds `x` to `residual`, which is changed where it is, and returns the norm of the sum.
    ///
    /// # Errors
    ///
    /// Those of [`ops::layer_norm_residual`].
    pub fn forward_residual(&self, x: &Tensor, residual: &Tensor) -> Result<Tensor> {
        self.of(x, Some(residual))
    }

    fn of(&self, x: &Tensor, residual: Option<&Tensor>) -> Result<Tensor> {
        let is_centred = self.0.remove_mean();
        let name = if is_centred { "layer-norm" } else { "rms-norm" };
        let (weight, bias) = (self.0.weight(), self.0.bias());
        Norm { name, is_centred, weight, bias, eps: self.0.eps() as f32 }.of(x, residual)
    }
}

impl From<candle_nn::LayerNorm> for LayerNorm {
    fn from(layer: candle_nn::LayerNorm) -> Self {
        Self(layer)
    }
}

impl Module for LayerNorm {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.of(x, None)
    }
}

/// An embedding: rows of a table, by their numbers.
#[derive(Clone, Debug)]
pub struct Embedding {
    table: Tensor,
    columns: usize,
}

impl Embedding {
    /// Makes a layer of a table, vocabulary × `hidden_size`.
    pub fn new(embeddings: Tensor, hidden_size: usize) -> Self {
        Self { table: embeddings, columns: hidden_size }
    }

    /// Returns the table.
    pub fn embeddings(&self) -> &Tensor {
        &self.table
    }

    /// Returns the number of columns.
    pub fn hidden_size(&self) -> usize {
        self.columns
    }
}

impl From<candle_nn::Embedding> for Embedding {
    fn from(layer: candle_nn::Embedding) -> Self {
        Self::new(layer.embeddings().clone(), layer.hidden_size())
    }
}

impl Module for Embedding {
    /// Returns the rows of numbers in U32, of any shape. A number beyond the table produces zeros.
    fn forward(&self, indexes: &Tensor) -> Result<Tensor> {
        let inputs = [("indexes", indexes), ("embeddings", &self.table)];
        let operation = Operation::new("embedding", &inputs).with_backward(Backward::Embedding);
        operation.check_rank("embeddings", &["vocabulary", "columns"])?;
        let shape = [indexes.dims(), &[self.columns]].concat();
        by_element!(operation.name, "embeddings", &self.table, [bf16, f16, f32], T => {
            operation.run::<T>(shape, |call| {
                let (table, tokens) = (call.input::<T, 2>("embeddings")?, call.input("indexes")?);
                Ok(model::embedding(call.on(), table, tokens, call.output()?, 1.0)?)
            })
        })
    }
}

/// Makes a layer from the variable `weight`.
///
/// # Errors
///
/// Those of the variable.
pub fn rms_norm(size: usize, eps: f64, vb: VarBuilder<'_>) -> Result<RmsNorm> {
    Ok(candle_nn::rms_norm(size, eps, vb)?.into())
}

/// Makes a layer from the variables `weight` and, with the bias of the configuration, `bias`.
///
/// # Errors
///
/// Those of the variables.
pub fn layer_norm<C: Into<LayerNormConfig>>(size: usize, config: C, vb: VarBuilder<'_>) -> Result<LayerNorm> {
    Ok(candle_nn::layer_norm(size, config, vb)?.into())
}

/// Makes a layer from the variable `weight`.
///
/// # Errors
///
/// Those of the variable.
pub fn layer_norm_no_bias(size: usize, eps: f64, vb: VarBuilder<'_>) -> Result<LayerNorm> {
    Ok(candle_nn::layer_norm_no_bias(size, eps, vb)?.into())
}

/// Makes a layer of the variable `weight`, a table of `in_size` rows.
///
/// # Errors
///
/// Those of the variable.
pub fn embedding(in_size: usize, out_size: usize, vb: VarBuilder<'_>) -> Result<Embedding> {
    Ok(candle_nn::embedding(in_size, out_size, vb)?.into())
}
