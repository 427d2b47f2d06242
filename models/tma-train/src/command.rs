//! A run, from its arguments to its last step.

use tma_kernels::optimizer::AdamWOptions;
use tma_runtime::Device;
use tma_training::{Trainer, TrainingOptions};

use crate::arguments::Arguments;
use crate::checkpoint::{self, Disk};
use crate::error::TrainError;
use crate::interrupt::Interrupt;
use crate::losses::LastLosses;
use crate::model::{self, Model};
use crate::progress::{Progress, note};
use crate::resume::{self, Begin};
use crate::settings::Settings;
use crate::stream::{SourceText, TokenFile};
use crate::train::{Job, Outcome, Position, Reports, train};
use crate::{device, output, windows};

/// The end of a run that did not fail.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Whether all steps are done.
    pub outcome: Outcome,
    /// The last step and checkpoint.
    pub position: Position,
    /// The last losses.
    pub losses: LastLosses,
}

/// Trains as the command line says, until all steps are done or a signal has asked the run to end.
///
/// # Errors
///
/// Arguments out of their range, files that are missing, damaged or of another run, a loss that is
/// no longer finite, errors of the device, and [`TrainError::Interrupted`].
pub fn run(arguments: &Arguments, interrupt: &Interrupt) -> Result<Summary, TrainError> {
    let interrupted = || interrupt.code().is_some();
    let folder = arguments.output.as_path();
    let model = model::open(&arguments.model, arguments.tokenizer.as_deref())?;
    arguments.check(&model)?;
    note(&format!("reading {}", arguments.text.display()));
    let text = SourceText::open(&arguments.text, &model.tokenizer)?;
    // The lock is held until the end.
    let _lock = output::lock(folder)?;
    if !arguments.restart && !checkpoint::list(folder)?.is_empty() {
        note("comparing the newest checkpoint with its checksums");
    }
    let search = resume::find(folder, arguments.restart)?;
    let settings = arguments.settings(&model, &text, search.found.as_ref().map(|(_, record)| record));
    settings.check()?;
    resume::check(&search, &settings)?;
    note("preparing the tokens of the text");
    let tokens = TokenFile::open(folder, &text, &model.tokenizer, &interrupted)?;
    let parts = windows::split(tokens.len(), settings.validation, settings.window())?;

    let device = device::open(arguments.device.as_deref())?;
    note(&format!("preparing the model on {}", device.name()));
    let mut trainer = trainer(&device, &model, &settings, arguments.recompute)?;
    let mut position = resume::restore(&mut trainer, &search)?;
    if interrupted() {
        return Err(TrainError::Interrupted);
    }
    let begin = Begin { restart: arguments.restart, prints: arguments.json };
    let losses = resume::prepare(&mut Disk, folder, &search, begin, &note)?;
    if let Some(checkpoint) = &position.checkpoint {
        note(&format!("continuing from {}", checkpoint.display()));
    }
    note(&description(&device, &trainer, &settings, tokens.len()));
    let progress = Progress::new(settings.steps, position.step, arguments.print_every);
    let mut reports = Reports { losses, progress };
    let job = Job {
        output: folder,
        settings: &settings,
        intervals: arguments.intervals(),
        tokens: &tokens,
        parts: &parts,
        tokenizer: &model.tokenizer.json(),
        peak: device::peak(device.name()).map(|peak| peak / trainer.flops_per_token()),
    };
    interrupt.begin_steps();
    let outcome = train(&job, &mut trainer, &mut Disk, &mut reports, &mut position, &interrupted);
    reports.progress.finish();
    Ok(Summary { outcome: outcome?, position, losses: reports.losses.last() })
}

/// Returns a model with its first weights on a device.
fn trainer(
    device: &Device,
    model: &Model,
    settings: &Settings,
    recompute: bool,
) -> Result<Trainer, TrainError> {
    let options = TrainingOptions {
        sequences: settings.sequences,
        length: settings.length,
        micro_batches: settings.micro_batches(),
        recompute,
        weight_decay: settings.weight_decay as f32,
        max_norm: if settings.clip > 0.0 { settings.clip as f32 } else { f32::INFINITY },
        adamw: AdamWOptions {
            beta1: settings.beta1 as f32,
            beta2: settings.beta2 as f32,
            ..AdamWOptions::default()
        },
        ..TrainingOptions::default()
    };
    Ok(Trainer::new(device, &model.config, options, settings.seed)?)
}

fn description(device: &Device, trainer: &Trainer, settings: &Settings, tokens: usize) -> String {
    let of_step = settings.tokens();
    let passes = of_step as f64 * f64::from(settings.steps) / tokens.max(1) as f64;
    format!(
        "{} parameters on {}; {tokens} tokens of text, {of_step} in a step: {passes:.2} times the text in {} steps",
        trainer.parameters(),
        device.name(),
        settings.steps
    )
}
