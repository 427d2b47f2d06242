//! The description of a decoder, independent of its family, from a `config.json` of Hugging Face.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use tma_kernels::model::RotaryScaling;

use crate::ModelError;

/// The families of models that [`Config::open`] knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Llama 2 and 3.
    Llama,
    /// Mistral, with a sliding window in all layers.
    Mistral,
    /// Qwen 2 and 2.5: biases of queries, keys and values.
    Qwen2,
    /// Qwen 3: norms of queries and keys.
    Qwen3,
    /// Gemma 2: norms after attention and MLP, limits of scores and logits.
    Gemma2,
    /// GPT-2: LayerNorm, learned positions, no gate.
    Gpt2,
}

impl Family {
    const ALL: [(&'static str, Self); 6] = [
        ("llama", Self::Llama),
        ("mistral", Self::Mistral),
        ("qwen2", Self::Qwen2),
        ("qwen3", Self::Qwen3),
        ("gemma2", Self::Gemma2),
        ("gpt2", Self::Gpt2),
    ];
}

/// The normalisation of hidden states.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NormKind {
    /// RMSNorm, times the weight.
    Rms,
    /// RMSNorm, times 1 + weight.
    RmsOnePlus,
    /// LayerNorm, with a bias.
    Layer,
}

/// The angles of a rotary embedding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RotarySettings {
    /// The base of the frequencies.
    pub base: f64,
    /// The change of frequencies for contexts that are longer than those of training.
    pub scaling: RotaryScaling,
}

/// The encoding of positions.
#[derive(Clone, Debug, PartialEq)]
pub enum Positions {
    /// Queries and keys are rotated.
    Rotary(RotarySettings),
    /// A row for each position is added to the embedding.
    Learned,
}

/// The function between the matrices of an MLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// silu(gate) · up.
    GatedSilu,
    /// gelu(gate) · up, by `tanh`.
    GatedGeluTanh,
    /// gelu(x), by `tanh`.
    GeluTanh,
}

impl Activation {
    /// Returns whether the MLP has gates.
    pub fn is_gated(self) -> bool {
        match self {
            Self::GatedSilu | Self::GatedGeluTanh => true,
            Self::GeluTanh => false,
        }
    }
}

/// The extents and options of a decoder.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The family, which names the tensors.
    pub family: Family,
    /// Tokens of the vocabulary.
    pub vocabulary: usize,
    /// Elements of a hidden state.
    pub width: usize,
    /// Elements between the matrices of an MLP.
    pub mlp_width: usize,
    /// The function between the matrices of an MLP.
    pub activation: Activation,
    /// Heads of queries.
    pub heads: usize,
    /// Heads of keys and values.
    pub key_heads: usize,
    /// Elements of a head.
    pub depth: usize,
    /// For each layer, the number of keys before its own position that a query sees; `None` stands
    /// for all of them.
    pub windows: Vec<Option<usize>>,
    /// The factor of scores.
    pub score_scale: f32,
    /// The limit of scores.
    pub score_cap: Option<f32>,
    /// The limit of logits.
    pub logit_cap: Option<f32>,
    /// The normalisation of hidden states.
    pub norm: NormKind,
    /// The number that norms add to mean squares.
    pub epsilon: f32,
    /// Whether the results of attention and MLP are normalised before they are added.
    pub norms_results: bool,
    /// Whether the heads of queries and keys are normalised.
    pub norms_heads: bool,
    /// The encoding of positions.
    pub positions: Positions,
    /// The factor of embeddings.
    pub embedding_scale: f32,
    /// Whether the logits are products with the embeddings.
    pub is_tied: bool,
    /// Whether queries, keys and values have biases.
    pub has_query_bias: bool,
    /// Whether the result of attention has a bias.
    pub has_output_bias: bool,
    /// Whether the MLP has biases.
    pub has_mlp_bias: bool,
    /// The greatest number of tokens of a sequence that the model was made for.
    pub context: usize,
    /// The tokens that end a text.
    pub ends: Vec<u32>,
}

impl Config {
    /// Reads `config.json` of a folder.
    ///
    /// # Errors
    ///
    /// [`ModelError::File`], [`ModelError::Json`], [`ModelError::Architecture`] and
    /// [`ModelError::Setting`].
    pub fn open(folder: &Path) -> Result<Self, ModelError> {
        let path = folder.join("config.json");
        let text =
            fs::read_to_string(&path).map_err(|source| ModelError::File { path: path.clone(), source })?;
        let value = serde_json::from_str(&text).map_err(|source| ModelError::Json { path, source })?;
        let mut config = Self::from_json(value)?;
        // It may list more tokens that end a text.
        let path = folder.join("generation_config.json");
        if let Ok(text) = fs::read_to_string(&path) {
            let found: Generation =
                serde_json::from_str(&text).map_err(|source| ModelError::Json { path, source })?;
            config.ends.extend(Tokens::all(&found.eos_token_id));
        }
        Ok(config)
    }

    /// Reads the contents of a `config.json`.
    ///
    /// # Errors
    ///
    /// [`ModelError::Architecture`] for a model of another family, and [`ModelError::Setting`] for one
    /// that is missing or not supported.
    pub fn from_json(value: Value) -> Result<Self, ModelError> {
        let name = value.get("model_type").and_then(Value::as_str).unwrap_or("").to_owned();
        let Some((_, family)) = Family::ALL.into_iter().find(|(known, _)| *known == name) else {
            let known = Family::ALL.map(|(known, _)| known).join(", ");
            return Err(ModelError::Architecture { found: name, known });
        };
        let config = match family {
            Family::Gpt2 => gpt2(&parsed(value)?)?,
            Family::Llama | Family::Mistral | Family::Qwen2 | Family::Qwen3 | Family::Gemma2 => {
                llama(family, &parsed(value)?)?
            }
        };
        config.check()?;
        Ok(config)
    }

    /// Returns the number of layers.
    pub fn layers(&self) -> usize {
        self.windows.len()
    }

    /// Returns the number of columns of queries, keys and values together.
    pub fn qkv_columns(&self) -> usize {
        (self.heads + 2 * self.key_heads) * self.depth
    }

    /// Returns the number of columns of the first matrix of an MLP: gates and the others.
    pub fn up_columns(&self) -> usize {
        self.mlp_width * if self.activation.is_gated() { 2 } else { 1 }
    }

    /// Checks what the kernels require.
    fn check(&self) -> Result<(), ModelError> {
        let is_whole = self.key_heads > 0 && self.heads.is_multiple_of(self.key_heads);
        let rules = [
            ("num_attention_heads", self.heads > 0, self.heads, "at least 1"),
            ("num_key_value_heads", is_whole, self.key_heads, "a divisor of the number of heads"),
            (
                "head_dim",
                self.depth.is_multiple_of(8) && (8..=128).contains(&self.depth),
                self.depth,
                "a multiple of 8 up to 128",
            ),
            ("hidden_size", self.width > 0 && self.width.is_multiple_of(8), self.width, "a multiple of 8"),
            (
                "intermediate_size",
                self.mlp_width > 0 && self.mlp_width.is_multiple_of(8),
                self.mlp_width,
                "a multiple of 8",
            ),
            ("num_hidden_layers", self.layers() > 0, self.layers(), "at least 1"),
            ("vocab_size", self.vocabulary > 0, self.vocabulary, "at least 1"),
            ("max_position_embeddings", self.context > 0, self.context, "at least 1"),
        ];
        match rules.into_iter().find(|(_, holds, ..)| !holds) {
            None => Ok(()),
            Some((name, _, found, wanted)) => Err(setting(name, found.to_string(), wanted)),
        }
    }
}

/// The settings of Llama and the models that follow it.
#[derive(Deserialize)]
struct LlamaSettings {
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

/// The settings of GPT-2.
#[derive(Deserialize)]
struct Gpt2Settings {
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

/// The settings of `generation_config.json`.
#[derive(Deserialize)]
struct Generation {
    eos_token_id: Option<Tokens>,
}

/// A token, or several.
#[derive(Deserialize)]
#[serde(untagged)]
enum Tokens {
    One(u32),
    Several(Vec<u32>),
}

impl Tokens {
    fn all(found: &Option<Self>) -> Vec<u32> {
        match found {
            None => vec![],
            Some(Self::One(token)) => vec![*token],
            Some(Self::Several(tokens)) => tokens.clone(),
        }
    }
}

fn parsed<T: for<'a> Deserialize<'a>>(value: Value) -> Result<T, ModelError> {
    serde_json::from_value(value).map_err(|source| ModelError::Json { path: "config.json".into(), source })
}

fn setting(name: &'static str, found: impl Into<String>, wanted: &'static str) -> ModelError {
    ModelError::Setting { name, found: found.into(), wanted }
}

/// The greatest extent of a model, and its greatest number of layers: more are a mistake of the file,
/// and would overflow products of extents.
const MOST: usize = 1 << 24;
const MOST_LAYERS: usize = 1 << 12;

/// Checks that extents are not above the greatest ones.
fn bounded(layers: (&'static str, usize), extents: &[(&'static str, usize)]) -> Result<(), ModelError> {
    if layers.1 > MOST_LAYERS {
        return Err(setting(layers.0, layers.1.to_string(), "at most 4096"));
    }
    match extents.iter().find(|(_, extent)| *extent > MOST) {
        None => Ok(()),
        Some((name, extent)) => Err(setting(name, extent.to_string(), "at most 2^24")),
    }
}

fn llama(family: Family, found: &LlamaSettings) -> Result<Config, ModelError> {
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
        norms_heads: family == Family::Qwen3,
        positions: Positions::Rotary(rotary(found)?),
        embedding_scale: if is_gemma { root } else { 1.0 },
        is_tied: found.tie_word_embeddings.unwrap_or(is_gemma),
        has_query_bias: has_bias || family == Family::Qwen2,
        has_output_bias: has_bias,
        has_mlp_bias: found.mlp_bias.unwrap_or(false),
        context: found.max_position_embeddings,
        ends: Tokens::all(&found.eos_token_id),
    })
}

/// Returns a number rounded to `bf16`.
fn half_rounded(x: f32) -> f32 {
    tma_runtime::prelude::bf16::from_f32(x).to_f32()
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
        Family::Mistral => true,
        Family::Gemma2 => layer.is_multiple_of(2),
        Family::Qwen2 | Family::Qwen3 => {
            found.use_sliding_window == Some(true) && layer >= found.max_window_layers.unwrap_or(layers)
        }
        Family::Llama | Family::Gpt2 => false,
    };
    Ok((0..layers).map(|layer| window.filter(|_| slides(layer))).collect())
}

/// Returns the settings of the rotary embedding, which newer files have in `rope_parameters` and
/// older ones in `rope_theta` and `rope_scaling`.
fn rotary(found: &LlamaSettings) -> Result<RotarySettings, ModelError> {
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
    let base = number("rope_theta").or(found.rope_theta).unwrap_or(10_000.0);
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

fn gpt2(found: &Gpt2Settings) -> Result<Config, ModelError> {
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
    })
}
