//! The progress of a run: a bar in a terminal, and elsewhere a line now and then.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::losses::{StepLine, ValidationLine};

/// Writes a line to the standard error. A reader that went away does not end the training.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Returns a bar of the bytes of a text, which is hidden outside a terminal.
pub(crate) fn byte_bar(bytes: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::stderr());
    bar.set_style(style("tokens: {bytes}/{total_bytes} {wide_bar} {eta} left"));
    bar
}

/// Returns the style of a template. Templates are constants, and a mistake in one only changes how
/// the bar looks.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// The progress of a run, on the standard error.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    /// Steps between two lines, if there is no bar.
    lines: Option<u32>,
    /// Whether steps and validations are shown at all.
    is_shown: bool,
    steps: u32,
    validation: Option<f32>,
}

impl Progress {
    /// Returns the progress of a run of `steps` steps, of which `done` are done. Outside a terminal,
    /// there is a line every `every` steps.
    pub fn new(steps: u32, done: u32, every: u32) -> Self {
        let is_terminal = io::stderr().is_terminal();
        let bar = ProgressBar::with_draw_target(Some(steps.into()), ProgressDrawTarget::stderr());
        bar.set_style(style("{pos}/{len} {wide_bar} {msg}, {eta} left"));
        bar.set_position(done.into());
        bar.reset_eta();
        bar.set_message("first step");
        if is_terminal {
            bar.enable_steady_tick(Duration::from_millis(500));
        }
        Self { bar, lines: (!is_terminal).then_some(every.max(1)), is_shown: true, steps, validation: None }
    }

    /// Returns a progress that shows nothing but messages.
    pub fn quiet() -> Self {
        Self { bar: ProgressBar::hidden(), lines: None, is_shown: false, steps: 0, validation: None }
    }

    /// Shows a step.
    pub fn step(&mut self, line: &StepLine) {
        let text = format!("{}{}", described(line), self.validation_text());
        self.bar.set_position(line.step.into());
        self.bar.set_message(text.clone());
        let is_shown = |every: u32| line.step.is_multiple_of(every) || line.step == self.steps;
        if self.lines.is_some_and(is_shown) {
            note(&format!("step {} of {}: {text}", line.step, self.steps));
        }
    }

    /// Shows a loss of the held-out text, also beside the next steps.
    pub fn validation(&mut self, line: &ValidationLine) {
        self.validation = line.validation_loss;
        let loss = line.validation_loss.map_or_else(|| "not finite".into(), |loss| format!("{loss:.4}"));
        if self.is_shown {
            self.message(&format!("step {} of {}: validation loss {loss}", line.step, self.steps));
        }
    }

    /// Shows that a checkpoint was written, with the time for which no step ran.
    pub fn saved(&self, folder: &Path, time: Duration) {
        if self.is_shown {
            self.message(&format!("saved {} in {:.1} s", folder.display(), time.as_secs_f64()));
        }
    }

    /// Writes a message above the bar.
    pub fn message(&self, text: &str) {
        self.bar.suspend(|| note(text));
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn validation_text(&self) -> String {
        self.validation.map_or_else(String::new, |loss| format!(", validation {loss:.4}"))
    }
}

/// Returns the numbers of a step as text.
fn described(line: &StepLine) -> String {
    let loss = match (line.skipped, line.loss) {
        (true, _) => "skipped, gradients are not finite".into(),
        (false, None) => "loss is not finite".into(),
        (false, Some(loss)) => format!("loss {loss:.4}"),
    };
    let peak =
        line.share_of_peak.map_or_else(String::new, |share| format!(", {:.1} % of peak", 100.0 * share));
    format!("{loss}, {} tokens/s{peak}", grouped(line.tokens_per_second))
}

/// Returns a rate with three digits or more.
fn grouped(rate: f64) -> String {
    match rate {
        rate if rate >= 1e6 => format!("{:.2}M", rate / 1e6),
        rate if rate >= 1e4 => format!("{:.1}k", rate / 1e3),
        rate => format!("{rate:.0}"),
    }
}
