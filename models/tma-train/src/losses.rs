//! `losses.jsonl`: a line of JSON for each step, and for each loss of the held-out text.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
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
pub struct ValidationLine {
    /// The steps before it.
    pub step: u32,
    /// The mean loss.
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
    /// Whether lines also go to the standard output.
    prints: bool,
}

impl Losses {
    /// Opens the file, and removes the lines after so many steps, which a run that resumes there
    /// writes again.
    ///
    /// # Errors
    ///
    /// [`TrainError::Read`] and [`TrainError::Write`].
    pub fn open(output: &Path, step: u32, prints: bool) -> Result<Self, TrainError> {
        let path = output.join(NAME);
        let failed = TrainError::writing(&path);
        let file = OpenOptions::new().create(true).append(true).open(&path).map_err(&failed)?;
        let (_, bytes) = lines_up_to(&path, step)?;
        // Not every system lets a file that is opened for appending be shortened.
        let shortened = OpenOptions::new().write(true).open(&path).and_then(|file| file.set_len(bytes));
        shortened.map_err(&failed)?;
        Ok(Self { path: output.join(NAME), file, prints })
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
        if self.prints {
            // A reader that went away does not end the training.
            let _ = std::io::stdout().lock().write_all(json.as_bytes());
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

/// Reads all lines of an output folder.
///
/// # Errors
///
/// [`TrainError::Read`].
pub fn read(output: &Path) -> Result<Vec<Line>, TrainError> {
    Ok(lines_up_to(&output.join(NAME), u32::MAX)?.0)
}

/// Returns the lines up to a step, and their bytes. They end before the first line that is not
/// whole, which a process did not finish.
fn lines_up_to(path: &Path, step: u32) -> Result<(Vec<Line>, u64), TrainError> {
    let failed = TrainError::reading(path);
    let mut reader = BufReader::new(File::open(path).map_err(&failed)?);
    let (mut lines, mut bytes, mut text) = (vec![], 0, vec![]);
    loop {
        text.clear();
        let read = reader.read_until(b'\n', &mut text).map_err(&failed)?;
        match serde_json::from_slice::<Line>(&text) {
            Ok(line) if text.ends_with(b"\n") && line.step() <= step => lines.push(line),
            Ok(_) | Err(_) => return Ok((lines, bytes)),
        }
        bytes += read as u64;
    }
}
