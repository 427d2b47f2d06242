//! `losses.jsonl`: a line of JSON for each step, and for each loss of the held-out text.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::TrainError;

/// The name of the file in the output folder.
pub const NAME: &str = "losses.jsonl";

/// A line of the file.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Line {
    /// A step.
    Step(StepLine),
    /// A loss of the held-out text.
    Validation(ValidationLine),
}

/// The line of a step. Numbers that are not finite are `null`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepLine {
    /// The number of the step; the first one is 1.
    pub step: u32,
    /// The mean loss.
    pub loss: Option<f32>,
    /// The norm of all gradients.
    pub gradient_norm: Option<f32>,
    /// Whether the step left the parameters as they were, since its gradients were not finite.
    pub skipped: bool,
    /// The learning rate.
    pub learning_rate: f32,
    /// The tokens that were predicted since the first step.
    pub tokens: u64,
    /// The time of the step.
    pub seconds: f64,
    /// The tokens of the step, divided by its time.
    pub tokens_per_second: f64,
    /// The share of the GPU's greatest rate of `bf16` operations, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_of_peak: Option<f64>,
}

/// The line of a loss of the held-out text.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
// Each line of a step has its number as well, and must not become one of these.
#[serde(deny_unknown_fields)]
pub struct ValidationLine {
    /// The steps before it.
    pub step: u32,
    /// The mean loss.
    // `deserialize_with` makes the field required: `{"step":2}` is no line of a run.
    #[serde(deserialize_with = "Option::deserialize")]
    pub validation_loss: Option<f32>,
}

impl Line {
    /// Returns the number of the step.
    pub fn step(&self) -> u32 {
        match self {
            Self::Step(line) => line.step,
            Self::Validation(line) => line.step,
        }
    }
}

/// Returns a number, if it is finite.
pub fn finite(number: f32) -> Option<f32> {
    number.is_finite().then_some(number)
}

/// The file, to which lines are appended.
#[derive(Debug)]
pub struct Losses {
    path: PathBuf,
    file: File,
    lines: Vec<Line>,
    /// Whether lines also go to the standard output.
    prints: bool,
}

impl Losses {
    /// Opens the file, and removes the lines after so many steps, which a run that resumes there
    /// writes again.
    ///
    /// # Errors
    ///
    /// [`TrainError::Read`] for a line that is none of a run, and [`TrainError::Write`].
    pub fn open(output: &Path, step: u32, prints: bool) -> Result<Self, TrainError> {
        let path = output.join(NAME);
        let failed = TrainError::writing(&path);
        let file = OpenOptions::new().create(true).append(true).open(&path).map_err(&failed)?;
        let (mut lines, mut bytes) = (vec![], 0);
        for (line, end) in lines_of(&path)?.into_iter().take_while(|(line, _)| line.step() <= step) {
            lines.push(line);
            bytes = end;
        }
        // Not every system lets a file that is opened for appending be shortened.
        let shortened = OpenOptions::new().write(true).open(&path).and_then(|file| file.set_len(bytes));
        shortened.map_err(&failed)?;
        Ok(Self { path: output.join(NAME), file, lines, prints })
    }

    /// Returns all lines.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Returns the last loss of a step and that of the held-out text, if they are finite.
    pub fn last(&self) -> LastLosses {
        let lines = || self.lines.iter().rev();
        let step = lines().find_map(|line| match line {
            Line::Step(line) => Some(line.loss),
            Line::Validation(_) => None,
        });
        let validation = lines().find_map(|line| match line {
            Line::Step(_) => None,
            Line::Validation(line) => Some(line.validation_loss),
        });
        LastLosses { step: step.flatten(), validation: validation.flatten() }
    }

    /// Appends a line, which others can read at once.
    ///
    /// # Errors
    ///
    /// [`TrainError::Write`].
    pub fn append(&mut self, line: &Line) -> Result<(), TrainError> {
        let failed = TrainError::writing(&self.path);
        let json = serde_json::to_string(line).map_err(|error| failed(error.into()))? + "\n";
        self.file.write_all(json.as_bytes()).map_err(&failed)?;
        self.lines.push(*line);
        if self.prints {
            // A reader that went away does not end the training.
            let _ = io::stdout().lock().write_all(json.as_bytes());
        }
        Ok(())
    }

    /// Waits until all lines would survive a loss of power.
    ///
    /// # Errors
    ///
    /// [`TrainError::Write`].
    pub fn sync(&self) -> Result<(), TrainError> {
        self.file.sync_data().map_err(TrainError::writing(&self.path))
    }
}

/// The last losses of a run, if they are finite.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LastLosses {
    /// The loss of the last step.
    pub step: Option<f32>,
    /// The last loss of the held-out text.
    pub validation: Option<f32>,
}

/// Reads all lines of an output folder.
///
/// # Errors
///
/// [`TrainError::Read`].
pub fn read(output: &Path) -> Result<Vec<Line>, TrainError> {
    Ok(lines_of(&output.join(NAME))?.into_iter().map(|(line, _)| line).collect())
}

/// Returns the lines of a file, each with the bytes up to its end. A last line without a line break,
/// which a process did not finish, is left out.
fn lines_of(path: &Path) -> Result<Vec<(Line, u64)>, TrainError> {
    let failed = TrainError::reading(path);
    let mut reader = BufReader::new(File::open(path).map_err(&failed)?);
    let (mut lines, mut bytes, mut text) = (vec![], 0, vec![]);
    loop {
        text.clear();
        bytes += reader.read_until(b'\n', &mut text).map_err(&failed)? as u64;
        if !text.ends_with(b"\n") {
            return Ok(lines);
        }
        let before = lines.last().map_or(0, |(line, _): &(Line, u64)| line.step());
        let line = parsed(&text, before).map_err(|reason| {
            let number = lines.len() + 1;
            failed(io::Error::other(format!(
                "line {number} {reason}. Repair the line, or move the file away"
            )))
        })?;
        lines.push((line, bytes));
    }
}

/// Parses a line that follows one of a step, or returns what is wrong with it.
fn parsed(text: &[u8], before: u32) -> Result<Line, String> {
    let line: Line = serde_json::from_slice(text)
        .map_err(|_| "is neither that of a step nor that of a validation".to_owned())?;
    match line.step() {
        step if step < before => Err(format!("is of step {step}, after one of step {before}")),
        _ => Ok(line),
    }
}
