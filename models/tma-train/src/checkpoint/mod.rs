//! Checkpoints: folders from which a run resumes, and from which models are loaded.
//!
//! A checkpoint is written to `.checkpoint-000200.partial`. Each file and the folder are synced
//! before the folder is renamed to `checkpoint-000200`, which is one step of the file system. A
//! checkpoint to be removed is renamed as well before its files go. A folder of this name is
//! therefore whole, unless its disk is damaged; `training.json` has a checksum of each file to notice
//! that.

mod load;
mod save;
mod storage;
mod tensors;

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::TrainError;
use crate::settings::Settings;

pub(crate) use self::load::checksum;
pub use self::load::{Search, newest, state, verify};
pub use self::save::{Contents, save};
pub use self::storage::{Disk, Storage};

/// The file with the weights.
pub const MODEL: &str = "model.safetensors";
/// The file with the state of the optimiser.
pub const OPTIMIZER: &str = "optimizer.safetensors";
/// The file with the record of the run.
pub const TRAINING: &str = "training.json";
/// The file with the configuration.
pub const CONFIG: &str = "config.json";
/// The file with the tokenizer.
pub const TOKENIZER: &str = "tokenizer.json";

const PREFIX: &str = "checkpoint-";
/// The version of the files, which other versions of the program refuse.
pub const VERSION: u32 = 2;

/// The run as it was when a checkpoint was written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The version of the files.
    pub version: u32,
    /// The steps that were done.
    pub step: u32,
    /// The steps that changed parameters, as the optimiser counts them.
    pub updates: u32,
    /// The options of the run.
    pub settings: Settings,
    /// The loss of the last step.
    pub loss: Option<f32>,
    /// The file in the output folder with the losses of all steps.
    pub losses: String,
    /// The files of the checkpoint, without that of the record.
    pub files: Vec<FileSum>,
}

/// The size of a file, and a checksum to notice changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSum {
    /// The name in the folder.
    pub name: String,
    /// The bytes.
    pub bytes: u64,
    /// CRC-32 of the contents.
    pub crc32: u32,
}

/// The contents of `training.json`.
#[derive(Serialize, Deserialize)]
struct ChecksummedRecord<'a> {
    /// CRC-32 of the text of the record, as it is in the file.
    crc32: u32,
    #[serde(borrow)]
    training: &'a RawValue,
}

/// The reason why a checkpoint cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} {reason}", path.display())]
pub struct Damage {
    /// The file that is damaged.
    pub path: PathBuf,
    /// The reason, as the rest of a sentence.
    pub reason: String,
}

/// Returns the name of the checkpoint after so many steps.
pub fn name_of(step: u32) -> String {
    format!("{PREFIX}{step:06}")
}

/// Returns the checkpoints of an output folder with their steps, the newest one first.
///
/// # Errors
///
/// [`TrainError::Read`].
pub fn list(output: &Path) -> Result<Vec<(u32, PathBuf)>, TrainError> {
    // Only names that the program gives: `checkpoint-7` and `checkpoint-+00007` are folders of others.
    let step_of = |name: &str| {
        let step = name.strip_prefix(PREFIX)?.parse().ok()?;
        (name == name_of(step)).then_some(step)
    };
    let names = entries(output)?.into_iter();
    let mut found: Vec<_> =
        names.filter_map(|name| step_of(&name).map(|step| (step, output.join(name)))).collect();
    found.sort_unstable_by(|one, other| other.cmp(one));
    Ok(found)
}

/// Removes leftovers of checkpoints that were being written or removed when a process ended.
///
/// # Errors
///
/// [`TrainError::Read`] and [`TrainError::Write`].
pub fn clean(storage: &mut impl Storage, output: &Path) -> Result<(), TrainError> {
    let leftover = |name: &String| name.starts_with(&format!(".{PREFIX}"));
    for name in entries(output)?.into_iter().filter(leftover) {
        let path = output.join(name);
        storage.remove(&path).map_err(TrainError::writing(&path))?;
    }
    Ok(())
}

/// Removes all but the newest `keep` checkpoints.
///
/// # Errors
///
/// [`TrainError::Read`] and [`TrainError::Write`].
pub fn prune(storage: &mut impl Storage, output: &Path, keep: usize) -> Result<(), TrainError> {
    for (step, path) in list(output)?.into_iter().skip(keep) {
        let removed = output.join(format!(".{}.removed", name_of(step)));
        let failed = TrainError::writing(&path);
        storage.rename(&path, &removed).map_err(&failed)?;
        storage.remove(&removed).map_err(&failed)?;
    }
    Ok(())
}

/// Renames a damaged checkpoint, so that a later one of the same step takes its name.
///
/// # Errors
///
/// [`TrainError::Write`].
pub fn set_aside(storage: &mut impl Storage, output: &Path, folder: &Path) -> Result<PathBuf, TrainError> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let names = (1..).map(|number: u32| output.join(format!("damaged-{number}-{name}")));
    let free = names.into_iter().find(|path| !path.exists()).unwrap_or_default();
    storage.rename(folder, &free).map_err(TrainError::writing(folder))?;
    Ok(free)
}

/// Returns the names in a folder that are Unicode; the program makes no others.
fn entries(folder: &Path) -> Result<Vec<String>, TrainError> {
    let failed = TrainError::reading(folder);
    let names = fs::read_dir(folder).map_err(&failed)?.map(|entry| Ok(entry?.file_name().into_string().ok()));
    let names: Result<Vec<_>, _> = names.collect();
    Ok(names.map_err(&failed)?.into_iter().flatten().collect())
}

/// Returns `config.json` of a model, with the type of the elements that are saved.
fn config_json(model: &Value) -> Vec<u8> {
    let mut config = model.clone();
    config["dtype"] = "bfloat16".into();
    format!("{config:#}\n").into_bytes()
}
