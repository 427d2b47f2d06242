//! The loop of a run: steps, losses of the held-out text, checkpoints.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::checkpoint::{self, Contents, Record, Storage};
use crate::curve;
use crate::error::TrainError;
use crate::losses::{self, Line, Losses, StepLine, ValidationLine, finite};
use crate::progress::Progress;
use crate::schedule::learning_rate;
use crate::settings::Settings;
use crate::steps::{StepReport, Trainable};
use crate::stream::TokenFile;
use crate::windows::{self, Parts};

/// When the loop does more than a step. None of it changes the numbers of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intervals {
    /// Steps between two losses of the held-out text.
    pub evaluate: u32,
    /// Micro-batches of a loss of the held-out text.
    pub evaluations: usize,
    /// Steps between two checkpoints.
    pub save: u32,
    /// Whether the state before the first step is saved as well.
    pub save_initial: bool,
    /// Checkpoints that are kept.
    pub keep: usize,
    /// Consecutive steps without finite loss and gradients after which the run stops.
    pub patience: u32,
}

/// The inputs of a run.
#[derive(Debug)]
pub struct Job<'a> {
    /// The output folder.
    pub output: &'a Path,
    /// The options that decide each number.
    pub settings: &'a Settings,
    /// When the loop does more than a step.
    pub intervals: Intervals,
    /// The tokens of the text.
    pub tokens: &'a TokenFile,
    /// The parts of the text.
    pub parts: &'a Parts,
    /// The contents of `tokenizer.json`.
    pub tokenizer: &'a [u8],
    /// The tokens a second at which the device would compute at its greatest rate, if it is known.
    pub peak: Option<f64>,
}

/// The progress of a run that [`train`] continues.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Position {
    /// The steps that were done.
    pub step: u32,
    /// The last good checkpoint.
    pub checkpoint: Option<PathBuf>,
}

/// The places that a run reports to.
#[derive(Debug)]
pub struct Reports {
    /// The lines of steps.
    pub losses: Losses,
    /// The bar.
    pub progress: Progress,
}

/// The end of a run that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All steps are done.
    Finished,
    /// The run was asked to end after a step.
    Interrupted,
}

/// Steps in a row without finite loss and gradients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Streak {
    since: u32,
    count: u32,
}

/// The state of the loop.
struct Loop<'a, 'b, S, D> {
    job: &'a Job<'b>,
    steps: &'a mut S,
    storage: &'a mut D,
    reports: &'a mut Reports,
    position: &'a mut Position,
    streak: Option<Streak>,
    loss: Option<f32>,
    /// Whether a checkpoint is to be written after the next good step.
    is_due: bool,
}

/// Trains up to the last step, or until `interrupted` returns true after a step. The last state is
/// saved in both cases, unless its step was skipped or had no finite loss. `position` is always that
/// of the last step and checkpoint, also after an error.
///
/// # Errors
///
/// [`TrainError::Diverged`], [`TrainError::NotFinite`], and those of steps and files.
pub fn train<S: Trainable, D: Storage>(
    job: &Job<'_>,
    steps: &mut S,
    storage: &mut D,
    reports: &mut Reports,
    position: &mut Position,
    interrupted: &dyn Fn() -> bool,
) -> Result<Outcome, TrainError> {
    let mut run = Loop { job, steps, storage, reports, position, streak: None, loss: None, is_due: false };
    // A run that begins again after a kill has this checkpoint already.
    if job.intervals.save_initial && run.position.checkpoint.is_none() {
        run.save()?;
    }
    while run.position.step < job.settings.steps {
        run.step()?;
        let is_last = run.position.step == job.settings.steps;
        let is_interrupted = !is_last && interrupted();
        run.after_step(is_last, is_interrupted)?;
        if is_interrupted {
            return Ok(Outcome::Interrupted);
        }
    }
    match run.streak {
        Some(streak) => Err(run.diverged(streak)),
        None => Ok(Outcome::Finished),
    }
}

impl<S: Trainable, D: Storage> Loop<'_, '_, S, D> {
    /// Does a step, and appends its line.
    fn step(&mut self) -> Result<(), TrainError> {
        let Job { settings, tokens: text, parts, intervals, .. } = self.job;
        let index = self.position.step;
        let rate = learning_rate(&settings.rates(), index);
        let start = Instant::now();
        let tokens =
            windows::draw(text, &parts.training, settings.seed, index, settings.batch, settings.window());
        let report = self.steps.step(&tokens, rate)?;
        let seconds = start.elapsed().as_secs_f64();
        self.position.step += 1;
        self.loss = finite(report.loss);
        let line = step_line(self.job, self.position.step, rate, report, seconds);
        self.reports.losses.append(&Line::Step(line))?;
        self.reports.progress.step(&line);
        self.streak = next_streak(self.streak, report, self.position.step);
        match self.streak {
            Some(streak) if streak.count >= intervals.patience => Err(self.diverged(streak)),
            Some(_) | None => Ok(()),
        }
    }

    /// Does what is due after a step. A checkpoint comes last: the lines before it then have all up to
    /// its step.
    fn after_step(&mut self, is_last: bool, is_interrupted: bool) -> Result<(), TrainError> {
        let (step, intervals) = (self.position.step, self.job.intervals);
        if is_last || step.is_multiple_of(intervals.evaluate) {
            self.evaluate()?;
            self.draw();
        }
        self.is_due |= is_last || is_interrupted || step.is_multiple_of(intervals.save);
        // The state after a step that failed may be no good. It waits for one that did not fail.
        if self.is_due && self.streak.is_none() {
            self.save()?;
            self.is_due = false;
        }
        if is_interrupted {
            self.draw();
        }
        Ok(())
    }

    /// Computes the loss of the held-out text, if there is any, and appends its line.
    fn evaluate(&mut self) -> Result<(), TrainError> {
        let Job { settings, tokens: text, parts, intervals, .. } = self.job;
        if parts.validation.is_empty() {
            return Ok(());
        }
        let (sequences, window) = (settings.sequences, settings.window());
        let tokens = windows::spaced(text, &parts.validation, intervals.evaluations * sequences, window);
        let mut sum = 0.0;
        for micro_batch in tokens.chunks(sequences * window) {
            sum += f64::from(self.steps.evaluate(micro_batch)?);
        }
        let mean = (sum / intervals.evaluations as f64) as f32;
        let line = ValidationLine { step: self.position.step, validation_loss: finite(mean) };
        self.reports.losses.append(&Line::Validation(line))?;
        self.reports.progress.validation(&line);
        Ok(())
    }

    /// Writes a checkpoint, and removes older ones.
    fn save(&mut self) -> Result<(), TrainError> {
        let Job { output, settings, tokenizer, intervals, .. } = *self.job;
        let start = Instant::now();
        // Steps of a checkpoint must not be missing in the file of losses.
        self.reports.losses.sync()?;
        let state = self.steps.state()?;
        let record = Record {
            version: checkpoint::VERSION,
            step: self.position.step,
            updates: state.steps,
            settings: settings.clone(),
            loss: self.loss,
            losses: losses::NAME.into(),
            files: vec![],
        };
        let kept = self.position.checkpoint.as_deref();
        let contents = Contents { record, state: &state, tokenizer, kept };
        let folder = checkpoint::save(self.storage, output, &contents)?;
        self.reports.progress.saved(&folder, start.elapsed());
        self.position.checkpoint = Some(folder);
        // The new checkpoint is safe, and a removal is tried again after the next one.
        if let Err(error) = checkpoint::prune(self.storage, output, intervals.keep) {
            self.warn(&error);
        }
        Ok(())
    }

    /// Draws the picture. A run does not end because of it.
    fn draw(&self) {
        if let Err(error) = curve::write(self.job.output, self.reports.losses.lines()) {
            self.warn(&error);
        }
    }

    /// Shows an error that does not end the run, with its reason.
    fn warn(&self, error: &TrainError) {
        let reason = error.source().map_or_else(String::new, |reason| format!(": {reason}"));
        self.reports.progress.message(&format!("warning: {error}{reason}"));
    }

    fn diverged(&self, streak: Streak) -> TrainError {
        self.draw();
        let Streak { since, count } = streak;
        TrainError::Diverged { since, count, kept: self.position.checkpoint.clone() }
    }
}

/// Returns the steps in a row without finite loss and gradients, after one more step.
fn next_streak(before: Option<Streak>, report: StepReport, step: u32) -> Option<Streak> {
    if !report.skipped && report.loss.is_finite() {
        return None;
    }
    let Streak { since, count } = before.unwrap_or(Streak { since: step, count: 0 });
    Some(Streak { since, count: count + 1 })
}

fn step_line(job: &Job<'_>, step: u32, learning_rate: f32, report: StepReport, seconds: f64) -> StepLine {
    let tokens = job.settings.tokens();
    let tokens_per_second = tokens as f64 / seconds.max(f64::MIN_POSITIVE);
    StepLine {
        step,
        loss: finite(report.loss),
        gradient_norm: finite(report.gradient_norm),
        skipped: report.skipped,
        learning_rate,
        tokens: tokens * u64::from(step),
        seconds,
        tokens_per_second,
        share_of_peak: job.peak.map(|peak| tokens_per_second / peak),
    }
}
