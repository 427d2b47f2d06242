//! The description of a decoder, independent of its family, from a `config.json` of Hugging Face.

mod experts;
mod gpt2;
mod llama;
mod weights;

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use tma_kernels::model::RotaryScaling;

use crate::ModelError;
use crate::json::read_json;

pub use self::experts::Mixture;

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
    /// Qwen 3 with experts.
    Qwen3Moe,
    /// Mixtral: Mistral with experts.
    Mixtral,
    /// Gemma 2: norms after attention and MLP, limits of scores and logits.
    Gemma2,
    /// GPT-2: LayerNorm, learned positions, no gate.
    Gpt2,
}

impl Family {
    const ALL: [(&'static str, Self); 8] = [
        ("llama", Self::Llama),
        ("mistral", Self::Mistral),
        ("qwen2", Self::Qwen2),
        ("qwen3", Self::Qwen3),
        ("qwen3_moe", Self::Qwen3Moe),
        ("mixtral", Self::Mixtral),
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

/// The elements of the matrices of layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WeightFormat {
    /// `bf16`.
    #[default]
    Bf16,
    /// Those of the checkpoint: `e4m3` with scales where it has these, and otherwise `bf16`.
    Stored,
    /// `e4m3` with a scale for each 128 × 128 elements. Matrices of other elements are quantised.
    /// Those with a bias, and those whose columns are no multiple of 16, are of `bf16` all the
    /// same.
    E4m3,
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
    /// The experts that replace the MLP of some layers.
    pub mixture: Option<Mixture>,
    /// The function between the matrices of an MLP, or of an expert.
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
    /// The elements of the matrices of layers.
    pub weights: WeightFormat,
}

impl Config {
    /// Reads `config.json` of a folder.
    ///
    /// # Errors
    ///
    /// [`ModelError::File`], [`ModelError::Json`], [`ModelError::Architecture`] and
    /// [`ModelError::Setting`].
    pub fn open(folder: &Path) -> Result<Self, ModelError> {
        let mut config = Self::from_json(read_json(folder.join("config.json"))?)?;
        // It may list more tokens that end a text.
        let path = folder.join("generation_config.json");
        if path.exists() {
            let found: Generation = read_json(path)?;
            config.ends.extend(Tokens::all(&found.eos_token_id));
        }
        Ok(config)
    }

    /// Reads the contents of a `config.json`.
    ///
    /// # Errors
    ///
    /// [`ModelError::Architecture`] for a model of another family, and [`ModelError::Setting`] for
    /// one that is missing or not supported.
    pub fn from_json(value: Value) -> Result<Self, ModelError> {
        let name = value.get("model_type").and_then(Value::as_str).unwrap_or("").to_owned();
        let Some((_, family)) = Family::ALL.into_iter().find(|(known, _)| *known == name) else {
            let known = Family::ALL.map(|(known, _)| known).join(", ");
            return Err(ModelError::Architecture { found: name, known });
        };
        let weights = weights::format(&value)?;
        let config = match family {
            Family::Gpt2 => gpt2::config(&parsed(value)?)?,
            Family::Llama | Family::Mistral | Family::Qwen2 | Family::Qwen3 | Family::Gemma2 => {
                llama::config(family, &parsed(value)?)?
            }
            Family::Qwen3Moe | Family::Mixtral => {
                let found = parsed(value.clone())?;
                experts::with_experts(llama::config(family, &parsed(value)?)?, &found)?
            }
        };
        config.check()?;
        Ok(Self { weights, ..config })
    }

    /// Returns the number of layers.
    pub fn layers(&self) -> usize {
        self.windows.len()
    }

    /// Returns the experts of a layer, if it has any.
    pub fn mixture_of(&self, layer: usize) -> Option<&Mixture> {
        self.mixture.as_ref().filter(|mixture| mixture.layers.get(layer) == Some(&true))
    }

    /// Returns whether there is a layer with an MLP.
    pub fn has_mlp(&self) -> bool {
        (0..self.layers()).any(|layer| self.mixture_of(layer).is_none())
    }

    /// Returns the number of columns of queries, keys and values together.
    pub fn qkv_columns(&self) -> usize {
        (self.heads + 2 * self.key_heads) * self.depth
    }

    /// Returns the number of columns of the first matrix of an MLP: gates and the others.
    pub fn up_columns(&self) -> usize {
        self.mlp_width * if self.activation.is_gated() { 2 } else { 1 }
    }

    /// Checks what the kernels require. A configuration that is read has been checked.
    ///
    /// # Errors
    ///
    /// [`ModelError::Setting`], with the first setting that is not supported.
    pub fn check(&self) -> Result<(), ModelError> {
        let is_whole = self.key_heads > 0 && self.heads.is_multiple_of(self.key_heads);
        let rules = [
            ("num_attention_heads", self.heads > 0, self.heads, "at least 1"),
            ("num_key_value_heads", is_whole, self.key_heads, "a divisor of the number of heads"),
            (
                "head_dim",
                self.depth.is_multiple_of(8) && (8..=256).contains(&self.depth),
                self.depth,
                "a multiple of 8 up to 256",
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

/// The greatest extent of a model, and its greatest number of layers: more are a mistake of the
/// file, and would overflow products of extents.
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
