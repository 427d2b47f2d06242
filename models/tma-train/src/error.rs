//! Errors of a run.

use std::io;
use std::path::{Path, PathBuf};

use tma_models::ModelError;

use crate::checkpoint::{self, Damage};
use crate::steps::TrainingError;

/// The reason why a run cannot begin, or ends before its last step.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// A file that cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },

    /// A file that cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },

    /// An option that is out of its range.
    #[error("--{name} is {found}: {wanted}")]
    Option {
        /// The name of the option.
        name: &'static str,
        /// The value.
        found: String,
        /// The values that are supported.
        wanted: String,
    },

    /// A model that is neither a known shape nor a folder.
    #[error("--model {found} is neither a shape ({known}) nor a folder with config.json")]
    UnknownModel {
        /// The name.
        found: String,
        /// The names of shapes.
        known: String,
    },

    /// A tokenizer that cannot be read, or a text that it cannot convert.
    #[error("the tokenizer of {} failed: {reason}", path.display())]
    Tokenizer {
        /// The file of the tokenizer.
        path: PathBuf,
        /// The reason.
        reason: String,
    },

    /// A text whose bytes are not what the tokenizer needs.
    #[error(
        "the text is not UTF-8 at byte {at}: a tokenizer needs UTF-8; without --tokenizer, each byte is a token"
    )]
    NotUtf8 {
        /// The index of the first byte that is part of no character.
        at: usize,
    },

    /// A tokenizer with more tokens than the model.
    #[error(
        "the tokenizer has {tokens} tokens, and the model a vocabulary of {vocabulary}: do they belong together?"
    )]
    Vocabulary {
        /// Tokens of the tokenizer.
        tokens: usize,
        /// Tokens of the model.
        vocabulary: usize,
    },

    /// A text that is shorter than one window.
    #[error(
        "the text {part} is shorter than one window: it has {tokens} tokens, a window has {window}. {fix}"
    )]
    TextTooShort {
        /// The use of the part of the text.
        part: &'static str,
        /// The tokens of the part.
        tokens: usize,
        /// The tokens of a window: those of a sequence and one.
        window: usize,
        /// The change that helps.
        fix: &'static str,
    },

    /// An output folder with a checkpoint that was made with other options.
    #[error(
        "{} was made with other options: {}. Give the same options, another --output, or --restart",
        folder.display(), differences.join(", ")
    )]
    OtherRun {
        /// The checkpoint.
        folder: PathBuf,
        /// The options that differ, with both values.
        differences: Vec<String>,
    },

    /// An output folder in which no checkpoint is good.
    #[error(
        "no checkpoint of {} is intact: {}. Repair one, or begin from the first step by --restart",
        output.display(), damages.iter().map(Damage::to_string).collect::<Vec<_>>().join("; ")
    )]
    AllDamaged {
        /// The output folder.
        output: PathBuf,
        /// The reason for each checkpoint.
        damages: Vec<Damage>,
    },

    /// A checkpoint that is damaged.
    #[error(transparent)]
    Damaged(#[from] Damage),

    /// A checkpoint of another version of the program.
    #[error(
        "{} has version {version}, and this program reads version {}: continue with the program that wrote it, \
         or give another --output, or --restart",
        path.display(), checkpoint::VERSION
    )]
    Version {
        /// The file with the record.
        path: PathBuf,
        /// The version of the file.
        version: u32,
    },

    /// A checkpoint whose folder has the name of another step.
    #[error(
        "{} has the state after step {step}: rename it to {}, or move it out of the output folder",
        folder.display(), checkpoint::name_of(*step)
    )]
    Misnamed {
        /// The checkpoint.
        folder: PathBuf,
        /// The step of its record.
        step: u32,
    },

    /// A signal before the first step.
    #[error("interrupted before the first step")]
    Interrupted,

    /// No GPU, and nobody asked for the simulator.
    #[error("no GPU was found ({reason}): give --device sim to simulate, which suits only tiny models")]
    NoGpu {
        /// The reason.
        reason: Box<tma_runtime::Error>,
    },

    /// An output folder that another process uses.
    #[error("another process trains in {}: end it, or give another --output", output.display())]
    Locked {
        /// The output folder.
        output: PathBuf,
    },

    /// A checkpoint that cannot be written.
    #[error("cannot write {}: the checkpoint needs {needed} bytes. {}", path.display(), kept_text(kept.as_deref()))]
    Checkpoint {
        /// The file or folder.
        path: PathBuf,
        /// The bytes of all files of the checkpoint.
        needed: u64,
        /// The last good checkpoint.
        kept: Option<PathBuf>,
        /// The reason.
        source: io::Error,
    },

    /// Losses or gradients that have not been finite for too long.
    #[error(
        "no finite loss and gradients in {count} steps, since step {since}: lower --learning-rate or \
         --clip, or lengthen --warmup, and add --restart. {}",
        kept_text(kept.as_deref())
    )]
    Diverged {
        /// The first step without an update.
        since: u32,
        /// The steps from there on.
        count: u32,
        /// The last good checkpoint.
        kept: Option<PathBuf>,
    },

    /// A state with numbers that are not finite.
    #[error("tensor `{name}` is not finite after step {step}: it is not saved. {}", kept_text(kept.as_deref()))]
    NotFinite {
        /// The name of the tensor.
        name: String,
        /// The step.
        step: u32,
        /// The last good checkpoint.
        kept: Option<PathBuf>,
    },

    /// The picture of losses cannot be drawn.
    #[error("cannot draw the losses: {0}")]
    Picture(String),

    /// A configuration that is missing or not supported.
    #[error(transparent)]
    Model(Box<ModelError>),

    /// A step has failed.
    #[error(transparent)]
    Training(Box<TrainingError>),

    /// The device cannot be opened.
    #[error(transparent)]
    Device(Box<tma_runtime::Error>),
}

// These are much larger than all others, and boxed.
impl From<ModelError> for TrainError {
    fn from(error: ModelError) -> Self {
        Self::Model(Box::new(error))
    }
}

impl From<TrainingError> for TrainError {
    fn from(error: TrainingError) -> Self {
        Self::Training(Box::new(error))
    }
}

impl From<tma_runtime::Error> for TrainError {
    fn from(error: tma_runtime::Error) -> Self {
        Self::Device(Box::new(error))
    }
}

impl TrainError {
    /// Returns a function that says which file was not read.
    pub(crate) fn reading(path: &Path) -> impl Fn(io::Error) -> Self {
        move |source| Self::Read { path: path.into(), source }
    }

    /// Returns a function that says which file was not written.
    pub(crate) fn writing(path: &Path) -> impl Fn(io::Error) -> Self {
        move |source| Self::Write { path: path.into(), source }
    }
}

/// Returns the sentence that says which checkpoint is left.
fn kept_text(kept: Option<&Path>) -> String {
    match kept {
        Some(folder) => format!("The last good checkpoint is kept: {}", folder.display()),
        None => "No checkpoint has been written before".into(),
    }
}
