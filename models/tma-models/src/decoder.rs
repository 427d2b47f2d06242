//! A decoder with its weights on a device.

use tma_kernels::model::rotary_tables;
use tma_runtime::launch::LaunchOn;
use tma_runtime::prelude::*;

use crate::ModelError;
use crate::activations::Activations;
use crate::cache::Cache;
use crate::config::{Config, Positions};
use crate::forward;
use crate::loader::{Loaded, Loader, Source};
use crate::weights::Weights;

/// A decoder whose weights are on a device.
#[derive(Debug)]
pub struct Decoder {
    config: Config,
    device: Device,
    pub(crate) weights: Weights,
    /// Cosines and sines: positions × pairs of columns.
    pub(crate) rotary: Option<[DeviceTensor<f32, 2>; 2]>,
}

/// New tokens of several sequences, as many of each.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The tokens: sequences × tokens of each.
    pub tokens: TensorView<'a, u32, 1>,
    /// The positions of the tokens. They are read only by models that learn positions.
    pub positions: TensorView<'a, u32, 1>,
    /// The number of tokens that each sequence has in the cache.
    pub lengths: TensorView<'a, u32, 1>,
    /// The number of new tokens of each sequence that are written to the cache.
    pub counts: TensorView<'a, u32, 1>,
    /// The pages of each sequence: sequences × pages of the longest one.
    pub table: TensorView<'a, u32, 2>,
    /// Whether no sequence has tokens in the cache: then attention need not read it.
    pub is_first: bool,
    /// The tokens whose logits are computed.
    pub wanted: Wanted,
    /// Whether keys are divided among blocks in the same way whatever other sequences there are.
    /// Otherwise the order in which results are added depends on the lengths of all.
    pub is_reproducible: bool,
}

/// The tokens of a batch whose logits are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The last token of each sequence. Its count of new tokens must be that of the batch.
    Last,
    /// All tokens.
    All,
    /// None.
    Nothing,
}

impl Decoder {
    /// Loads the weights of a model. `loaded` is called with the bytes that were loaded so far.
    ///
    /// # Errors
    ///
    /// Tensors that are missing or do not match the configuration, and errors of the device.
    pub fn load(
        device: &Device,
        config: Config,
        source: Source<'_>,
        loaded: &mut dyn FnMut(Loaded),
    ) -> Result<Self, ModelError> {
        let rotary = match &config.positions {
            Positions::Learned => None,
            Positions::Rotary(settings) => {
                let positions = u32::try_from(config.context).unwrap_or(u32::MAX);
                let (cos, sin) = rotary_tables(0..positions, config.depth, settings.base, settings.scaling);
                let shape = [config.context, config.depth / 2];
                Some([device.tensor(&cos, shape)?, device.tensor(&sin, shape)?])
            }
        };
        let weights = Weights::load(&mut Loader::new(device, source, config.weights, loaded), &config)?;
        Ok(Self { config, device: device.clone(), weights, rotary })
    }

    /// Returns the extents and options of the model.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the device of the weights.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Queues a batch: appends its keys and values to the cache, and computes logits, which
    /// [`Activations::logits`] returns.
    ///
    /// Nothing waits. Once the workspaces are large enough for such a batch, nothing is allocated
    /// either, so that it can be captured as a graph.
    ///
    /// # Errors
    ///
    /// A batch that does not fit the activations or the cache, and errors of the device.
    pub fn forward(
        &self,
        on: &impl LaunchOn,
        batch: &Batch<'_>,
        cache: &mut Cache,
        activations: &mut Activations,
    ) -> Result<(), ModelError> {
        forward::queue(self, on, batch, cache, activations)
    }
}
