//! Reads checkpoints.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use memmap2::Mmap;

use super::{Damage, OPTIMIZER, Record, Sealed, TRAINING, VERSION, list, sum, tensors};
use crate::error::TrainError;
use crate::steps::State;

/// The newest checkpoint that is intact, and those that are newer and are not.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// The checkpoint and its record.
    pub found: Option<(PathBuf, Record)>,
    /// Newer checkpoints, each with its damage.
    pub damaged: Vec<(PathBuf, Damage)>,
}

/// Looks for the newest checkpoint of an output folder that is intact.
///
/// # Errors
///
/// [`TrainError::Read`], and [`TrainError::AllDamaged`] if there are only damaged ones.
pub fn newest(output: &Path) -> Result<Search, TrainError> {
    let mut search = Search::default();
    for (_, folder) in list(output)? {
        match verify(&folder) {
            Ok(record) => {
                search.found = Some((folder, record));
                return Ok(search);
            }
            Err(damage) => search.damaged.push((folder, damage)),
        }
    }
    if search.damaged.is_empty() {
        return Ok(search);
    }
    let damages = search.damaged.into_iter().map(|(_, damage)| damage).collect();
    Err(TrainError::AllDamaged { output: output.into(), damages })
}

/// Reads the record of a checkpoint, and compares each file with it.
///
/// # Errors
///
/// The first file that is missing or differs.
pub fn verify(folder: &Path) -> Result<Record, Damage> {
    let record = record(folder)?;
    let names = [super::MODEL, super::CONFIG, super::TOKENIZER, OPTIMIZER];
    let listed = |name: &str| record.files.iter().any(|file| file.name == name);
    if let Some(name) = names.into_iter().find(|name| !listed(name)) {
        return Err(damage(&folder.join(TRAINING), format!("does not list {name}")));
    }
    for file in &record.files {
        let path = folder.join(&file.name);
        let bytes = map(&path)?;
        if bytes.len() as u64 != file.bytes {
            let reason = format!("has {} bytes, {} were written", bytes.len(), file.bytes);
            return Err(damage(&path, reason));
        }
        if crc32fast::hash(&bytes) != file.crc32 {
            return Err(damage(&path, "has other bytes than were written: its checksum differs".into()));
        }
    }
    Ok(record)
}

/// Reads the state of a checkpoint that was verified.
///
/// # Errors
///
/// The file is not the one that was written.
pub fn state(folder: &Path, record: &Record) -> Result<State, Damage> {
    let path = folder.join(OPTIMIZER);
    let tensors = tensors::read(&map(&path)?)
        .map_err(|reason| damage(&path, format!("is not the state of an optimiser: {reason}")))?;
    Ok(State { steps: record.updates, tensors })
}

/// Reads `training.json`, and checks its sum.
fn record(folder: &Path) -> Result<Record, Damage> {
    let path = folder.join(TRAINING);
    let unusable = |error: serde_json::Error| damage(&path, format!("is not a record of training: {error}"));
    let bytes = fs::read(&path).map_err(|error| unreadable(&path, &error))?;
    let Sealed { crc32, training } = serde_json::from_slice(&bytes).map_err(unusable)?;
    if sum(&training).map_err(unusable)? != crc32 {
        return Err(damage(&path, "has other contents than were written: its checksum differs".into()));
    }
    if training.version != VERSION {
        let reason = format!("has version {}, this program reads {VERSION}", training.version);
        return Err(damage(&path, reason));
    }
    Ok(training)
}

fn map(path: &Path) -> Result<Mmap, Damage> {
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    // SAFETY: only this process has the output folder, and it never changes files of checkpoints.
    unsafe { Mmap::map(&file) }.map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &Path, error: &io::Error) -> Damage {
    match error.kind() {
        io::ErrorKind::NotFound => damage(path, "is missing".into()),
        _ => damage(path, format!("cannot be read: {error}")),
    }
}

fn damage(path: &Path, reason: String) -> Damage {
    Damage { path: path.into(), reason }
}
