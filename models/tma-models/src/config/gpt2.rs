//! Configurations of GPT-2.

use serde::Deserialize;

use super::{Activation, Config, Family, NormKind, Positions, Tokens, WeightFormat, bounded, setting};
use crate::ModelError;

/// The settings of GPT-2.
#[derive(Deserialize)]
pub(super) struct Gpt2Settings {
    vocab_size: usize,
    n_embd: usize,
    n_layer: usize,
    n_head: usize,
    n_positions: usize,
    n_inner: Option<usize>,
    layer_norm_epsilon: f32,
    activation_function: Option<String>,
    tie_word_embeddings: Option<bool>,
    scale_attn_weights: Option<bool>,
    scale_attn_by_inverse_layer_idx: Option<bool>,
    eos_token_id: Option<Tokens>,
}

pub(super) fn config(found: &Gpt2Settings) -> Result<Config, ModelError> {
    bounded(
        ("n_layer", found.n_layer),
        &[
            ("vocab_size", found.vocab_size),
            ("n_embd", found.n_embd),
            ("n_head", found.n_head),
            ("n_positions", found.n_positions),
            ("n_inner", found.n_inner.unwrap_or(0)),
        ],
    )?;
    let (width, heads) = (found.n_embd, found.n_head);
    if heads == 0 || !width.is_multiple_of(heads) {
        return Err(setting("n_head", heads.to_string(), "a divisor of n_embd"));
    }
    match found.activation_function.as_deref().unwrap_or("gelu_new") {
        "gelu_new" | "gelu_pytorch_tanh" => {}
        other => return Err(setting("activation_function", other, "gelu_new")),
    }
    if found.scale_attn_weights == Some(false) {
        return Err(setting("scale_attn_weights", "false", "true"));
    }
    if found.scale_attn_by_inverse_layer_idx == Some(true) {
        return Err(setting("scale_attn_by_inverse_layer_idx", "true", "false"));
    }
    let depth = width / heads;
    Ok(Config {
        family: Family::Gpt2,
        vocabulary: found.vocab_size,
        width,
        mlp_width: found.n_inner.unwrap_or(4 * width),
        mixture: None,
        activation: Activation::GeluTanh,
        heads,
        key_heads: heads,
        depth,
        windows: vec![None; found.n_layer],
        score_scale: 1.0 / (depth as f32).sqrt(),
        score_cap: None,
        logit_cap: None,
        norm: NormKind::Layer,
        epsilon: found.layer_norm_epsilon,
        norms_results: false,
        norms_heads: false,
        positions: Positions::Learned,
        embedding_scale: 1.0,
        is_tied: found.tie_word_embeddings.unwrap_or(true),
        has_query_bias: true,
        has_output_bias: true,
        has_mlp_bias: true,
        context: found.n_positions,
        ends: Tokens::all(&found.eos_token_id),
        weights: WeightFormat::Bf16,
    })
}
