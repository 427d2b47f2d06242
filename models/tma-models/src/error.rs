//! Errors of models.

use std::io;
use std::path::PathBuf;

use tma_kernels::AttentionError;
use tma_kernels::cached::CachedAttentionError;
use tma_kernels::gemm::GemmError;

/// The reason why a model cannot be loaded, or cannot run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },

    /// A file is not the JSON that was expected.
    #[error("{} does not have the settings of a model", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// The reason, with line and column.
        source: serde_json::Error,
    },

    /// A file of weights is damaged.
    #[error("{} is not a safetensors file", path.display())]
    Safetensors {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: safetensors::SafeTensorError,
    },

    /// A model of a family that is not supported.
    #[error("unknown model_type `{found}` in config.json: supported are {known}")]
    Architecture {
        /// The `model_type` found; empty if there is none.
        found: String,
        /// Those that are supported.
        known: String,
    },

    /// A setting that is missing or not supported.
    #[error("unsupported {name} in config.json: found {found}, wanted {wanted}")]
    Setting {
        /// The name.
        name: &'static str,
        /// The value.
        found: String,
        /// The values that are supported.
        wanted: &'static str,
    },

    /// A tensor that no file has.
    #[error("missing tensor `{name}` in {}: do weights and config.json belong together?", folder.display())]
    MissingTensor {
        /// The name.
        name: String,
        /// The folder of the model.
        folder: PathBuf,
    },

    /// A tensor with another shape than the configuration implies.
    #[error(
        "tensor `{name}` has the shape {found:?}, config.json implies {wanted:?}: do they belong together?"
    )]
    TensorShape {
        /// The name.
        name: String,
        /// The shape in the file.
        found: Vec<usize>,
        /// The shape by the configuration.
        wanted: Vec<usize>,
    },

    /// A tensor with elements that cannot be converted.
    #[error(
        "tensor `{name}` has elements of {found}: supported are BF16, F16 and F32, and F8_E4M3 of matrices"
    )]
    TensorType {
        /// The name.
        name: String,
        /// The type of the elements.
        found: String,
    },

    /// A tokenizer that cannot be read, or a text that it cannot convert.
    #[error("the tokenizer failed: {0}")]
    Tokenizer(String),

    /// A batch whose sequences cannot have as many tokens each.
    #[error("{tokens} tokens of {sequences} sequences: all must have as many")]
    Batch {
        /// The tokens of the batch.
        tokens: usize,
        /// The sequences of the batch.
        sequences: usize,
    },

    /// A cache that was made for another model.
    #[error("the cache has {found} layers, and the model {wanted}: make it with the model's configuration")]
    CacheLayers {
        /// The layers of the cache.
        found: usize,
        /// The layers of the model.
        wanted: usize,
    },

    /// Activations that were made for another model.
    #[error("the activations were made for another model: make them with the model's configuration")]
    OtherActivations,

    /// A request that the engine cannot serve.
    #[error(transparent)]
    Request(#[from] RequestError),

    /// A GEMM failed.
    #[error(transparent)]
    Gemm(#[from] GemmError),

    /// Attention over the cache, or a write to it, failed.
    #[error(transparent)]
    CachedAttention(#[from] CachedAttentionError),

    /// Attention failed.
    #[error(transparent)]
    Attention(#[from] AttentionError),

    /// A kernel over rows failed.
    #[error(transparent)]
    Rows(#[from] tma_kernels::model::ModelError),

    /// The device failed.
    #[error(transparent)]
    Device(#[from] tma_runtime::Error),
}

/// The reason why a request is refused. Other requests are not affected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// A prompt without tokens.
    #[error("the prompt is empty: give it at least one token")]
    EmptyPrompt,

    /// A prompt that leaves no room for a token.
    #[error("the prompt has {found} tokens, and may have {most}: shorten it")]
    PromptTooLong {
        /// The tokens of the prompt.
        found: usize,
        /// The greatest number of tokens of a prompt.
        most: usize,
    },

    /// A token that is not part of the vocabulary.
    #[error("token {found} is not part of the vocabulary of {vocabulary} tokens")]
    UnknownToken {
        /// The token.
        found: u32,
        /// The number of tokens of the vocabulary.
        vocabulary: usize,
    },

    /// A request for no tokens.
    #[error("no tokens are requested: the limit is 0")]
    NoTokens,

    /// An option of sampling that is out of its range.
    #[error("{option} is {found}, wanted {wanted}")]
    Sampling {
        /// The name of the option.
        option: &'static str,
        /// The value.
        found: String,
        /// The values that are supported.
        wanted: &'static str,
    },

    /// More requests than the queue holds.
    #[error("{waiting} requests are waiting already: try again later")]
    QueueFull {
        /// The number of waiting requests.
        waiting: usize,
    },
}
