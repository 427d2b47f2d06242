//! Reads checkpoints.
//!
//! Files are read, not mapped: a bad sector is then an error of a read, where a map ends the process
//! by a signal.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{
    ChecksummedRecord, Damage, FileSum, OPTIMIZER, Record, TRAINING, VERSION, list, name_of, tensors,
};
use crate::error::TrainError;
use crate::steps::State;

/// The bytes that are read at a time.
const PIECE: usize = 1 << 20;

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
/// [`TrainError::AllDamaged`] if there are only damaged ones, and those of [`verify`] that are no
/// damage.
pub fn newest(output: &Path) -> Result<Search, TrainError> {
    let mut search = Search::default();
    for (_, folder) in list(output)? {
        match verify(&folder) {
            Ok(record) => {
                search.found = Some((folder, record));
                return Ok(search);
            }
            Err(TrainError::Damaged(damage)) => search.damaged.push((folder, damage)),
            Err(other) => return Err(other),
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
/// [`TrainError::Damaged`] with the first file that is missing or differs, [`TrainError::Version`],
/// [`TrainError::Misnamed`], and [`TrainError::Read`] for files that may be intact.
pub fn verify(folder: &Path) -> Result<Record, TrainError> {
    let record = record(folder)?;
    if folder.file_name().is_some_and(|name| name != name_of(record.step).as_str()) {
        return Err(TrainError::Misnamed { folder: folder.into(), step: record.step });
    }
    let names = [super::MODEL, super::CONFIG, super::TOKENIZER, OPTIMIZER];
    let listed = |name: &str| record.files.iter().any(|file| file.name == name);
    if let Some(name) = names.into_iter().find(|name| !listed(name)) {
        return Err(damage(&folder.join(TRAINING), format!("does not list {name}")));
    }
    record.files.iter().try_for_each(|file| compare(&folder.join(&file.name), file))?;
    Ok(record)
}

/// Reads the state of a checkpoint that was verified.
///
/// # Errors
///
/// The file is not the one that was written, or cannot be read.
pub fn state(folder: &Path, record: &Record) -> Result<State, TrainError> {
    let path = folder.join(OPTIMIZER);
    let file = File::open(&path).map_err(unreadable(&path))?;
    let tensors = tensors::read(file).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
            damage(&path, format!("is not the state of an optimiser: {error}"))
        }
        _ => unreadable(&path)(error),
    })?;
    Ok(State { steps: record.updates, tensors })
}

/// The part of a record that all versions have.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

/// Reads `training.json`. Its version is looked at first: all else may be different in another one.
fn record(folder: &Path) -> Result<Record, TrainError> {
    let path = folder.join(TRAINING);
    let unusable = |error: serde_json::Error| damage(&path, format!("is not a record of training: {error}"));
    let bytes = fs::read(&path).map_err(unreadable(&path))?;
    let ChecksummedRecord { crc32, training } = serde_json::from_slice(&bytes).map_err(unusable)?;
    let Version { version } = serde_json::from_str(training.get()).map_err(unusable)?;
    if version != VERSION {
        return Err(TrainError::Version { path, version });
    }
    if crc32fast::hash(training.get().as_bytes()) != crc32 {
        return Err(damage(&path, "has other contents than were written: its checksum differs".into()));
    }
    serde_json::from_str(training.get()).map_err(unusable)
}

/// Compares a file with its size and checksum.
fn compare(path: &Path, wanted: &FileSum) -> Result<(), TrainError> {
    let (bytes, crc32) = File::open(path).and_then(checksum).map_err(unreadable(path))?;
    if bytes != wanted.bytes {
        let reason = format!("has {bytes} bytes, {} were written", wanted.bytes);
        return Err(damage(path, reason));
    }
    if crc32 != wanted.crc32 {
        return Err(damage(path, "has other bytes than were written: its checksum differs".into()));
    }
    Ok(())
}

/// Returns the number of bytes that are left to read, and their CRC-32.
pub(crate) fn checksum(mut file: File) -> io::Result<(u64, u32)> {
    let (mut crc32, mut bytes, mut piece) = (crc32fast::Hasher::new(), 0, vec![0; PIECE]);
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok((bytes, crc32.finalize())),
            Ok(read) => {
                crc32.update(&piece[..read]);
                bytes += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns a function that says why a file was not read. Damage is what another attempt does not
/// change: no file, or a disk that cannot read it.
fn unreadable(path: &Path) -> impl Fn(io::Error) -> TrainError {
    // EIO, on all Unix systems. The library has no kind of error for it.
    let is_bad_sector = |error: &io::Error| cfg!(unix) && error.raw_os_error() == Some(5);
    move |error| match error.kind() {
        io::ErrorKind::NotFound => damage(path, "is missing".into()),
        _ if is_bad_sector(&error) => damage(path, format!("cannot be read: {error}")),
        _ => TrainError::Read { path: path.into(), source: error },
    }
}

fn damage(path: &Path, reason: String) -> TrainError {
    TrainError::Damaged(Damage { path: path.into(), reason })
}
