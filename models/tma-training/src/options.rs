//! Options of training, and the models that can be trained.

use tma_kernels::optimizer::AdamWOptions;
use tma_models::config::{Config, NormKind};

use crate::TrainingError;

/// The rows of all micro-batches must be fewer.
const MOST_ROWS: usize = 1 << 31;

/// Options of a [`Trainer`](crate::Trainer).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainingOptions {
    /// Sequences of a micro-batch.
    pub sequences: usize,
    /// Tokens of a sequence that are predicted.
    pub length: usize,
    /// Micro-batches of a step, whose gradients are summed.
    pub micro_batches: usize,
    /// Whether only each layer's input is kept for the backward pass, which computes the rest of
    /// the layer again. The results have the same bits, except where those of the backward pass
    /// differ between runs ([`Trainer::step`](crate::Trainer::step)).
    pub recompute: bool,
    /// The weight decay of matrices and tables. Vectors, the weights of norms and biases, have
    /// none.
    pub weight_decay: f32,
    /// The greatest norm of all gradients together, to which they are scaled down.
    /// [`f32::INFINITY`] stands for no limit.
    pub max_norm: f32,
    /// The constants of the optimiser.
    pub adamw: AdamWOptions,
    /// The part of a target that is divided evenly among the vocabulary, from 0 to 1.
    pub label_smoothing: f32,
    /// The factor of the squared logarithm of each position's sum of exponentials, which is added
    /// to the loss.
    pub z_loss: f32,
}

impl Default for TrainingOptions {
    /// Returns the options of a small model on one GPU, with the weight decay, the limit of the
    /// norm and the β of "Language Models are Few-Shot Learners" (2020) and of Llama.
    fn default() -> Self {
        Self {
            sequences: 8,
            length: 1024,
            micro_batches: 1,
            recompute: false,
            weight_decay: 0.1,
            max_norm: 1.0,
            adamw: AdamWOptions { beta2: 0.95, ..AdamWOptions::default() },
            label_smoothing: 0.0,
            z_loss: 0.0,
        }
    }
}

impl TrainingOptions {
    /// Returns the rows of a micro-batch: the positions that are predicted.
    pub(crate) fn rows(&self) -> usize {
        self.sequences * self.length
    }

    /// Returns the rows of a step.
    pub(crate) fn all_rows(&self) -> usize {
        self.micro_batches * self.rows()
    }

    /// Checks that the options are in their ranges, and that a model can be trained with them. The
    /// optimiser checks its own.
    pub(crate) fn check(&self, config: &Config) -> Result<(), TrainingError> {
        self.check_numbers()?;
        check_model(config)?;
        let all = [self.sequences, self.length, self.micro_batches];
        let rows = all.iter().try_fold(1_usize, |rows, extent| rows.checked_mul(*extent));
        if rows.is_none_or(|rows| rows >= MOST_ROWS) {
            let [sequences, length, micro_batches] = all;
            return Err(TrainingError::Option {
                name: "sequences",
                found: format!("{micro_batches} micro-batches of {sequences} × {length} tokens"),
                wanted: "fewer than 2^31 tokens in a step".into(),
            });
        }
        if self.length > config.context {
            return Err(TrainingError::Option {
                name: "length",
                found: self.length.to_string(),
                wanted: format!("at most the model's {} positions", config.context),
            });
        }
        Ok(())
    }

    fn check_numbers(&self) -> Result<(), TrainingError> {
        let is_factor = |number: f32| (0.0..f32::INFINITY).contains(&number);
        let rules = [
            ("sequences", self.sequences > 0, self.sequences.to_string(), "at least 1"),
            ("length", self.length > 0, self.length.to_string(), "at least 1"),
            ("micro_batches", self.micro_batches > 0, self.micro_batches.to_string(), "at least 1"),
            (
                "weight_decay",
                is_factor(self.weight_decay),
                self.weight_decay.to_string(),
                "finite and not negative",
            ),
            ("max_norm", self.max_norm > 0.0, self.max_norm.to_string(), "above 0"),
            (
                "label_smoothing",
                (0.0..=1.0).contains(&self.label_smoothing),
                self.label_smoothing.to_string(),
                "from 0 to 1",
            ),
            ("z_loss", is_factor(self.z_loss), self.z_loss.to_string(), "finite and not negative"),
        ];
        match rules.into_iter().find(|(_, holds, ..)| !holds) {
            None => Ok(()),
            Some((name, _, found, wanted)) => {
                Err(TrainingError::Option { name, found, wanted: wanted.into() })
            }
        }
    }
}

/// Checks that a model has only parts with gradients.
fn check_model(config: &Config) -> Result<(), TrainingError> {
    let window = config.windows.iter().flatten().next();
    let experts = config.mixture.as_ref().map(|mixture| mixture.experts);
    let found = |number: Option<String>| number.unwrap_or_default();
    let joined_biases = config.activation.is_gated() && config.has_mlp_bias;
    let rules = [
        ("number of experts", experts.is_none(), found(experts.map(|all| all.to_string())), "no experts"),
        (
            "sliding window",
            window.is_none(),
            found(window.map(|keys| format!("{keys} keys"))),
            "all keys before a query",
        ),
        (
            "limit of scores",
            config.score_cap.is_none(),
            found(config.score_cap.map(|cap| cap.to_string())),
            "none",
        ),
        (
            "limit of logits",
            config.logit_cap.is_none(),
            found(config.logit_cap.map(|cap| cap.to_string())),
            "none",
        ),
        (
            "norm",
            config.norm != NormKind::RmsOnePlus,
            "a factor of 1 + weight".into(),
            "a factor of weight, as in Llama and GPT-2",
        ),
        (
            "norm of results",
            !config.norms_results,
            "norms after attention and MLP".into(),
            "norms before them only",
        ),
        ("norm of heads", !config.norms_heads, "norms of queries and keys".into(), "none"),
        (
            "head size",
            [64, 128].contains(&config.depth),
            config.depth.to_string(),
            "64 or 128 elements of a head",
        ),
        ("scale of embeddings", config.embedding_scale == 1.0, config.embedding_scale.to_string(), "1"),
        (
            // The two biases are used as one, and each begins at a multiple of 64 elements.
            "size of the MLP",
            !joined_biases || config.mlp_width.is_multiple_of(64),
            config.mlp_width.to_string(),
            "a multiple of 64 if gates have a bias",
        ),
    ];
    match rules.into_iter().find(|(_, holds, ..)| !holds) {
        None => Ok(()),
        Some((name, _, found, wanted)) => Err(TrainingError::Model { name, found, wanted }),
    }
}
