//! Configurations of Llama and the models that follow it.

use serde::Deserialize;
use serde_json::Value;
use tma_kernels::model::RotaryScaling;
use tma_runtime::prelude::bf16;

use super::{
    Activation, Config, Family, NormKind, Positions, RotarySettings, Tokens, WeightFormat, bounded, setting,
};
use crate::ModelError;

/// The settings of Llama and the models that follow it.
#[derive(Deserialize)]
pub(super) struct LlamaSettings {
    vocab_size: usize,
    hidden_size: usize,
    intermediate_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    num_key_value_heads: Option<usize>,
    head_dim: Option<usize>,
    max_position_embeddings: usize,
    rms_norm_eps: f32,
    hidden_act: Option<String>,
    hidden_activation: Option<String>,
    tie_word_embeddings: Option<bool>,
    attention_bias: Option<bool>,
    mlp_bias: Option<bool>,
    sliding_window: Option<usize>,
    use_sliding_window: Option<bool>,
    max_window_layers: Option<usize>,
    layer_types: Option<Vec<String>>,
    partial_rotary_factor: Option<f64>,
    query_pre_attn_scalar: Option<f32>,
    attn_logit_softcapping: Option<f32>,
    final_logit_softcapping: Option<f32>,
    rope_theta: Option<f64>,
    rope_scaling: Option<Value>,
    rope_parameters: Option<Value>,
    eos_token_id: Option<Tokens>,
}

pub(super) fn config(family: Family, found: &LlamaSettings) -> Result<Config, ModelError> {
    bounded(
        ("num_hidden_layers", found.num_hidden_layers),
        &[
            ("vocab_size", found.vocab_size),
            ("hidden_size", found.hidden_size),
            ("intermediate_size", found.intermediate_size),
            ("num_attention_heads", found.num_attention_heads),
            ("num_key_value_heads", found.num_key_value_heads.unwrap_or(0)),
            ("head_dim", found.head_dim.unwrap_or(0)),
            ("max_position_embeddings", found.max_position_embeddings),
        ],
    )?;
    let is_gemma = family == Family::Gemma2;
    let heads = found.num_attention_heads;
    let depth = match found.head_dim {
        Some(depth) => depth,
        None if heads > 0 && found.hidden_size.is_multiple_of(heads) => found.hidden_size / heads,
        None => return Err(setting("num_attention_heads", heads.to_string(), "a divisor of hidden_size")),
    };
    let (name, activation) = match (&found.hidden_activation, &found.hidden_act) {
        (Some(activation), _) => ("hidden_activation", activation.as_str()),
        (None, Some(activation)) => ("hidden_act", activation.as_str()),
        (None, None) if is_gemma => ("hidden_activation", "gelu_pytorch_tanh"),
        (None, None) => ("hidden_act", "silu"),
    };
    let activation = match activation {
        "silu" | "swish" => Activation::GatedSilu,
        "gelu_pytorch_tanh" => Activation::GatedGeluTanh,
        other => return Err(setting(name, other, "silu or gelu_pytorch_tanh")),
    };
    let has_bias = found.attention_bias.unwrap_or(false);
    let scale = if is_gemma { found.query_pre_attn_scalar.unwrap_or(depth as f32) } else { depth as f32 };
    // The factor is rounded as the elements that it multiplies are in training.
    let root = half_rounded((found.hidden_size as f32).sqrt());
    Ok(Config {
        family,
        vocabulary: found.vocab_size,
        width: found.hidden_size,
        mlp_width: found.intermediate_size,
        mixture: None,
        activation,
        heads,
        key_heads: found.num_key_value_heads.unwrap_or(heads),
        depth,
        windows: windows(family, found)?,
        score_scale: 1.0 / scale.sqrt(),
        score_cap: found.attn_logit_softcapping.filter(|_| is_gemma),
        logit_cap: found.final_logit_softcapping.filter(|_| is_gemma),
        norm: if is_gemma { NormKind::RmsOnePlus } else { NormKind::Rms },
        epsilon: found.rms_norm_eps,
        norms_results: is_gemma,
        norms_heads: matches!(family, Family::Qwen3 | Family::Qwen3Moe),
        positions: Positions::Rotary(rotary(family, found)?),
        embedding_scale: if is_gemma { root } else { 1.0 },
        is_tied: found.tie_word_embeddings.unwrap_or(is_gemma),
        has_query_bias: has_bias || family == Family::Qwen2,
        has_output_bias: has_bias,
        has_mlp_bias: found.mlp_bias.unwrap_or(false),
        context: found.max_position_embeddings,
        ends: Tokens::all(&found.eos_token_id),
        weights: WeightFormat::Bf16,
    })
}

/// Returns a number rounded to `bf16`.
fn half_rounded(x: f32) -> f32 {
    bf16::from_f32(x).to_f32()
}

/// Returns the windows of all layers. A window of Hugging Face counts the query's own position.
fn windows(family: Family, found: &LlamaSettings) -> Result<Vec<Option<usize>>, ModelError> {
    let window = match found.sliding_window {
        Some(0) => return Err(setting("sliding_window", "0", "at least 1")),
        Some(keys) if found.use_sliding_window.unwrap_or(true) => Some(keys - 1),
        Some(_) | None => None,
    };
    let layers = found.num_hidden_layers;
    if let Some(types) = &found.layer_types {
        if types.len() != layers {
            return Err(setting("layer_types", types.len().to_string(), "one for each layer"));
        }
        let window_of = |kind: &String| match kind.as_str() {
            "sliding_attention" => Ok(window),
            "full_attention" => Ok(None),
            other => Err(setting("layer_types", other, "sliding_attention or full_attention")),
        };
        return types.iter().map(window_of).collect();
    }
    let slides = |layer: usize| match family {
        Family::Mistral | Family::Mixtral => true,
        Family::Gemma2 => layer.is_multiple_of(2),
        Family::Qwen2 | Family::Qwen3 => {
            found.use_sliding_window == Some(true) && layer >= found.max_window_layers.unwrap_or(layers)
        }
        Family::Qwen3Moe => found.use_sliding_window == Some(true),
        Family::Llama | Family::Gpt2 => false,
    };
    Ok((0..layers).map(|layer| window.filter(|_| slides(layer))).collect())
}

/// Returns the settings of the rotary embedding, which newer files have in `rope_parameters` and
/// older ones in `rope_theta` and `rope_scaling`.
fn rotary(family: Family, found: &LlamaSettings) -> Result<RotarySettings, ModelError> {
    let parameters = found.rope_parameters.as_ref().or(found.rope_scaling.as_ref());
    let parameters = parameters.and_then(Value::as_object);
    if parameters.is_some_and(|all| all.values().any(Value::is_object)) {
        return Err(setting("rope_parameters", "an object for each kind of layer", "one for all layers"));
    }
    let get = |name: &str| parameters.and_then(|all| all.get(name)).filter(|value| !value.is_null());
    for name in ["mscale", "mscale_all_dim", "truncate", "partial_rotary_factor"] {
        let is_usual = |value: &Value| *value == Value::Bool(true) || value.as_f64() == Some(1.0);
        if let Some(value) = get(name).filter(|value| !is_usual(value)) {
            return Err(setting("rope_parameters", format!("{name}: {value}"), "no such setting"));
        }
    }
    if let Some(factor) = found.partial_rotary_factor.filter(|factor| *factor != 1.0) {
        return Err(setting("partial_rotary_factor", factor.to_string(), "1"));
    }
    let number = |name: &str| get(name).and_then(Value::as_f64);
    let required = |name: &'static str| number(name).ok_or_else(|| setting(name, "nothing", "a number"));
    let usual_base = if family == Family::Mixtral { 1e6 } else { 1e4 };
    let base = number("rope_theta").or(found.rope_theta).unwrap_or(usual_base);
    let kind = get("rope_type").or_else(|| get("type")).and_then(Value::as_str);
    let context = number("original_max_position_embeddings").unwrap_or(found.max_position_embeddings as f64);
    let scaling = match kind.unwrap_or("default") {
        "default" => RotaryScaling::None,
        "linear" => RotaryScaling::Linear { factor: required("factor")? },
        "llama3" => RotaryScaling::Llama3 {
            factor: required("factor")?,
            low_frequency_factor: required("low_freq_factor")?,
            high_frequency_factor: required("high_freq_factor")?,
            original_positions: required("original_max_position_embeddings")?,
        },
        "yarn" => RotaryScaling::Yarn {
            factor: required("factor")?,
            original_positions: context,
            beta_fast: number("beta_fast").unwrap_or(32.0),
            beta_slow: number("beta_slow").unwrap_or(1.0),
            attention_factor: number("attention_factor"),
        },
        other => return Err(setting("rope_type", other, "default, linear, llama3 or yarn")),
    };
    Ok(RotarySettings { base, scaling })
}
