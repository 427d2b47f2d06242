//! A progress bar on standard error, if that is a terminal, for operations of more than a second.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// The time before the bar appears.
const PATIENCE: Duration = Duration::from_secs(1);

pub(crate) struct Progress {
    label: String,
    steps: u64,
    done: u64,
    begun: Instant,
    quiet: bool,
    bar: Option<ProgressBar>,
}

impl Progress {
    pub(crate) fn new(label: impl Into<String>, steps: u64, quiet: bool) -> Self {
        Self { label: label.into(), steps, done: 0, begun: Instant::now(), quiet, bar: None }
    }

    /// Records that one more step is done.
    pub(crate) fn step(&mut self) {
        self.done += 1;
        if self.bar.is_none() && !self.quiet && self.begun.elapsed() >= PATIENCE {
            let bar = ProgressBar::new(self.steps).with_message(self.label.clone());
            let style = ProgressStyle::with_template("{msg} [{bar:40}] {pos}/{len}, {eta} left");
            self.bar = Some(style.map_or(bar.clone(), |style| bar.with_style(style.progress_chars("=> "))));
        }
        if let Some(bar) = &self.bar {
            bar.set_position(self.done);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_bar_after_a_second_and_not_before() {
        let mut progress = Progress::new("tuning gemm", 3, false);
        progress.step();
        assert!(progress.bar.is_none());
        progress.begun -= PATIENCE;
        progress.step();
        let bar = progress.bar.as_ref().unwrap();
        assert_eq!((bar.position(), bar.length()), (2, Some(3)));
    }

    #[test]
    fn there_is_none_when_it_is_to_be_quiet() {
        let mut progress = Progress::new("tuning gemm", 1, true);
        progress.begun -= PATIENCE;
        progress.step();
        assert!(progress.bar.is_none());
    }
}
