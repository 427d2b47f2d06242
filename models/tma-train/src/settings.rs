//! The options that decide each number of a run. A run resumes only with the same ones.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::TrainError;
use crate::schedule::{Decay, Schedule};

/// The options that decide each number of a run, with the identities of its inputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The contents of `config.json`.
    pub model: Value,
    /// SHA-256 of the text, in hexadecimal digits.
    pub text: String,
    /// SHA-256 of the tokenizer, in hexadecimal digits.
    pub tokenizer: String,
    /// The share of the text that is held out.
    pub validation: f64,
    /// Steps of the run.
    pub steps: u32,
    /// Sequences of a step.
    pub batch: usize,
    /// Sequences of a micro-batch.
    pub sequences: usize,
    /// Predicted tokens of a sequence.
    pub length: usize,
    /// The greatest learning rate.
    pub learning_rate: f64,
    /// Warm-up steps.
    pub warmup: u32,
    /// The change of the learning rate after the warm-up.
    pub schedule: Decay,
    /// The weight decay of matrices.
    pub weight_decay: f64,
    /// The greatest norm of all gradients; 0 stands for no limit.
    pub clip: f64,
    /// The share of first moments that a step keeps.
    pub beta1: f64,
    /// The share of second moments that a step keeps.
    pub beta2: f64,
    /// The seed of weights and windows.
    pub seed: u64,
}

impl Settings {
    /// Returns the tokens of a window: those of a sequence and the one after it.
    pub fn window(&self) -> usize {
        self.length + 1
    }

    /// Returns the micro-batches of a step.
    pub fn micro_batches(&self) -> usize {
        self.batch / self.sequences
    }

    /// Returns the predicted tokens of a step.
    pub fn tokens(&self) -> u64 {
        (self.batch * self.length) as u64
    }

    /// Returns the learning rates.
    pub fn rates(&self) -> Schedule {
        Schedule { peak: self.learning_rate, warmup: self.warmup, steps: self.steps, decay: self.schedule }
    }

    /// Checks ranges, also of options that belong together.
    ///
    /// # Errors
    ///
    /// [`TrainError::Option`] with the first option that is out of its range.
    pub fn check(&self) -> Result<(), TrainError> {
        let whole_batch = self.sequences > 0 && self.batch > 0 && self.batch.is_multiple_of(self.sequences);
        // Kernels have `f32`: numbers are judged as those, in which small ones are 0.
        let is_share = |share: f64| (0.0..1.0).contains(&(share as f32));
        let is_finite = |number: f64| (number as f32).is_finite() && number >= 0.0;
        let is_positive = |number: f64| is_finite(number) && number as f32 > 0.0;
        let is_clip = self.clip == 0.0 || is_positive(self.clip);
        let multiple = format!("give a multiple of --sequences, which is {}", self.sequences);
        let rules = [
            ("steps", self.steps > 0, self.steps.to_string(), "give at least 1"),
            ("sequences", self.sequences > 0, self.sequences.to_string(), "give at least 1"),
            ("length", self.length > 0, self.length.to_string(), "give at least 1"),
            ("batch", whole_batch, self.batch.to_string(), &multiple),
            (
                "learning-rate",
                is_positive(self.learning_rate),
                number(self.learning_rate),
                "give a number above 0 that f32 has",
            ),
            ("warmup", self.warmup < self.steps, self.warmup.to_string(), "give less than --steps"),
            (
                "weight-decay",
                is_finite(self.weight_decay),
                self.weight_decay.to_string(),
                "give a number of at least 0",
            ),
            ("clip", is_clip, number(self.clip), "give 0, or a number above 0 that f32 has"),
            (
                "beta1",
                is_share(self.beta1),
                self.beta1.to_string(),
                "give a number from 0 up to 1, and below 1 as f32",
            ),
            (
                "beta2",
                is_share(self.beta2),
                self.beta2.to_string(),
                "give a number from 0 up to 1, and below 1 as f32",
            ),
            (
                "validation",
                is_share(self.validation),
                self.validation.to_string(),
                "give a share from 0 up to 1",
            ),
        ];
        match rules.into_iter().find(|(_, holds, ..)| !holds) {
            None => Ok(()),
            Some((name, _, found, wanted)) => Err(TrainError::Option { name, found, wanted: wanted.into() }),
        }
    }
}

/// Returns the text of a number, without long rows of zeros.
fn number(number: f64) -> String {
    match number.abs() {
        1e-9..1e16 => number.to_string(),
        size if size > 0.0 && size.is_finite() => format!("{number:e}"),
        _ => number.to_string(),
    }
}

/// Returns the options that differ, each with the value of a checkpoint and the one now. A run with
/// a constant learning rate may become longer: its steps so far are the same.
pub fn differences(before: &Settings, now: &Settings) -> Vec<String> {
    let is_constant = [before, now].iter().all(|settings| settings.schedule == Decay::Constant);
    let steps = if is_constant { now.steps } else { before.steps };
    let [before, now] = [&Settings { steps, ..before.clone() }, now].map(fields);
    let differing = before.iter().filter(|(name, value)| now.get(*name) != Some(value));
    let described = differing.map(|(name, value)| match (name.as_str(), now.get(name)) {
        (name @ ("text" | "tokenizer"), _) => format!("--{name} has other contents"),
        ("model", Some(new)) => format!("--model: {}", model_difference(value, new)),
        (name, new) => {
            let new = new.map_or_else(String::new, Value::to_string);
            format!("--{} was {value}, now it is {new}", name.replace('_', "-"))
        }
    });
    described.collect()
}

/// Returns the fields by name.
fn fields(settings: &Settings) -> Map<String, Value> {
    match serde_json::to_value(settings) {
        Ok(Value::Object(fields)) => fields,
        // A struct whose keys are names is an object.
        Ok(_) | Err(_) => Map::new(),
    }
}

/// Returns the first setting of `config.json` that differs.
fn model_difference(before: &Value, now: &Value) -> String {
    let (Some(before), Some(now)) = (before.as_object(), now.as_object()) else {
        return "config.json".into();
    };
    let names = before.keys().chain(now.keys());
    let differing = names.into_iter().find(|name| before.get(*name) != now.get(*name));
    let value = |of: &Map<String, Value>, name: &String| of.get(name).cloned().unwrap_or_default();
    differing.map_or_else(String::new, |name| {
        format!("{name} of config.json was {}, now it is {}", value(before, name), value(now, name))
    })
}
