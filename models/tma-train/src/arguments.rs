//! The command line.

use std::path::PathBuf;

use clap::Parser;

use crate::checkpoint::Record;
use crate::error::TrainError;
use crate::model::Model;
use crate::schedule::Decay;
use crate::settings::Settings;
use crate::stream::SourceText;
use crate::train::Intervals;

/// The length of sequences, if neither the command line nor the model's context says less.
const LONGEST_DEFAULT: usize = 1024;

/// Trains a language model from a text file.
///
/// The output folder gets losses.jsonl, losses.svg and checkpoints, which tma-generate and Hugging
/// Face transformers load. If it has checkpoints already, the run continues from the newest one,
/// unless --restart is given. On the simulator its numbers are those of a run without interruption,
/// bit for bit; on a GPU, gradients are summed in an order that varies.
///
/// Exit codes: 0 when all steps are done, 1 after an error, 2 for wrong arguments, 130 after ctrl-c,
/// 143 after SIGTERM and 129 after SIGHUP, which all save the state first.
#[derive(Clone, Debug, Parser)]
#[command(version, args_override_self = true)]
pub struct Arguments {
    /// The model's shape (gpt2, llama-1b, tiny-gpt2 or tiny-llama), or a folder with config.json.
    /// Its weights begin with random numbers; those in a folder are not read.
    #[arg(long, value_name = "SHAPE|FOLDER")]
    pub model: String,
    /// The text to train on.
    #[arg(long, value_name = "FILE")]
    pub text: PathBuf,
    /// The folder for checkpoints and losses.
    #[arg(long, value_name = "FOLDER")]
    pub output: PathBuf,
    /// The tokenizer.json. The default is that of the model's folder; without one, each byte is a
    /// token, and <|endoftext|> is one.
    #[arg(long, value_name = "FILE")]
    pub tokenizer: Option<PathBuf>,
    /// The share of the text, at its end, that is held out for the validation loss; 0 for none.
    #[arg(long, default_value_t = 0.02)]
    pub validation: f64,
    /// The steps of the whole run.
    #[arg(long, default_value_t = 1000)]
    pub steps: u32,
    /// The sequences of a step. Gradients are summed over micro-batches of --sequences.
    #[arg(long, default_value_t = 32)]
    pub batch: usize,
    /// The sequences of a micro-batch, which are in memory at the same time.
    #[arg(long, default_value_t = 8)]
    pub sequences: usize,
    /// The predicted tokens of a sequence. The default is the model's context, up to 1024.
    #[arg(long)]
    pub length: Option<usize>,
    /// The greatest learning rate.
    #[arg(long, default_value_t = 6e-4)]
    pub learning_rate: f64,
    /// Warm-up steps, in which the learning rate grows. The default is a tenth of --steps, up to 100,
    /// or that of the checkpoint from which the run continues.
    #[arg(long)]
    pub warmup: Option<u32>,
    /// The change of the learning rate after that: down to a tenth, or none.
    #[arg(long, default_value = "cosine")]
    pub schedule: Decay,
    /// The weight decay of matrices; biases and norms have none.
    #[arg(long, default_value_t = 0.1)]
    pub weight_decay: f64,
    /// The greatest norm of all gradients, to which they are scaled; 0 for no limit.
    #[arg(long, default_value_t = 1.0)]
    pub clip: f64,
    /// The share of first moments that a step keeps.
    #[arg(long, default_value_t = 0.9)]
    pub beta1: f64,
    /// The share of second moments that a step keeps.
    #[arg(long, default_value_t = 0.95)]
    pub beta2: f64,
    /// The seed of the first weights, and of the windows of all steps.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Compute activations again in the backward pass: less memory, more time, the same numbers.
    #[arg(long)]
    pub recompute: bool,
    /// The steps between two validation losses.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub evaluate_every: u32,
    /// The micro-batches of a validation loss.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..))]
    pub evaluations: u16,
    /// The steps between two checkpoints.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    pub save_every: u32,
    /// Save the first weights as well, before the first step, as checkpoint-000000.
    #[arg(long)]
    pub save_initial: bool,
    /// The newest checkpoints that are kept.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    pub keep: u16,
    /// Consecutive steps without finite loss and gradients after which the run stops.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub patience: u32,
    /// The device: the number of a GPU, as 0 or cuda:0, or sim. The default is the first GPU, or the
    /// device that the environment variable TMA_DEVICE names.
    #[arg(long)]
    pub device: Option<String>,
    /// Begin from the first step, and move what the output folder has to a folder in it. The command
    /// without this option continues the new run.
    #[arg(long)]
    pub restart: bool,
    /// The steps between two lines of progress, where there is no terminal for a bar.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub print_every: u32,
    /// Print each line of losses.jsonl on the standard output as well.
    #[arg(long)]
    pub json: bool,
}

impl Arguments {
    /// Checks all that is known before the text is read.
    ///
    /// # Errors
    ///
    /// [`TrainError::Option`] with the first option that is out of its range.
    pub fn check(&self, model: &Model) -> Result<(), TrainError> {
        self.with_inputs(model, [String::new(), String::new()], None).check()?;
        let context = model.config.context;
        match self.length {
            Some(length) if length > context => Err(TrainError::Option {
                name: "length",
                found: length.to_string(),
                wanted: format!("give at most {context}, the model's context"),
            }),
            Some(_) | None => Ok(()),
        }
    }

    /// Returns the options that decide each number of the run. What is not given is that of the record
    /// of the checkpoint from which the run continues, if there is one.
    pub fn settings(&self, model: &Model, text: &SourceText, record: Option<&Record>) -> Settings {
        self.with_inputs(model, text.digits(), record)
    }

    fn with_inputs(&self, model: &Model, digits: [String; 2], record: Option<&Record>) -> Settings {
        let [text, tokenizer] = digits;
        // The default depends on --steps, which may become more.
        let default_warmup = record.map_or((self.steps / 10).min(100), |record| record.settings.warmup);
        Settings {
            model: model.json.clone(),
            text,
            tokenizer,
            validation: self.validation,
            steps: self.steps,
            batch: self.batch,
            sequences: self.sequences,
            length: self.length.unwrap_or(model.config.context.min(LONGEST_DEFAULT)),
            learning_rate: self.learning_rate,
            warmup: self.warmup.unwrap_or(default_warmup),
            schedule: self.schedule,
            weight_decay: self.weight_decay,
            clip: self.clip,
            beta1: self.beta1,
            beta2: self.beta2,
            seed: self.seed,
        }
    }

    /// Returns when the run does more than a step.
    pub fn intervals(&self) -> Intervals {
        Intervals {
            evaluate: self.evaluate_every,
            evaluations: self.evaluations.into(),
            save: self.save_every,
            save_initial: self.save_initial,
            keep: self.keep.into(),
            patience: self.patience,
        }
    }
}
