//! Models to train: shapes that are known by name, or the configuration of a folder.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tma_models::config::Config;

use crate::error::TrainError;
use crate::tokenizer::TextTokenizer;

/// The names of known shapes.
const SHAPES: [&str; 4] = ["gpt2", "llama-1b", "tiny-gpt2", "tiny-llama"];

/// Vocabularies of known shapes are rounded up to a multiple of this, which suits tiles of GEMMs.
const VOCABULARY_MULTIPLE: usize = 64;

/// A model to train.
#[derive(Debug)]
pub struct Model {
    /// The contents of `config.json`.
    pub json: Value,
    /// The same, parsed.
    pub config: Config,
    /// The tokenizer.
    pub tokenizer: TextTokenizer,
}

/// Returns the model of a name, with the tokenizer of a file. Without a file it is that of the
/// model's folder, or one of bytes.
///
/// # Errors
///
/// [`TrainError::UnknownModel`], [`TrainError::Vocabulary`], and those of files.
pub fn open(name: &str, tokenizer: Option<&Path>) -> Result<Model, TrainError> {
    let folder = Path::new(name);
    let file = tokenizer.map(PathBuf::from).or_else(|| {
        let of_folder = folder.join("tokenizer.json");
        (!is_shape(name) && of_folder.exists()).then_some(of_folder)
    });
    let tokenizer = file.map_or(Ok(TextTokenizer::Bytes), |file| TextTokenizer::open(&file))?;
    let json = match is_shape(name) {
        true => shape(name, &tokenizer).unwrap_or_default(),
        false => config_of(folder, name)?,
    };
    let config = Config::from_json(json.clone())?;
    let (tokens, vocabulary) = (tokenizer.tokens(), config.vocabulary);
    if tokens > vocabulary {
        return Err(TrainError::Vocabulary { tokens, vocabulary });
    }
    Ok(Model { json, config, tokenizer })
}

fn is_shape(name: &str) -> bool {
    SHAPES.contains(&name)
}

/// Reads `config.json` of a folder.
fn config_of(folder: &Path, name: &str) -> Result<Value, TrainError> {
    let path = folder.join("config.json");
    if !path.exists() {
        return Err(TrainError::UnknownModel { found: name.into(), known: SHAPES.join(", ") });
    }
    let text = fs::read(&path).map_err(TrainError::reading(&path))?;
    serde_json::from_slice(&text).map_err(|error| TrainError::Read { path, source: error.into() })
}

/// The elements of a head in all known shapes.
const HEAD: usize = 64;

/// The extents of a known shape.
#[derive(Clone, Copy)]
struct Extents {
    layers: usize,
    width: usize,
    heads: usize,
    key_heads: usize,
    mlp_width: usize,
    context: usize,
}

/// Returns the `config.json` of a known shape.
fn shape(name: &str, tokenizer: &TextTokenizer) -> Option<Value> {
    let tiny = Extents { layers: 2, width: 64, heads: 2, key_heads: 1, mlp_width: 128, context: 128 };
    let config = match name {
        "gpt2" => {
            gpt2(Extents { layers: 12, width: 768, heads: 12, key_heads: 12, mlp_width: 3072, context: 1024 })
        }
        "tiny-gpt2" => gpt2(Extents { width: 128, mlp_width: 512, ..tiny }),
        "llama-1b" => llama(Extents {
            layers: 16,
            width: 2048,
            heads: 32,
            key_heads: 8,
            mlp_width: 8192,
            context: 8192,
        }),
        "tiny-llama" => llama(tiny),
        _ => return None,
    };
    Some(with_vocabulary(config, tokenizer))
}

/// Returns a configuration with the vocabulary of a tokenizer.
fn with_vocabulary(mut config: Value, tokenizer: &TextTokenizer) -> Value {
    config["vocab_size"] = tokenizer.tokens().next_multiple_of(VOCABULARY_MULTIPLE).into();
    config["bos_token_id"] = tokenizer.end().into();
    config["eos_token_id"] = tokenizer.end().into();
    config
}

fn gpt2(extents: Extents) -> Value {
    let Extents { layers, width, heads, mlp_width, context, .. } = extents;
    json!({
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "n_layer": layers,
        "n_embd": width,
        "n_head": heads,
        "n_inner": mlp_width,
        "n_positions": context,
        "layer_norm_epsilon": 1e-5,
        "activation_function": "gelu_new",
        "tie_word_embeddings": true,
        // The model is trained without dropout.
        "attn_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "resid_pdrop": 0.0
    })
}

fn llama(extents: Extents) -> Value {
    let Extents { layers, width, heads, key_heads, mlp_width, context } = extents;
    json!({
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "num_hidden_layers": layers,
        "hidden_size": width,
        "num_attention_heads": heads,
        "num_key_value_heads": key_heads,
        "head_dim": HEAD,
        "intermediate_size": mlp_width,
        "max_position_embeddings": context,
        "rms_norm_eps": 1e-5,
        "rope_theta": 500_000.0,
        "hidden_act": "silu",
        "attention_bias": false,
        "mlp_bias": false,
        "tie_word_embeddings": true
    })
}
