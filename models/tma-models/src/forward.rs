//! The forward pass of a decoder: from tokens to logits.

use tma_kernels::AttentionOptions;
use tma_kernels::cached::{
    AppendOptions, CachedAttentionOptions, Division, KeyValueCache, KeyValueCacheMut, Rotary, RotaryLayout,
    RotaryQueries, append, cached_attention,
};
use tma_kernels::gemm::{GemmOptions, gemm};
use tma_kernels::model::{Gate, NormOptions, embedding, layer_norm, rms_norm, soft_cap};
use tma_runtime::launch::LaunchOn;
use tma_runtime::prelude::*;

use crate::ModelError;
use crate::activations::Activations;
use crate::cache::{Cache, LayerCache, PAGE_ROWS};
use crate::config::{Activation, Config, NormKind};
use crate::decoder::{Batch, Decoder, Wanted};
use crate::heads::Heads;
use crate::linear::{GatedProduct, Product, multiply, multiply_gated};
use crate::loader::{Linear, Norm};
use crate::mixture::{self, Experts};
use crate::views::{first_mut, first_rows, first_rows_mut};
use crate::weights::Mlp;

/// The keys of a block's unit if results must not depend on other sequences.
const UNIT_KEYS: usize = 512;

/// Queues a batch of a decoder.
pub(crate) fn queue(
    decoder: &Decoder,
    on: &impl LaunchOn,
    batch: &Batch<'_>,
    cache: &mut Cache,
    activations: &mut Activations,
) -> Result<(), ModelError> {
    let (rows, sequences) = (batch.tokens.shape()[0], batch.lengths.shape()[0]);
    if rows == 0 || sequences == 0 {
        return Ok(());
    }
    if !rows.is_multiple_of(sequences) {
        return Err(ModelError::Batch { tokens: rows, sequences });
    }
    if cache.layers.len() != decoder.weights.layers.len() {
        let [found, wanted] = [cache.layers.len(), decoder.weights.layers.len()];
        return Err(ModelError::CacheLayers { found, wanted });
    }
    let config = decoder.config();
    let mut pass =
        Pass { on, decoder, config, batch, sequences, tokens: rows / sequences, rows, activations };
    let mut has_result = pass.embed()?;
    for (layer, (weights, cache)) in decoder.weights.layers.iter().zip(&mut cache.layers).enumerate() {
        pass.add_and_norm(&weights.before_attention, has_result)?;
        pass.project(&weights.qkv)?;
        pass.attend(layer, weights.heads.as_ref(), cache)?;
        pass.output(&weights.output, weights.after_attention.as_ref())?;
        pass.add_and_norm(&weights.before_mlp, true)?;
        match &weights.mlp {
            Mlp::Dense { up, down } => pass.mlp(up, down)?,
            Mlp::Experts(experts) => pass.experts(experts)?,
        }
        pass.norm_result(weights.after_mlp.as_ref())?;
        has_result = true;
    }
    pass.logits()
}

/// A batch on its way through the layers.
struct Pass<'a, L> {
    on: &'a L,
    decoder: &'a Decoder,
    config: &'a Config,
    batch: &'a Batch<'a>,
    sequences: usize,
    /// New tokens of each sequence.
    tokens: usize,
    /// Tokens of all sequences.
    rows: usize,
    activations: &'a mut Activations,
}

impl<L: LaunchOn> Pass<'_, L> {
    /// Writes the embeddings to the residual. Returns whether there is also a result to add: the
    /// rows of positions.
    fn embed(&mut self) -> Result<bool, ModelError> {
        let weights = &self.decoder.weights;
        let residual = first_rows_mut(&mut self.activations.residual, self.rows)?;
        embedding(self.on, &weights.embedding, self.batch.tokens, residual, self.config.embedding_scale)?;
        let Some(positions) = &weights.positions else { return Ok(false) };
        let result = first_rows_mut(&mut self.activations.result, self.rows)?;
        embedding(self.on, positions, self.batch.positions, result, 1.0)?;
        Ok(true)
    }

    /// Adds the last result to the residual, and normalises the sum.
    fn add_and_norm(&mut self, norm: &Norm, has_result: bool) -> Result<(), ModelError> {
        let Activations { result, normed_result, residual, normed, .. } = &mut *self.activations;
        let out = first_rows_mut(normed, self.rows)?;
        if !has_result {
            return normalise(self.on, self.config, norm, first_rows(residual, self.rows)?, out, None);
        }
        let result = if self.config.norms_results { normed_result } else { result };
        let residual = Some(first_rows_mut(residual, self.rows)?);
        normalise(self.on, self.config, norm, first_rows(result, self.rows)?, out, residual)
    }

    /// Computes queries, keys and values.
    fn project(&mut self, qkv: &Linear) -> Result<(), ModelError> {
        let Activations { normed, qkv: out, products, .. } = &mut *self.activations;
        let (x, out) = (first_rows(normed, self.rows)?, first_rows_mut(out, self.rows)?);
        multiply(self.on, qkv.into(), x, out, products)
    }

    /// Appends keys and values to the cache, and computes attention.
    fn attend(
        &mut self,
        layer: usize,
        norms: Option<&[Norm; 2]>,
        cache: &mut LayerCache,
    ) -> Result<(), ModelError> {
        let (on, config, batch) = (self.on, self.config, self.batch);
        let Config { heads, key_heads, depth, .. } = *config;
        let window = config.windows[layer];
        let device = self.decoder.device();
        let (sequences, tokens) = (self.sequences, self.tokens);
        let at = |first, count| Heads { sequences, tokens, first, count, depth };
        let [of_q, of_k, of_v] = [at(0, heads), at(heads, key_heads), at(heads + key_heads, key_heads)];
        let Activations { qkv, normed_heads, rotated, attended, lengths, attention, .. } =
            &mut *self.activations;
        let mut q_and_k = &*qkv;
        if let Some(norms) = norms {
            for (norm, heads) in norms.iter().zip([of_q, of_k]) {
                let out = heads.view_mut(normed_heads.view_mut())?.permute([0, 2, 1, 3])?;
                normalise(on, config, norm, heads.view(qkv)?.permute([0, 2, 1, 3])?, out, None)?;
            }
            q_and_k = normed_heads;
        }
        let v = of_v.view(qkv)?;

        let has_only_these = batch.is_first && is_within(window, tokens) && is_plain(config);
        let rotary = match &self.decoder.rotary {
            None => None,
            Some([cos, sin]) => {
                // Keys are rotated for the cache, and also beside the queries if it is not read.
                let heads = at(0, if has_only_these { heads + key_heads } else { heads });
                let queries = RotaryQueries::To {
                    q: heads.view(q_and_k)?,
                    rotated: heads.view_mut(rotated.view_mut())?,
                };
                let (cos, sin) = (cos.view(), sin.view());
                Some(Rotary { cos, sin, layout: RotaryLayout::Halves, queries: Some(queries) })
            }
        };
        let LayerCache { keys, values } = cache;
        let mut lengths = first_mut(lengths, sequences)?;
        let grown = KeyValueCacheMut::paged(keys.view_mut(), values.view_mut(), batch.table);
        // The first layer writes the lengths after the batch for all layers.
        let new_lengths = (layer == 0).then(|| lengths.reborrow());
        let counts = Some(batch.counts);
        let options = AppendOptions { counts, new_lengths, rotary, constant_positions: true };
        append(on, of_k.view(q_and_k)?, v, grown.with_lengths(batch.lengths), options)?;
        if self.decoder.rotary.is_some() {
            q_and_k = rotated;
        }

        let (q, out) = (of_q.view(q_and_k)?, of_q.view_mut(attended.view_mut())?);
        if has_only_these {
            let scale = Some(config.score_scale);
            let options = AttentionOptions { causal: true, scale, ..Default::default() };
            return Ok(tma_kernels::attention(on, q, of_k.view(q_and_k)?, v, out, options)?);
        }
        let cache = KeyValueCache::paged(keys.view(), values.view(), batch.table);
        let division = batch.is_reproducible.then(|| {
            let most_keys = batch.table.shape()[1] * PAGE_ROWS;
            let (all_heads, rows) = (sequences * key_heads, tokens * heads / key_heads);
            // Enough units for the longest sequences, so that no number of keys but this one is
            // large enough for a unit.
            let units = all_heads * rows.div_ceil(16) * most_keys.div_ceil(UNIT_KEYS);
            Division { units, least_keys: UNIT_KEYS, ..Division::of(device, all_heads, most_keys, rows) }
        });
        let options = CachedAttentionOptions {
            causal: true,
            window,
            scale: Some(config.score_scale),
            soft_cap: config.score_cap,
            workspace: Some(attention),
            // The first layer writes the lengths. The next one begins when the product of its
            // queries has waited for all that is before.
            constant_cache: layer > 0,
            division,
            ..Default::default()
        };
        Ok(cached_attention(on, q, cache.with_lengths(lengths.as_view()), out, options)?)
    }

    /// Multiplies the heads' results by the last matrix of attention.
    fn output(&mut self, output: &Linear, norm: Option<&Norm>) -> Result<(), ModelError> {
        let Activations { attended, result, products, .. } = &mut *self.activations;
        let (x, out) = (first_rows(attended, self.rows)?, first_rows_mut(result, self.rows)?);
        multiply(self.on, output.into(), x, out, products)?;
        self.norm_result(norm)
    }

    fn mlp(&mut self, up: &Linear, down: &Linear) -> Result<(), ModelError> {
        let Activations { normed, up: wide, gated, products, result, .. } = &mut *self.activations;
        let (x, wide_rows) = (first_rows(normed, self.rows)?, first_rows_mut(wide, self.rows)?);
        let inner = match gate_of(self.config.activation) {
            None => {
                multiply(self.on, Product { linear: up, has_gelu: true }, x, wide_rows, products)?;
                wide
            }
            Some(gate) => {
                let out = first_rows_mut(gated, self.rows)?;
                multiply_gated(self.on, GatedProduct { linear: up, gate }, x, wide_rows, out, products)?;
                gated
            }
        };
        let (x, out) = (first_rows(inner, self.rows)?, first_rows_mut(result, self.rows)?);
        multiply(self.on, down.into(), x, out, products)
    }

    /// Computes the results of each token's experts.
    fn experts(&mut self, experts: &Experts) -> Result<(), ModelError> {
        let Activations { normed, mixture: memory, products, result, .. } = &mut *self.activations;
        let gate = gate_of(self.config.activation);
        let (Some(mixture), Some(memory), Some(gate)) = (&self.config.mixture, memory, gate) else {
            return Err(ModelError::OtherActivations);
        };
        let (x, out) = (first_rows(normed, self.rows)?, first_rows_mut(result, self.rows)?);
        let batch = mixture::Batch { x, out, rows: self.rows, gate };
        mixture::queue(self.on, mixture, experts, batch, memory, &mut products.gemm)
    }

    /// Normalises the last result by a norm of its own, if there is one.
    fn norm_result(&mut self, norm: Option<&Norm>) -> Result<(), ModelError> {
        let Some(norm) = norm else { return Ok(()) };
        let Activations { result, normed_result, .. } = &mut *self.activations;
        let out = first_rows_mut(normed_result, self.rows)?;
        normalise(self.on, self.config, norm, first_rows(result, self.rows)?, out, None)
    }

    /// Adds the last result, normalises, and computes the logits of the rows that are wanted.
    fn logits(&mut self) -> Result<(), ModelError> {
        let Config { width, vocabulary, .. } = *self.config;
        let (rows, first, step) = match self.batch.wanted {
            Wanted::Nothing => return Ok(()),
            Wanted::All => (self.rows, 0, 1),
            Wanted::Last => (self.sequences, self.tokens - 1, self.tokens),
        };
        let Activations { result, normed_result, residual, normed, logits, products, .. } =
            &mut *self.activations;
        let result = if self.config.norms_results { normed_result } else { result };
        let from = [first..first + (rows - 1) * step + 1, 0..width];
        let (shape, strides) = ([rows, width], [step * width, 1]);
        let x = result.view().slice(from.clone())?.with_strides(shape, strides)?;
        let residual = residual.view_mut().slice(from)?.with_strides(shape, strides)?;
        let weights = &self.decoder.weights;
        let out = first_rows_mut(normed, rows)?;
        normalise(self.on, self.config, &weights.last_norm, x, out, Some(residual))?;

        let table = weights.logits.as_ref().unwrap_or(&weights.embedding);
        let mut out = logits.view_mut().slice([0..rows, 0..vocabulary])?;
        let options = GemmOptions {
            transpose_b: true,
            constant_b: true,
            workspace: Some(&mut products.gemm),
            ..GemmOptions::default()
        };
        gemm(self.on, first_rows(normed, rows)?, table, out.reborrow(), options)?;
        match self.config.logit_cap {
            None => Ok(()),
            Some(cap) => Ok(soft_cap(self.on, out, cap)?),
        }
    }
}

/// Returns the activation of gates, if there are any.
fn gate_of(activation: Activation) -> Option<Gate> {
    match activation {
        Activation::GatedSilu => Some(Gate::Silu),
        Activation::GatedGeluTanh => Some(Gate::GeluTanh),
        Activation::GeluTanh => None,
    }
}

/// Returns whether a query sees all of so many tokens up to its own.
fn is_within(window: Option<usize>, tokens: usize) -> bool {
    window.is_none_or(|before| before + 1 >= tokens)
}

/// Returns whether `attention` has a kernel for the heads and scores of a model.
fn is_plain(config: &Config) -> bool {
    [64, 128, 256].contains(&config.depth) && config.score_cap.is_none()
}

/// Queues a norm of rows, to which those of `residual` are added before.
fn normalise<const N: usize>(
    on: &impl LaunchOn,
    config: &Config,
    norm: &Norm,
    x: TensorView<'_, bf16, N>,
    out: TensorViewMut<'_, bf16, N>,
    residual: Option<TensorViewMut<'_, bf16, N>>,
) -> Result<(), ModelError> {
    let options = NormOptions {
        weight: Some(norm.weight.view()),
        constant_weight: true,
        one_plus_weight: config.norm == NormKind::RmsOnePlus,
        bias: norm.bias.as_ref().map(DeviceTensor::view),
        epsilon: config.epsilon,
        residual,
    };
    match config.norm {
        NormKind::Layer => layer_norm(on, x, out, options)?,
        NormKind::Rms | NormKind::RmsOnePlus => rms_norm(on, x, out, options)?,
    }
    Ok(())
}
