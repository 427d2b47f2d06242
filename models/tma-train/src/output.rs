//! The output folder: who uses it, and where an earlier run goes.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use crate::checkpoint;
use crate::error::TrainError;
use crate::{curve, losses};

/// The name of the file that a process locks while it uses the folder.
const LOCK: &str = ".lock";

/// Creates an output folder, and locks it until the result is dropped.
///
/// # Errors
///
/// [`TrainError::Locked`] if another process uses it, and [`TrainError::Write`].
pub fn lock(output: &Path) -> Result<File, TrainError> {
    fs::create_dir_all(output).map_err(TrainError::writing(output))?;
    let path = output.join(LOCK);
    let failed = TrainError::writing(&path);
    let file = File::options().create(true).append(true).open(&path).map_err(&failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(TrainError::Locked { output: output.into() }),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

/// Moves checkpoints and losses of an earlier run to a folder of their own, and returns it if there
/// were any. The tokens of the text stay.
///
/// # Errors
///
/// [`TrainError::Read`] and [`TrainError::Write`].
pub fn move_away(output: &Path) -> Result<Option<PathBuf>, TrainError> {
    let files = [losses::NAME, curve::NAME].map(|name| output.join(name));
    let checkpoints = checkpoint::list(output)?.into_iter().map(|(_, folder)| folder);
    let old: Vec<_> = files.into_iter().filter(|path| path.exists()).chain(checkpoints).collect();
    if old.is_empty() {
        return Ok(None);
    }
    let folders = (1..).map(|number: u32| output.join(format!("before-{number}")));
    let folder = folders.into_iter().find(|path| !path.exists()).unwrap_or_default();
    fs::create_dir(&folder).map_err(TrainError::writing(&folder))?;
    for path in old {
        let to = folder.join(path.file_name().unwrap_or_default());
        fs::rename(&path, &to).map_err(TrainError::writing(&to))?;
    }
    Ok(Some(folder))
}
