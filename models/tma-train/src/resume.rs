//! The checkpoint that a run continues from.
//!
//! [`find`] and [`check`] only read. [`prepare`] changes the output folder. It comes last, when
//! nothing else can keep the run from its first step.

use std::path::Path;

use crate::checkpoint::{self, Search, Storage};
use crate::error::TrainError;
use crate::losses::Losses;
use crate::output;
use crate::settings::{self, Settings};
use crate::steps::Trainable;
use crate::stream;
use crate::train::Position;

/// Looks for the checkpoint to continue from. A run that begins again has none.
///
/// # Errors
///
/// Those of [`checkpoint::newest`].
pub fn find(output: &Path, restart: bool) -> Result<Search, TrainError> {
    match restart {
        true => Ok(Search::default()),
        false => checkpoint::newest(output),
    }
}

/// Checks that a checkpoint has the options of this run.
///
/// # Errors
///
/// [`TrainError::OtherRun`], and [`TrainError::Option`] if the run has more steps already.
pub fn check(search: &Search, settings: &Settings) -> Result<(), TrainError> {
    let Some((folder, record)) = &search.found else { return Ok(()) };
    let differences = settings::differences(&record.settings, settings);
    if !differences.is_empty() {
        return Err(TrainError::OtherRun { folder: folder.clone(), differences });
    }
    if settings.steps < record.step {
        return Err(TrainError::Option {
            name: "steps",
            found: settings.steps.to_string(),
            wanted: format!("{} steps are done, give at least as many", record.step),
        });
    }
    Ok(())
}

/// Restores the state of a checkpoint, if there is one.
///
/// # Errors
///
/// Those of [`checkpoint::state`] and [`Trainable::restore`].
pub fn restore(model: &mut impl Trainable, search: &Search) -> Result<Position, TrainError> {
    let Some((folder, record)) = &search.found else { return Ok(Position::default()) };
    model.restore(&checkpoint::state(folder, record)?)?;
    Ok(Position { step: record.step, checkpoint: Some(folder.clone()) })
}

/// How a run begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Begin {
    /// Whether an earlier run is moved away.
    pub restart: bool,
    /// Whether the lines of losses also go to the standard output.
    pub prints: bool,
}

/// Removes leftovers, moves away what belongs to an earlier run, and opens the file of losses.
///
/// `note` gets a line for each thing that was moved.
///
/// # Errors
///
/// [`TrainError::Read`] and [`TrainError::Write`].
pub fn prepare(
    storage: &mut impl Storage,
    output: &Path,
    search: &Search,
    begin: Begin,
    note: &dyn Fn(&str),
) -> Result<Losses, TrainError> {
    checkpoint::clean(storage, output)?;
    stream::clean(output)?;
    if begin.restart
        && let Some(before) = output::move_away(output)?
    {
        note(&format!("moved the checkpoints and losses before to {}", before.display()));
    }
    for (damaged, damage) in &search.damaged {
        let aside = checkpoint::set_aside(storage, output, damaged)?;
        note(&format!("warning: {damage}; the checkpoint is now {}", aside.display()));
    }
    let step = search.found.as_ref().map_or(0, |(_, record)| record.step);
    if step == 0
        && let Some(before) = output::move_losses(output)?
    {
        note(&format!("moved losses of steps that no checkpoint has to {}", before.display()));
    }
    Losses::open(output, step, begin.prints)
}
