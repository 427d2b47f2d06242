//! Embeddings of sentences: one vector for each text, as sentence-transformers computes it.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use tma_kernels::gemm::{GemmOptions, Workspace, gemm};
use tma_runtime::prelude::*;

use crate::checkpoint::Checkpoint;
use crate::encoder::{Encoder, EncoderActivations, EncoderConfig, Texts};
use crate::json::read_json;
use crate::text::Text;
use crate::{ModelError, RequestError, Source};

/// The tokens of a batch, with those that fill shorter texts, unless one text has more.
const MOST_ROWS: usize = 8192;

/// Rows of texts begin at multiples of 16 bytes of `bf16`.
const ALIGNMENT: usize = 8;

/// The hidden states that make an embedding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pooling {
    /// The mean of all tokens.
    #[default]
    Mean,
    /// The first token.
    First,
}

/// The way from texts to hidden states, and from there to embeddings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentenceOptions {
    /// The hidden states that make an embedding.
    pub pooling: Pooling,
    /// Whether embeddings are divided by their Euclidean norm.
    pub normalise: bool,
    /// The greatest number of tokens of a text, of which more are cut off. The encoder's context is
    /// another limit.
    pub most_tokens: usize,
}

impl Default for SentenceOptions {
    fn default() -> Self {
        Self { pooling: Pooling::default(), normalise: true, most_tokens: usize::MAX }
    }
}

/// An entry of `modules.json`.
#[derive(Deserialize)]
struct Module {
    path: String,
    #[serde(rename = "type")]
    kind: String,
}

/// The file of a pooling module: its modes, of which several would be concatenated, and others.
type PoolingConfig = BTreeMap<String, serde_json::Value>;

/// The settings of `sentence_bert_config.json`.
#[derive(Deserialize)]
struct Lengths {
    max_seq_length: Option<usize>,
}

/// Returns the only mode of a pooling module.
fn pooling(config: &PoolingConfig) -> Result<Pooling, ModelError> {
    let modes = config.iter().filter(|(name, value)| {
        name.starts_with("pooling_mode") && **value != serde_json::Value::Bool(false)
    });
    let modes: Vec<&str> = modes.map(|(name, _)| name.as_str()).collect();
    match modes[..] {
        ["pooling_mode_mean_tokens"] => Ok(Pooling::Mean),
        ["pooling_mode_cls_token"] => Ok(Pooling::First),
        _ => Err(ModelError::Setting {
            name: "pooling_mode",
            found: modes.join(", "),
            wanted: "either mean_tokens or cls_token",
        }),
    }
}

impl SentenceOptions {
    /// Reads the files of sentence-transformers in a folder. Without them, the options are the
    /// default.
    ///
    /// # Errors
    ///
    /// [`ModelError::File`], [`ModelError::Json`], and [`ModelError::Setting`] for a pooling or a
    /// module that is not supported.
    pub fn open(folder: &Path) -> Result<Self, ModelError> {
        let mut options = Self::default();
        let lengths = folder.join("sentence_bert_config.json");
        if lengths.exists() {
            let Lengths { max_seq_length } = read_json(lengths)?;
            options.most_tokens = max_seq_length.unwrap_or(usize::MAX);
        }
        let modules = folder.join("modules.json");
        if !modules.exists() {
            return Ok(options);
        }
        options.normalise = false;
        for Module { path, kind } in read_json::<Vec<Module>>(modules)? {
            match kind.rsplit('.').next().unwrap_or_default() {
                "Transformer" => {}
                "Normalize" => options.normalise = true,
                "Pooling" => {
                    options.pooling = pooling(&read_json(folder.join(path).join("config.json"))?)?;
                }
                _ => {
                    let wanted = "Transformer, Pooling and Normalize";
                    return Err(ModelError::Setting { name: "type of a module", found: kind, wanted });
                }
            }
        }
        Ok(options)
    }
}

/// An encoder of sentences. Only one call at a time can use its memory.
#[derive(Debug)]
pub struct SentenceEncoder {
    encoder: Encoder,
    text: Text,
    options: SentenceOptions,
    activations: Option<(usize, EncoderActivations)>,
    workspace: Workspace,
    stream: Stream,
}

impl SentenceEncoder {
    /// Loads a model with the options of its folder.
    ///
    /// # Errors
    ///
    /// Files that are missing, damaged or not supported, and errors of the device.
    pub fn open(folder: &Path, device: &Device) -> Result<Self, ModelError> {
        let (config, text) = (EncoderConfig::open(folder)?, Text::open(folder)?);
        let checkpoint = Checkpoint::open(folder)?;
        let encoder = Encoder::load(device, config, Source::Checkpoint(&checkpoint), &mut |_| {})?;
        Self::new(encoder, text, SentenceOptions::open(folder)?)
    }

    /// Returns an encoder of sentences for a loaded model.
    ///
    /// # Errors
    ///
    /// Errors of the device and of the tokenizer.
    pub fn new(encoder: Encoder, text: Text, options: SentenceOptions) -> Result<Self, ModelError> {
        let device = encoder.device();
        let text = text.cut_at(options.most_tokens.min(encoder.config().context))?;
        let (workspace, stream) = (Workspace::new(device)?, device.stream()?);
        Ok(Self { encoder, text, options, activations: None, workspace, stream })
    }

    /// Returns the number of elements of an embedding.
    pub fn width(&self) -> usize {
        self.encoder.config().width
    }

    /// Computes the embedding of each text. Texts of similar lengths are computed together.
    ///
    /// # Errors
    ///
    /// [`RequestError::EmptyPrompt`] for a text without tokens, and errors of the tokenizer and of
    /// the device.
    pub fn embed(&mut self, texts: &[&str]) -> Result<Vec<Vec<f32>>, ModelError> {
        let tokens = texts.iter().map(|text| self.text.encode(text)).collect::<Result<Vec<_>, _>>()?;
        self.embed_tokens(&tokens)
    }

    /// Computes the embedding of each text of tokens.
    ///
    /// # Errors
    ///
    /// [`RequestError::EmptyPrompt`] for a text without tokens, [`RequestError::PromptTooLong`],
    /// [`RequestError::UnknownToken`], and errors of the device.
    pub fn embed_tokens(&mut self, texts: &[Vec<u32>]) -> Result<Vec<Vec<f32>>, ModelError> {
        let EncoderConfig { context, vocabulary, .. } = *self.encoder.config();
        for text in texts {
            let unknown = text.iter().find(|token| **token as usize >= vocabulary);
            match (text.len(), unknown) {
                (0, _) => return Err(RequestError::EmptyPrompt.into()),
                (found, _) if found > context => {
                    return Err(RequestError::PromptTooLong { found, most: context }.into());
                }
                (_, Some(&found)) => return Err(RequestError::UnknownToken { found, vocabulary }.into()),
                (_, None) => {}
            }
        }
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.sort_by_key(|text| std::cmp::Reverse(texts[*text].len()));
        let mut embeddings = vec![vec![]; texts.len()];
        let mut rest = &order[..];
        while let Some(longest) = rest.first() {
            let length = texts[*longest].len().next_multiple_of(ALIGNMENT);
            let (batch, others) = rest.split_at((MOST_ROWS / length).clamp(1, rest.len()));
            let of_batch: Vec<&[u32]> = batch.iter().map(|text| &texts[*text][..]).collect();
            for (text, embedding) in batch.iter().zip(self.batch(&of_batch, length)?) {
                embeddings[*text] = embedding;
            }
            rest = others;
        }
        Ok(embeddings)
    }

    /// Computes the embeddings of texts of up to `length` tokens.
    fn batch(&mut self, texts: &[&[u32]], length: usize) -> Result<Vec<Vec<f32>>, ModelError> {
        let (count, width) = (texts.len(), self.width());
        let (device, rows) = (self.encoder.device(), count * length);
        let mut tokens = vec![0; rows];
        // Factors of the sum that is an embedding, before it is divided.
        let mut factors = vec![bf16::ZERO; rows];
        for (row, text) in texts.iter().enumerate() {
            tokens[row * length..][..text.len()].copy_from_slice(text);
            let summands = match self.options.pooling {
                Pooling::Mean => text.len(),
                Pooling::First => 1,
            };
            factors[row * length..][..summands].fill(bf16::ONE);
        }
        let positions: Vec<u32> = (0..rows).map(|row| (row % length) as u32).collect();
        let lengths: Vec<u32> = texts.iter().map(|text| text.len() as u32).collect();
        let (tokens, positions) = (device.tensor(&tokens, [rows])?, device.tensor(&positions, [rows])?);
        let lengths = device.tensor(&lengths, [count])?;
        let texts_on_device =
            Texts { tokens: tokens.view(), positions: positions.view(), lengths: lengths.view() };
        if self.activations.as_ref().is_none_or(|(most, _)| *most < rows) {
            self.activations = None; // freed before the larger ones are allocated
        }
        let (_, activations) = match &mut self.activations {
            Some(found) => found,
            empty => empty.insert((rows, EncoderActivations::new(device, self.encoder.config(), rows)?)),
        };
        self.encoder.forward(&self.stream, &texts_on_device, activations)?;

        let factors = device.tensor(&factors, [count, 1, length])?;
        let shape = [count, length, width];
        let states = activations.hidden(rows)?.with_strides(shape, [length * width, width, 1])?;
        let mut sums = device.zeros::<f32, 3>([count, 1, width])?;
        let options = GemmOptions { workspace: Some(&mut self.workspace), ..Default::default() };
        gemm(&self.stream, &factors, states, &mut sums, options)?;
        let sums = sums.to_vec()?;
        Ok(sums.chunks(width).zip(texts).map(|(sum, text)| self.embedding(sum, text.len())).collect())
    }

    /// Returns the embedding of a text of so many tokens from the sum of its hidden states.
    fn embedding(&self, sum: &[f32], tokens: usize) -> Vec<f32> {
        let divisor = match (self.options.normalise, self.options.pooling) {
            (true, Pooling::Mean | Pooling::First) => {
                let squares: f64 = sum.iter().map(|x| f64::from(*x).powi(2)).sum();
                (squares.sqrt() as f32).max(f32::MIN_POSITIVE)
            }
            (false, Pooling::Mean) => tokens as f32,
            (false, Pooling::First) => 1.0,
        };
        sum.iter().map(|x| x / divisor).collect()
    }
}
