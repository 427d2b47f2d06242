//! Small models, and what Hugging Face transformers computes for them.
//!
//! `data` has a file for each model, which `transformers_reference.py` writes. Weights are not
//! stored: both sides compute them with the same formula.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use safetensors::tensor::{Dtype, TensorView};
use serde::Deserialize;
use serde_json::Value;

/// The positions of the prompt whose logits are stored, before the last one.
pub const POSITIONS: [usize; 3] = [0, 7, 17];

/// A model, and what transformers computes for it.
#[derive(Debug, Deserialize)]
pub struct Reference {
    /// The name from which weights are computed.
    pub name: String,
    /// The contents of `config.json`.
    pub config: Value,
    /// Names and shapes of the tensors.
    pub tensors: Vec<(String, Vec<usize>)>,
    /// A text, and its tokens.
    pub prompt: String,
    /// The tokens of the prompt.
    pub tokens: Vec<u32>,
    /// The logits at [`POSITIONS`], and at the last position; empty for encoders.
    #[serde(default)]
    pub logits: Vec<Vec<f32>>,
    /// The hidden states at the same positions, of encoders.
    #[serde(default)]
    pub states: Vec<Vec<f32>>,
    /// Texts with their embeddings, of encoders: the means of hidden states, with a norm of 1.
    #[serde(default)]
    pub sentences: Vec<(String, Vec<f32>)>,
    /// The greatest error of transformers' own results in `bf16`, relative to the standard
    /// deviation of the results at a position.
    pub bf16_error: f64,
    /// The tokens that greedy decoding appends to the prompt.
    #[serde(default)]
    pub greedy: Vec<u32>,
}

impl Reference {
    /// Reads the file of a model.
    ///
    /// # Errors
    ///
    /// There is none, or it is damaged.
    pub fn open(model: &str) -> Result<Self> {
        let path = data().join(format!("{model}.json"));
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(serde_json::from_str(&text)?)
    }

    /// Writes the model to a folder, as Hugging Face has it: `config.json`, `model.safetensors` and
    /// `tokenizer.json`.
    ///
    /// # Errors
    ///
    /// A file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<()> {
        fs::create_dir_all(folder)?;
        fs::write(folder.join("config.json"), self.config.to_string())?;
        fs::copy(data().join("tokenizer.json"), folder.join("tokenizer.json"))?;
        let bytes: HashMap<&str, Vec<u8>> = self
            .tensors
            .iter()
            .map(|(name, shape)| {
                let numbers = weights(&format!("{}.{name}", self.name), shape);
                (name.as_str(), numbers.into_iter().flat_map(f32::to_le_bytes).collect())
            })
            .collect();
        let views = self.tensors.iter().map(|(name, shape)| {
            Ok((name.as_str(), TensorView::new(Dtype::F32, shape.clone(), &bytes[name.as_str()])?))
        });
        let views = views.collect::<Result<Vec<_>>>()?;
        Ok(safetensors::serialize_to_file(views, None, &folder.join("model.safetensors"))?)
    }
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data")
}

/// Returns the numbers of a tensor: norms are near their neutral element, others small. All of them
/// are exact in `bf16`.
fn weights(name: &str, shape: &[usize]) -> Vec<f32> {
    let numbers = (1..=shape.iter().product::<usize>() as u64).map(|i| noise(name, i));
    let is_norm = name.to_lowercase().contains("norm") || name.contains(".ln_");
    match () {
        () if is_norm && name.ends_with("weight") && name.contains("gemma") => {
            numbers.map(|x| x / 2.0).collect()
        }
        () if is_norm && name.ends_with("weight") => {
            numbers.map(|x| 1.0 + (x * 64.0).floor() / 128.0).collect()
        }
        () if shape.len() == 1 => numbers.map(|x| x / 4.0).collect(),
        () if ["embed", "wte", "wpe"].iter().any(|part| name.contains(part)) => {
            numbers.map(|x| x / 8.0).collect()
        }
        () => numbers.map(|x| x / 4.0).collect(),
    }
}

/// Returns a multiple of 1/128 from -1 up to, but without, 1: SplitMix64, whose seed is FNV-1a of
/// the name.
fn noise(name: &str, index: u64) -> f32 {
    let seed = name
        .bytes()
        .fold(0xCBF2_9CE4_8422_2325_u64, |seed, byte| (seed ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3));
    let word = seed.wrapping_add(index.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((word ^ (word >> 31)) >> 56) as f32 / 128.0 - 1.0
}

/// Returns the log-probabilities of logits.
pub fn log_softmax(logits: &[f32]) -> Vec<f64> {
    let greatest = logits.iter().fold(f64::NEG_INFINITY, |most, x| most.max(f64::from(*x)));
    let sum: f64 = logits.iter().map(|x| (f64::from(*x) - greatest).exp()).sum();
    logits.iter().map(|x| f64::from(*x) - greatest - sum.ln()).collect()
}

/// Returns the standard deviation of values.
pub fn deviation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / values.len() as f64).sqrt()
}
