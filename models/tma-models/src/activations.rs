//! The memory of a forward pass.

use tma_kernels::cached::CacheWorkspace;
use tma_runtime::prelude::*;

use crate::ModelError;
use crate::config::{Config, Positions, WeightFormat};
use crate::linear::ProductMemory;
use crate::mixture::MixtureActivations;

/// Memory for the values between kernels. Only one batch at a time may use it.
#[derive(Debug)]
pub struct Activations {
    /// The result of the last attention or MLP: rows × width.
    pub(crate) result: DeviceTensor<bf16, 2>,
    /// The same after its own norm.
    pub(crate) normed_result: DeviceTensor<bf16, 2>,
    /// The sum of the embedding and all results before the last one.
    pub(crate) residual: DeviceTensor<bf16, 2>,
    pub(crate) normed: DeviceTensor<bf16, 2>,
    pub(crate) qkv: DeviceTensor<bf16, 2>,
    /// Queries and keys after the norms of their heads.
    pub(crate) normed_heads: DeviceTensor<bf16, 2>,
    pub(crate) rotated: DeviceTensor<bf16, 2>,
    pub(crate) attended: DeviceTensor<bf16, 2>,
    pub(crate) up: DeviceTensor<bf16, 2>,
    pub(crate) gated: DeviceTensor<bf16, 2>,
    /// The memory of layers with experts.
    pub(crate) mixture: Option<MixtureActivations>,
    /// Rows × vocabulary.
    pub(crate) logits: DeviceTensor<f32, 2>,
    /// The number of keys of each sequence with the new ones.
    pub(crate) lengths: DeviceTensor<u32, 1>,
    pub(crate) products: ProductMemory,
    pub(crate) attention: CacheWorkspace,
}

impl Activations {
    /// Allocates memory for batches of up to so many tokens, and logits of up to so many.
    ///
    /// # Errors
    ///
    /// Errors of the device.
    pub fn new(device: &Device, config: &Config, rows: usize, logits: usize) -> Result<Self, ModelError> {
        let Config { width, heads, key_heads, depth, mlp_width, vocabulary, .. } = *config;
        let normed_heads = if config.norms_heads { rows } else { 0 };
        let rotated = match config.positions {
            Positions::Rotary(_) => rows,
            Positions::Learned => 0,
        };
        let of_mlp = if config.has_mlp() { rows } else { 0 };
        let mixture = config.mixture.as_ref();
        let columns = width.max(mlp_width).max(heads * depth);
        Ok(Self {
            result: device.zeros([rows, width])?,
            normed_result: device.zeros([if config.norms_results { rows } else { 0 }, width])?,
            residual: device.zeros([rows, width])?,
            normed: device.zeros([rows, width])?,
            qkv: device.zeros([rows, config.qkv_columns()])?,
            normed_heads: device.zeros([normed_heads, (heads + key_heads) * depth])?,
            rotated: device.zeros([rotated, (heads + key_heads) * depth])?,
            attended: device.zeros([rows, heads * depth])?,
            up: device.zeros([of_mlp, config.up_columns()])?,
            gated: device.zeros([if config.activation.is_gated() { of_mlp } else { 0 }, mlp_width])?,
            mixture: mixture.map(|found| MixtureActivations::new(device, width, found, rows)).transpose()?,
            // Rows begin at multiples of 16 bytes.
            logits: device.zeros([logits, vocabulary.next_multiple_of(4)])?,
            lengths: device.zeros([rows])?,
            products: ProductMemory::new(device, rows, columns, config.weights != WeightFormat::Bf16)?,
            attention: CacheWorkspace::new(device)?,
        })
    }

    /// Returns the logits of the last batch, rows × vocabulary, of so many rows.
    ///
    /// # Errors
    ///
    /// Errors of the device if there are not so many.
    pub fn logits(&self, rows: usize, vocabulary: usize) -> Result<TensorView<'_, f32, 2>, ModelError> {
        Ok(self.logits.view().slice([0..rows, 0..vocabulary])?)
    }
}
