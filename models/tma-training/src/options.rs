//! Options of training, and the models that can be trained.

use tma_kernels::optimizer::AdamWOptions;
use tma_models::config::{Config, NormKind};

use crate::TrainingError;

/// The rows of all micro-batches must be fewer.
const MOST_ROWS: usize = 1 << 31;

/// The bytes of logits in memory at a time, unless the options say how many rows.
const LOGIT_BYTES: usize = 1 << 30;

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
    /// The rows whose logits are in memory at a time. 0 stands for the default: as many as fit into
    /// 1 GiB, in pieces of the same size. Each piece reads and writes the whole gradient of the
    /// matrix of logits, so fewer pieces are faster.
    pub logit_rows: usize,
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
            logit_rows: 0,
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

    /// Returns the rows whose logits are in memory at a time, of which each takes so many bytes.
    pub(crate) fn rows_of_logits(&self, row_bytes: usize) -> usize {
        let rows = self.rows();
        if self.logit_rows > 0 {
            return rows.min(self.logit_rows);
        }
        let pieces = rows.div_ceil((LOGIT_BYTES / row_bytes).max(1));
        // Whole tiles of GEMMs.
        rows.min(rows.div_ceil(pieces).next_multiple_of(128))
    }

    /// Checks that the options are in their ranges, and that a model can be trained with them. The
    /// optimiser checks its own.
    pub(crate) fn check(&self, config: &Config) -> Result<(), TrainingError> {
        self.check_numbers()?;
        config.check().map_err(|error| TrainingError::Config(Box::new(error)))?;
        check_model(config)?;
        let all = [self.sequences, self.length, self.micro_batches];
        let rows = all.iter().try_fold(1_usize, |rows, extent| rows.checked_mul(*extent));
        if rows.is_none_or(|rows| rows >= MOST_ROWS) {
            let [sequences, length, micro_batches] = all;
            return Err(TrainingError::Option {
                name: "micro_batches × sequences × length",
                found: format!("{micro_batches} × {sequences} × {length}"),
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
    let cap = |cap: Option<f32>| found(cap.map(|cap| cap.to_string()));
    let joined_biases = config.activation.is_gated() && config.has_mlp_bias;
    let rules = [
        ("experts", experts.is_none(), found(experts.map(|all| all.to_string())), "none"),
        (
            "sliding window",
            window.is_none(),
            found(window.map(|keys| format!("of {keys} keys"))),
            "attention to all earlier positions",
        ),
        ("attention soft cap", config.score_cap.is_none(), cap(config.score_cap), "none"),
        ("logit soft cap", config.logit_cap.is_none(), cap(config.logit_cap), "none"),
        (
            "norm",
            config.norm != NormKind::RmsOnePlus,
            "with a factor of 1 + weight".into(),
            "a factor of weight, as in Llama and GPT-2",
        ),
        ("norm", !config.norms_results, "after attention and MLP".into(), "norms before them"),
        ("norm", !config.norms_heads, "of queries and keys".into(), "none of heads"),
        ("head size", [64, 128].contains(&config.depth), config.depth.to_string(), "64 and 128"),
        ("embedding scale", config.embedding_scale == 1.0, config.embedding_scale.to_string(), "1"),
        (
            // The two biases are used as one, and each begins at a multiple of 64 elements.
            "MLP size",
            !joined_biases || config.mlp_width.is_multiple_of(64),
            config.mlp_width.to_string(),
            "multiples of 64 if gates have a bias",
        ),
    ];
    match rules.into_iter().find(|(_, holds, ..)| !holds) {
        None => Ok(()),
        Some((name, _, found, wanted)) => Err(TrainingError::Model { name, found, wanted }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_logits_have_the_same_size() {
        let options = TrainingOptions { sequences: 32, ..TrainingOptions::default() };
        // GPT-2: 1 GiB has 10680 rows. Llama 3: 4186 rows.
        assert_eq!(options.rows_of_logits(2 * 50264), 8192);
        assert_eq!(options.rows_of_logits(2 * 128_256), 4096);
        assert_eq!(options.rows_of_logits(2), 32 * 1024);
        assert_eq!(options.rows_of_logits(usize::MAX), 128);
        assert_eq!(TrainingOptions { logit_rows: 20, ..options }.rows_of_logits(2), 20);
        let small = TrainingOptions { sequences: 1, length: 24, logit_rows: 0, ..options };
        assert_eq!(small.rows_of_logits(usize::MAX), 24);
    }
}
