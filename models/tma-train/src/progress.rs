//! The progress of a run: a bar in a terminal, and elsewhere a line now and then.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::losses::{StepLine, ValidationLine};

/// The progress of a run, on the standard error.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    /// Steps between two lines, if there is no bar.
    lines: Option<u32>,
    steps: u32,
    validation: Option<f32>,
}

impl Progress {
    /// Returns the progress of a run of `steps` steps, of which `done` are done. Outside a terminal,
    /// there is a line every `every` steps.
    pub fn new(steps: u32, done: u32, every: u32) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let bar = ProgressBar::with_draw_target(Some(steps.into()), ProgressDrawTarget::stderr());
        // The template is a constant, and a mistake in it only changes how the bar looks.
        let template = "{pos}/{len} {wide_bar} {msg}, {eta} left";
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        bar.set_position(done.into());
        bar.reset_eta();
        bar.set_message("first step");
        if is_terminal {
            bar.enable_steady_tick(Duration::from_millis(500));
        }
        Self { bar, lines: (!is_terminal).then_some(every.max(1)), steps, validation: None }
    }

    /// Returns a progress that shows nothing but messages.
    pub fn quiet() -> Self {
        Self { bar: ProgressBar::hidden(), lines: None, steps: 0, validation: None }
    }

    /// Shows a step.
    pub fn step(&mut self, line: &StepLine) {
        let text = format!("{}{}", described(line), self.validation_text());
        self.bar.set_position(line.step.into());
        self.bar.set_message(text.clone());
        let is_shown = |every: u32| line.step.is_multiple_of(every) || line.step == self.steps;
        if self.lines.is_some_and(is_shown) {
            eprintln!("step {} of {}: {text}", line.step, self.steps);
        }
    }

    /// Shows a loss of the held-out text, also beside the next steps.
    pub fn validation(&mut self, line: &ValidationLine) {
        self.validation = line.validation_loss;
        if self.lines.is_some() {
            let loss = line.validation_loss.map_or_else(|| "not finite".into(), |loss| format!("{loss:.4}"));
            eprintln!("step {} of {}: validation loss {loss}", line.step, self.steps);
        }
    }

    /// Writes a message above the bar.
    pub fn message(&self, text: &str) {
        self.bar.suspend(|| eprintln!("{text}"));
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
