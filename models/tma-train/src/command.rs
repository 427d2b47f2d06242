//! A run, from its arguments to its last step.

use std::path::PathBuf;

use tma_kernels::optimizer::AdamWOptions;
use tma_runtime::Device;
use tma_training::{Trainer, TrainingOptions};

use crate::arguments::Arguments;
use crate::checkpoint::{self, Disk, Record};
use crate::error::TrainError;
use crate::losses::Losses;
use crate::model::{self, Model};
use crate::progress::Progress;
use crate::settings::{self, Settings};
use crate::stream::{Stream, Text};
use crate::train::{Job, Outcome, Position, Reports, train};
use crate::{device, output, windows};

/// Trains as the command line says, until all steps are done or `interrupted` returns true after a
/// step. Returns the last checkpoint as well.
///
/// # Errors
///
/// Arguments out of their range, files that are missing, damaged or of another run, a loss that is
/// no longer finite, and errors of the device.
pub fn run(arguments: &Arguments, interrupted: &dyn Fn() -> bool) -> Result<(Outcome, Position), TrainError> {
    let folder = arguments.output.as_path();
    // The lock is held until the end.
    let _lock = output::lock(folder)?;
    let model = model::open(&arguments.model, arguments.tokenizer.as_deref())?;
    let text = Text::open(&arguments.text, &model.tokenizer)?;
    let settings = arguments.settings(&model, &text);
    settings.check()?;
    let resumed = resumed(arguments, &settings)?;
    let stream = Stream::open(folder, &text, &model.tokenizer)?;
    let parts = windows::split(stream.len(), settings.validation, settings.window())?;

    let device = device::open(arguments.device.as_deref())?;
    let mut trainer = trainer(&device, &model, &settings, arguments.recompute)?;
    let mut position = restore(&mut trainer, resumed)?;
    eprintln!("{}", description(&device, &trainer, &settings, stream.len()));
    let mut reports = Reports {
        losses: Losses::open(folder, position.step, arguments.json)?,
        progress: Progress::new(settings.steps, position.step, arguments.print_every),
    };
    let job = Job {
        output: folder,
        settings: &settings,
        intervals: arguments.intervals(),
        stream: &stream,
        parts: &parts,
        tokenizer: &model.tokenizer.json(),
        peak: device::peak(device.name()).map(|peak| peak / trainer.flops_per_token()),
    };
    let outcome = train(&job, &mut trainer, &mut Disk, &mut reports, &mut position, interrupted);
    reports.progress.finish();
    Ok((outcome?, position))
}

/// Prepares the output folder, and returns the checkpoint to continue from, if there is one.
fn resumed(arguments: &Arguments, settings: &Settings) -> Result<Option<(PathBuf, Record)>, TrainError> {
    let folder = arguments.output.as_path();
    checkpoint::clean(&mut Disk, folder)?;
    if arguments.restart
        && let Some(before) = output::move_away(folder)?
    {
        eprintln!("moved the checkpoints and losses before to {}", before.display());
    }
    let search = checkpoint::newest(folder)?;
    if let Some((found, record)) = &search.found {
        let differences = settings::differences(&record.settings, settings);
        if !differences.is_empty() {
            return Err(TrainError::OtherRun { folder: found.clone(), differences });
        }
    }
    for (damaged, damage) in &search.damaged {
        let aside = checkpoint::set_aside(&mut Disk, folder, damaged)?;
        eprintln!("warning: {damage}; the checkpoint is now {}", aside.display());
    }
    Ok(search.found)
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

/// Restores the state of a checkpoint, if there is one.
fn restore(trainer: &mut Trainer, resumed: Option<(PathBuf, Record)>) -> Result<Position, TrainError> {
    let Some((folder, record)) = resumed else { return Ok(Position::default()) };
    trainer.restore(&checkpoint::state(&folder, &record)?)?;
    eprintln!("continuing from {}", folder.display());
    Ok(Position { step: record.step, checkpoint: Some(folder) })
}

fn description(device: &Device, trainer: &Trainer, settings: &Settings, tokens: usize) -> String {
    let of_step = settings.tokens();
    let windows = of_step as f64 * f64::from(settings.steps) / tokens.max(1) as f64;
    format!(
        "{} parameters on {}; {tokens} tokens of text, {of_step} in a step: {windows:.2} times the text in {} steps",
        trainer.parameters(),
        device.name(),
        settings.steps
    )
}
