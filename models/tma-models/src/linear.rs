//! Products with weights.

use tma_kernels::gemm::{
    self, GatedOptions, GemmOptions, QuantizedOptions, Scales, gemm, gemm_gated, gemm_quantized, gemm_scaled,
};
use tma_kernels::model::{Gate, ScaleBlocks, ScalesMut, activate, gated_packed, quantize};
use tma_runtime::launch::LaunchOn;
use tma_runtime::prelude::*;

use crate::ModelError;
use crate::loader::{Linear, Matrix};
use crate::quantized::BLOCK;

/// The most rows that are multiplied with weights of `e4m3` as they are. More are quantised, and
/// multiplied by instructions for `e4m3`.
const MOST_ROWS: usize = 8;

/// Memory for products.
#[derive(Debug)]
pub(crate) struct ProductMemory {
    pub(crate) gemm: gemm::Workspace,
    /// Quantised activations. Empty if no weights are.
    quantized: DeviceTensor<e4m3, 1>,
    scales: DeviceTensor<f32, 1>,
}

impl ProductMemory {
    /// Allocates memory for products of so many rows with weights that have up to so many columns.
    pub(crate) fn new(
        device: &Device,
        rows: usize,
        columns: usize,
        has_quantized: bool,
    ) -> Result<Self, ModelError> {
        let rows = if has_quantized && rows > MOST_ROWS { rows } else { 0 };
        Ok(Self {
            gemm: gemm::Workspace::new(device)?,
            quantized: device.zeros([rows * columns])?,
            scales: device.zeros([rows * columns.div_ceil(BLOCK)])?,
        })
    }
}

/// A product: `x · weightᵀ + bias`, or `gelu` of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Product<'a> {
    pub(crate) linear: &'a Linear,
    /// Whether `gelu` is applied, by `tanh`.
    pub(crate) has_gelu: bool,
}

impl<'a> From<&'a Linear> for Product<'a> {
    fn from(linear: &'a Linear) -> Self {
        Self { linear, has_gelu: false }
    }
}

/// Queues a product.
pub(crate) fn multiply(
    on: &impl LaunchOn,
    product: Product<'_>,
    x: TensorView<'_, bf16, 2>,
    mut out: TensorViewMut<'_, bf16, 2>,
    memory: &mut ProductMemory,
) -> Result<(), ModelError> {
    let Product { linear, has_gelu } = product;
    let [rows, columns] = x.shape();
    match &linear.weight {
        Matrix::Bf16(weight) => {
            let options = GemmOptions {
                transpose_b: true,
                bias: linear.bias.as_ref().map(DeviceTensor::view),
                activation: if has_gelu { gemm::Activation::Gelu } else { gemm::Activation::None },
                constant_b: true,
                workspace: Some(&mut memory.gemm),
                ..GemmOptions::default()
            };
            return Ok(gemm(on, x, weight, out, options)?);
        }
        Matrix::E4m3(weight, scales) if rows <= MOST_ROWS => {
            let options = QuantizedOptions { scales: Some(scales.view()), constant_b: true };
            gemm_quantized(on, x, weight, out.reborrow(), options)?;
        }
        Matrix::E4m3(weight, of_b) => {
            let blocks = columns.div_ceil(BLOCK);
            if memory.quantized.len() < rows * columns {
                return Err(ModelError::OtherActivations);
            }
            let mut quantized = memory.quantized.view_mut().with_strides([rows, columns], [columns, 1])?;
            let mut of_a = memory.scales.view_mut().with_strides([rows, blocks], [blocks, 1])?;
            let to = ScalesMut { blocks: ScaleBlocks::Columns128, scales: of_a.reborrow() };
            quantize(on, x, quantized.reborrow(), to)?;
            let scales = Scales { a: of_a.as_view(), b: of_b.view() };
            gemm_scaled(on, quantized.as_view(), weight, Some(scales), out.reborrow())?;
        }
    }
    if has_gelu {
        activate(on, Gate::GeluTanh, out)?;
    }
    Ok(())
}

/// A product with a gate: the rows of the weight are those of the gate's matrix and then those of
/// another one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GatedProduct<'a> {
    pub(crate) linear: &'a Linear,
    pub(crate) gate: Gate,
}

/// Queues a product with a gate. `between` has the columns of both matrices.
pub(crate) fn multiply_gated(
    on: &impl LaunchOn,
    product: GatedProduct<'_>,
    x: TensorView<'_, bf16, 2>,
    mut between: TensorViewMut<'_, bf16, 2>,
    out: TensorViewMut<'_, bf16, 2>,
    memory: &mut ProductMemory,
) -> Result<(), ModelError> {
    let GatedProduct { linear, gate } = product;
    if let (Matrix::Bf16(weight), None) = (&linear.weight, &linear.bias) {
        let [rows, columns] = weight.shape();
        let weight = weight.view().with_strides([2, rows / 2, columns], [rows / 2 * columns, columns, 1])?;
        let options =
            GatedOptions { constant_b: true, products: Some(between), workspace: Some(&mut memory.gemm) };
        return Ok(gemm_gated(on, x, weight, out, gate, options)?);
    }
    multiply(on, linear.into(), x, between.reborrow(), memory)?;
    Ok(gated_packed(on, gate, between.as_view(), out)?)
}
