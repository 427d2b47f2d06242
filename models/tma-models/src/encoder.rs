//! Encoders: hidden states of whole texts, as BERT computes them.

use std::path::Path;

use serde::Deserialize;
use tma_kernels::cached::{CacheWorkspace, CachedAttentionOptions, KeyValueCache, cached_attention};
use tma_kernels::model::{Gate, NormOptions, activate, embedding, layer_norm};
use tma_runtime::launch::LaunchOn;
use tma_runtime::prelude::*;

use crate::ModelError;
use crate::config::WeightFormat;
use crate::heads::Heads;
use crate::json::read_json;
use crate::linear::{ProductMemory, multiply};
use crate::loader::{Linear, Loaded, Loader, Norm, Source};
use crate::views::{first_rows, first_rows_mut};

/// The extents and options of an encoder, as `config.json` has them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct EncoderConfig {
    /// The family: `bert`.
    pub model_type: String,
    /// Tokens of the vocabulary.
    #[serde(rename = "vocab_size")]
    pub vocabulary: usize,
    /// Elements of a hidden state.
    #[serde(rename = "hidden_size")]
    pub width: usize,
    /// Elements between the matrices of an MLP.
    #[serde(rename = "intermediate_size")]
    pub mlp_width: usize,
    /// Layers.
    #[serde(rename = "num_hidden_layers")]
    pub layers: usize,
    /// Heads of queries, keys and values.
    #[serde(rename = "num_attention_heads")]
    pub heads: usize,
    /// The greatest number of tokens of a text.
    #[serde(rename = "max_position_embeddings")]
    pub context: usize,
    /// Kinds of tokens, of which only the first one is used.
    #[serde(rename = "type_vocab_size")]
    pub kinds: usize,
    /// The number that norms add to variances.
    #[serde(rename = "layer_norm_eps")]
    pub epsilon: f32,
    /// The function between the matrices of an MLP: `gelu`.
    pub hidden_act: String,
    /// The encoding of positions: `absolute`.
    #[serde(default = "absolute")]
    pub position_embedding_type: String,
}

fn absolute() -> String {
    "absolute".into()
}

impl EncoderConfig {
    /// Reads `config.json` of a folder.
    ///
    /// # Errors
    ///
    /// [`ModelError::File`], [`ModelError::Json`], [`ModelError::Architecture`] and
    /// [`ModelError::Setting`].
    pub fn open(folder: &Path) -> Result<Self, ModelError> {
        let config: Self = read_json(folder.join("config.json"))?;
        config.check()?;
        Ok(config)
    }

    /// Returns the number of elements of a head.
    pub fn depth(&self) -> usize {
        self.width / self.heads.max(1)
    }

    fn check(&self) -> Result<(), ModelError> {
        if self.model_type != "bert" {
            return Err(ModelError::Architecture { found: self.model_type.clone(), known: "bert".into() });
        }
        let setting = |name, found: &dyn ToString, wanted| {
            Err(ModelError::Setting { name, found: found.to_string(), wanted })
        };
        if self.heads == 0 || !self.width.is_multiple_of(self.heads) {
            return setting("num_attention_heads", &self.heads, "a divisor of hidden_size");
        }
        if !(self.depth().is_multiple_of(8) && (8..=128).contains(&self.depth())) {
            return setting("hidden_size", &self.width, "heads of up to 128 elements, a multiple of 8");
        }
        if self.mlp_width == 0 || !self.mlp_width.is_multiple_of(8) {
            return setting("intermediate_size", &self.mlp_width, "a multiple of 8");
        }
        if self.hidden_act != "gelu" {
            return setting("hidden_act", &self.hidden_act, "gelu");
        }
        if self.position_embedding_type != absolute() {
            return setting("position_embedding_type", &self.position_embedding_type, "absolute");
        }
        if [self.vocabulary, self.width, self.mlp_width, self.layers, self.context]
            .iter()
            .any(|x| *x > 1 << 24)
        {
            return setting("hidden_size", &self.width, "extents of at most 2^24");
        }
        if self.kinds == 0 {
            return setting("type_vocab_size", &self.kinds, "at least 1");
        }
        Ok(())
    }
}

/// An encoder whose weights are on a device.
#[derive(Debug)]
pub struct Encoder {
    config: EncoderConfig,
    device: Device,
    tokens: DeviceTensor<bf16, 2>,
    /// A row for each position, with that of the first kind of token added.
    positions: DeviceTensor<bf16, 2>,
    norm: Norm,
    layers: Vec<Layer>,
}

/// The tensors of a layer.
#[derive(Debug)]
struct Layer {
    qkv: Linear,
    output: Linear,
    after_attention: Norm,
    up: Linear,
    down: Linear,
    after_mlp: Norm,
}

/// Texts of up to so many tokens, one after the other; those beyond its length do not count.
#[derive(Clone, Copy, Debug)]
pub struct Texts<'a> {
    /// The tokens: texts × tokens of the longest one.
    pub tokens: TensorView<'a, u32, 1>,
    /// The position of each token in its text.
    pub positions: TensorView<'a, u32, 1>,
    /// The number of tokens of each text.
    pub lengths: TensorView<'a, u32, 1>,
}

/// Memory for the values between kernels. Only one batch of texts at a time may use it.
#[derive(Debug)]
pub struct EncoderActivations {
    hidden: DeviceTensor<bf16, 2>,
    /// The input of a layer's second half, and the sum with its result.
    sum: DeviceTensor<bf16, 2>,
    result: DeviceTensor<bf16, 2>,
    qkv: DeviceTensor<bf16, 2>,
    attended: DeviceTensor<bf16, 2>,
    up: DeviceTensor<bf16, 2>,
    products: ProductMemory,
    attention: CacheWorkspace,
}

impl EncoderActivations {
    /// Allocates memory for texts of up to so many tokens together.
    ///
    /// # Errors
    ///
    /// Errors of the device.
    pub fn new(device: &Device, config: &EncoderConfig, rows: usize) -> Result<Self, ModelError> {
        let wide = || device.zeros([rows, config.width]);
        Ok(Self {
            hidden: wide()?,
            sum: wide()?,
            result: wide()?,
            qkv: device.zeros([rows, 3 * config.width])?,
            attended: wide()?,
            up: device.zeros([rows, config.mlp_width])?,
            products: ProductMemory::new(device, rows, 0, false)?,
            attention: CacheWorkspace::new(device)?,
        })
    }

    /// Returns the hidden states of the last texts, of so many tokens: rows × width.
    ///
    /// # Errors
    ///
    /// Errors of the device if there are not so many.
    pub fn hidden(&self, rows: usize) -> Result<TensorView<'_, bf16, 2>, ModelError> {
        first_rows(&self.hidden, rows)
    }

    /// Waits, and returns the same on the host.
    ///
    /// # Errors
    ///
    /// Errors of the device.
    pub fn hidden_to_vec(&self, rows: usize) -> Result<Vec<bf16>, ModelError> {
        let [_, width] = self.hidden.shape();
        let mut all = self.hidden.to_vec()?;
        all.truncate(rows * width);
        Ok(all)
    }
}

impl Encoder {
    /// Loads the weights of a model. `loaded` is called with the bytes that were loaded so far.
    ///
    /// # Errors
    ///
    /// Tensors that are missing or do not match the configuration, and errors of the device.
    pub fn load(
        device: &Device,
        config: EncoderConfig,
        source: Source<'_>,
        loaded: &mut dyn FnMut(Loaded),
    ) -> Result<Self, ModelError> {
        let mut loader = Loader::new(device, source, WeightFormat::Bf16, loaded);
        let prefix = if loader.has("bert.embeddings.word_embeddings.weight") { "bert." } else { "" };
        let name = |rest: &str| format!("{prefix}{rest}");
        let width = config.width;
        let mut positions = vec![];
        loader.append(
            &name("embeddings.position_embeddings.weight"),
            &[config.context, width],
            &mut positions,
        )?;
        let mut kinds = vec![];
        loader.append(
            &name("embeddings.token_type_embeddings.weight"),
            &[config.kinds, width],
            &mut kinds,
        )?;
        for row in positions.chunks_mut(width) {
            for (x, kind) in row.iter_mut().zip(&kinds) {
                *x = bf16::from_f32(x.to_f32() + kind.to_f32());
            }
        }
        let tokens = (name("embeddings.word_embeddings.weight"), config.vocabulary);
        Ok(Self {
            tokens: loader.matrix(&[tokens], width)?,
            positions: loader.upload(&positions, [config.context, width])?,
            norm: loader.norm(&name("embeddings.LayerNorm"), width, true)?,
            layers: (0..config.layers)
                .map(|i| layer(&mut loader, &config, &name(&format!("encoder.layer.{i}."))))
                .collect::<Result<_, _>>()?,
            device: device.clone(),
            config,
        })
    }

    /// Returns the extents and options of the model.
    pub fn config(&self) -> &EncoderConfig {
        &self.config
    }

    /// Returns the device of the weights.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Queues the computation of hidden states, which [`EncoderActivations::hidden`] returns.
    /// Nothing waits. A position beyond the context counts as a row of zeros.
    ///
    /// # Errors
    ///
    /// Texts that do not fit the activations, and errors of the device.
    pub fn forward(
        &self,
        on: &impl LaunchOn,
        texts: &Texts<'_>,
        activations: &mut EncoderActivations,
    ) -> Result<(), ModelError> {
        let ([rows], [count]) = (texts.tokens.shape(), texts.lengths.shape());
        if rows == 0 || count == 0 {
            return Ok(());
        }
        if !rows.is_multiple_of(count) {
            return Err(ModelError::Batch { tokens: rows, sequences: count });
        }
        let EncoderActivations { hidden, sum, result, qkv, attended, up, products, attention } = activations;
        embedding(on, &self.tokens, texts.tokens, first_rows_mut(sum, rows)?, 1.0)?;
        embedding(on, &self.positions, texts.positions, first_rows_mut(result, rows)?, 1.0)?;
        self.add_and_norm(on, &self.norm, [&mut *result, &mut *sum, &mut *hidden], rows)?;

        let heads = self.config.heads;
        let (sequences, tokens, depth) = (count, rows / count, self.config.depth());
        let at = |first| Heads { sequences, tokens, first, count: heads, depth };
        for layer in &self.layers {
            let (x, out) = (first_rows(hidden, rows)?, first_rows_mut(qkv, rows)?);
            multiply(on, (&layer.qkv).into(), x, out, products)?;
            let [q, k, v] = [0, heads, 2 * heads].map(|first| at(first).view(qkv));
            let keys = KeyValueCache::contiguous(k?, v?).with_lengths(texts.lengths);
            let options = CachedAttentionOptions { workspace: Some(attention), ..Default::default() };
            cached_attention(on, q?, keys, at(0).view_mut(attended.view_mut())?, options)?;
            let (x, out) = (first_rows(attended, rows)?, first_rows_mut(result, rows)?);
            multiply(on, (&layer.output).into(), x, out, products)?;
            self.add_and_norm(on, &layer.after_attention, [&mut *result, &mut *hidden, &mut *sum], rows)?;

            multiply(on, (&layer.up).into(), first_rows(sum, rows)?, first_rows_mut(up, rows)?, products)?;
            activate(on, Gate::Gelu, first_rows_mut(up, rows)?)?;
            let (x, out) = (first_rows(up, rows)?, first_rows_mut(result, rows)?);
            multiply(on, (&layer.down).into(), x, out, products)?;
            self.add_and_norm(on, &layer.after_mlp, [&mut *result, &mut *sum, &mut *hidden], rows)?;
        }
        Ok(())
    }

    /// Normalises the sum of the first two tensors to the third one. The sum replaces the second
    /// one.
    fn add_and_norm(
        &self,
        on: &impl LaunchOn,
        norm: &Norm,
        tensors: [&mut DeviceTensor<bf16, 2>; 3],
        rows: usize,
    ) -> Result<(), ModelError> {
        let [x, residual, out] = tensors;
        let options = NormOptions {
            weight: Some(norm.weight.view()),
            bias: norm.bias.as_ref().map(DeviceTensor::view),
            epsilon: self.config.epsilon,
            residual: Some(first_rows_mut(residual, rows)?),
            ..Default::default()
        };
        Ok(layer_norm(on, first_rows(x, rows)?, first_rows_mut(out, rows)?, options)?)
    }
}

fn layer(loader: &mut Loader<'_>, config: &EncoderConfig, prefix: &str) -> Result<Layer, ModelError> {
    let EncoderConfig { width, mlp_width, .. } = *config;
    let name = |rest: &str| format!("{prefix}{rest}");
    let qkv = ["query", "key", "value"].map(|part| (name(&format!("attention.self.{part}")), width));
    Ok(Layer {
        qkv: loader.linear(&qkv, width, false, true)?,
        output: loader.linear(&[(name("attention.output.dense"), width)], width, false, true)?,
        after_attention: loader.norm(&name("attention.output.LayerNorm"), width, true)?,
        up: loader.linear(&[(name("intermediate.dense"), mlp_width)], width, false, true)?,
        down: loader.linear(&[(name("output.dense"), width)], mlp_width, false, true)?,
        after_mlp: loader.norm(&name("output.LayerNorm"), width, true)?,
    })
}
