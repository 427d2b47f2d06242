//! A function that is trained in the place of a model, and a run of it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::json;
use tempfile::TempDir;
use tma_train::TrainError;
use tma_train::checkpoint::{self, Disk, Record, Storage};
use tma_train::progress::Progress;
use tma_train::resume::{self, Begin};
use tma_train::schedule::Decay;
use tma_train::settings::Settings;
use tma_train::steps::{State, StateTensor, StepReport, Trainable, TrainingError};
use tma_train::stream::{SourceText, TokenFile};
use tma_train::tokenizer::TextTokenizer;
use tma_train::train::{Intervals, Job, Outcome, Position, Reports, train};
use tma_train::windows::{self, Parts};

/// A quadratic function, whose minimum depends on the tokens of a step. It has the moments of Adam.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Quadratic {
    pub(crate) state: State,
    /// Steps done, also those that were skipped.
    pub(crate) calls: u32,
    /// Steps whose gradients are not finite.
    pub(crate) skipped: Vec<u32>,
    /// The step that fails.
    pub(crate) fails_at: Option<u32>,
}

impl Quadratic {
    pub(crate) fn new() -> Self {
        Self { state: state(0, 0.0), calls: 0, skipped: vec![], fails_at: None }
    }
}

/// Returns a state of two tensors that depends on a number.
pub(crate) fn state(steps: u32, offset: f32) -> State {
    let tensor = |name: &str, shape: &[usize]| {
        let count = shape.iter().product::<usize>();
        let numbers = |factor: f32| (0..count).map(|i| offset + factor * (i as f32 + 0.1)).collect();
        StateTensor {
            name: name.into(),
            shape: shape.into(),
            master: numbers(0.3),
            first: numbers(1e-3),
            second: numbers(1e-39),
        }
    };
    State { steps, tensors: vec![tensor("layers.0.weight", &[3, 2]), tensor("layers.0.bias", &[5])] }
}

impl Trainable for Quadratic {
    fn step(&mut self, tokens: &[u32], learning_rate: f32) -> Result<StepReport, TrainingError> {
        self.calls += 1;
        if self.fails_at == Some(self.calls) {
            return Err(TrainingError::Tokens { found: 0, wanted: tokens.len(), of: "a failure" });
        }
        if self.skipped.contains(&self.calls) {
            return Ok(StepReport { loss: f32::NAN, gradient_norm: f32::INFINITY, skipped: true });
        }
        let loss = self.evaluate(tokens)?;
        self.state.steps += 1;
        let numbers = tokens.iter().cycle();
        let mut squares = 0.0;
        for tensor in &mut self.state.tensors {
            let moments = tensor.first.iter_mut().zip(&mut tensor.second);
            for ((x, (first, second)), token) in tensor.master.iter_mut().zip(moments).zip(numbers.clone()) {
                let gradient = *x - *token as f32 / 64.0;
                squares += gradient * gradient;
                *first = 0.9 * *first + 0.1 * gradient;
                *second = 0.95 * *second + 0.05 * gradient * gradient;
                *x -= learning_rate * *first / (second.sqrt() + 1e-8);
            }
        }
        Ok(StepReport { loss, gradient_norm: squares.sqrt(), skipped: false })
    }

    fn evaluate(&mut self, tokens: &[u32]) -> Result<f32, TrainingError> {
        let numbers = self.state.tensors.iter().flat_map(|tensor| &tensor.master);
        Ok(numbers.zip(tokens.iter().cycle()).map(|(x, token)| (x - *token as f32 / 64.0).powi(2)).sum())
    }

    fn state(&self) -> Result<State, TrainingError> {
        Ok(self.state.clone())
    }

    fn restore(&mut self, state: &State) -> Result<(), TrainingError> {
        self.state = state.clone();
        Ok(())
    }
}

/// The inputs of a run, in a folder of their own.
pub(crate) struct Fixture {
    _folder: TempDir,
    pub(crate) output: PathBuf,
    pub(crate) settings: Settings,
    pub(crate) intervals: Intervals,
    tokens: TokenFile,
    parts: Parts,
}

/// The end of a run.
pub(crate) struct End {
    pub(crate) result: Result<Outcome, TrainError>,
    pub(crate) position: Position,
    pub(crate) model: Quadratic,
}

impl Fixture {
    /// Returns the inputs of a run of 20 steps.
    pub(crate) fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let (path, output) = (folder.path().join("text"), folder.path().join("output"));
        fs::write(&path, (0..3000_u32).map(|i| (i * i % 97 + 30) as u8).collect::<Vec<_>>())?;
        fs::create_dir(&output)?;
        let text = SourceText::open(&path, &TextTokenizer::Bytes)?;
        let tokens = TokenFile::open(&output, &text, &TextTokenizer::Bytes, &|| false)?;
        let settings = settings();
        let parts = windows::split(tokens.len(), settings.validation, settings.window())?;
        let intervals =
            Intervals { evaluate: 5, evaluations: 2, save: 4, save_initial: false, keep: 2, patience: 3 };
        Ok(Self { _folder: folder, output, settings, intervals, tokens, parts })
    }

    /// Runs from the newest checkpoint, up to the last step or until `interrupted` returns true.
    pub(crate) fn run(
        &self,
        mut model: Quadratic,
        storage: &mut impl Storage,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<End> {
        let search = resume::find(&self.output, false)?;
        resume::check(&search, &self.settings)?;
        let mut position = resume::restore(&mut model, &search)?;
        if position.checkpoint.is_some() {
            model.calls = position.step;
        }
        let losses = resume::prepare(&mut Disk, &self.output, &search, Begin::default(), &|_| ())?;
        let mut reports = Reports { losses, progress: Progress::quiet() };
        let tokenizer = TextTokenizer::Bytes.json();
        let job = Job {
            output: &self.output,
            settings: &self.settings,
            intervals: self.intervals,
            tokens: &self.tokens,
            parts: &self.parts,
            tokenizer: &tokenizer,
            peak: None,
        };
        let result = train(&job, &mut model, storage, &mut reports, &mut position, interrupted);
        Ok(End { result, position, model })
    }

    /// Runs up to the last step.
    pub(crate) fn finish(&self, model: Quadratic) -> Result<End> {
        self.run(model, &mut Disk, &|| false)
    }
}

/// Returns the options of a small run.
pub(crate) fn settings() -> Settings {
    Settings {
        model: json!({ "model_type": "llama", "hidden_size": 64 }),
        text: "00".into(),
        tokenizer: "11".into(),
        validation: 0.1,
        steps: 20,
        batch: 4,
        sequences: 2,
        length: 8,
        learning_rate: 0.02,
        warmup: 3,
        schedule: Decay::Cosine,
        weight_decay: 0.1,
        clip: 1.0,
        beta1: 0.9,
        beta2: 0.95,
        seed: 7,
    }
}

/// Returns the record of a run after so many steps.
pub(crate) fn record(step: u32) -> Record {
    Record {
        version: checkpoint::VERSION,
        step,
        updates: step,
        settings: settings(),
        loss: Some(0.1 + step as f32),
        losses: "losses.jsonl".into(),
        files: vec![],
    }
}

/// Returns the names in a folder, in alphabetical order.
pub(crate) fn names(folder: &Path) -> Result<Vec<String>> {
    let names = fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let mut names = names.collect::<Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}
