//! The output folder: who uses it, and where an earlier run goes.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::checkpoint;
use crate::error::TrainError;
use crate::progress::note;
use crate::{curve, losses};

/// The name of the file that a process locks while it uses the folder.
const LOCK: &str = ".lock";

/// Creates an output folder, and locks it until the result is dropped. Where the file system has no
/// locks, a warning is printed.
///
/// # Errors
///
/// [`TrainError::Locked`] if another process uses it, and [`TrainError::Write`].
pub fn lock(output: &Path) -> Result<File, TrainError> {
    create(output).map_err(TrainError::writing(output))?;
    let path = output.join(LOCK);
    let failed = TrainError::writing(&path);
    let file = File::options().create(true).append(true).open(&path).map_err(&failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(TrainError::Locked { output: output.into() }),
        Err(TryLockError::Error(source)) if source.kind() == io::ErrorKind::Unsupported => {
            note(&format!(
                "warning: the file system of {} has no locks: let no other process train there",
                output.display()
            ));
            Ok(file)
        }
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

/// Creates a folder with those above it. The names of new ones survive a loss of power.
fn create(folder: &Path) -> io::Result<()> {
    let new: Vec<_> = folder.ancestors().take_while(|path| !path.exists()).collect();
    fs::create_dir_all(folder)?;
    // Only Unix opens folders as files.
    if cfg!(unix) {
        for parent in new.into_iter().filter_map(Path::parent) {
            let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            File::open(parent)?.sync_all()?;
        }
    }
    Ok(())
}

/// Moves checkpoints and losses of an earlier run to a folder of their own, and returns it if there
/// were any. The tokens of the text stay.
///
/// # Errors
///
/// [`TrainError::Read`] and [`TrainError::Write`].
pub fn move_away(output: &Path) -> Result<Option<PathBuf>, TrainError> {
    let checkpoints = checkpoint::list(output)?.into_iter().map(|(_, folder)| folder);
    // Losses come last: a folder with checkpoints and without losses would look like a whole run.
    move_to_new_folder(output, checkpoints.chain(loss_files(output)).collect())
}

/// Moves losses to a folder of their own, and returns it if there were any.
///
/// # Errors
///
/// [`TrainError::Write`].
pub fn move_losses(output: &Path) -> Result<Option<PathBuf>, TrainError> {
    let path = output.join(losses::NAME);
    match fs::metadata(&path) {
        Ok(file) if file.len() > 0 => move_to_new_folder(output, loss_files(output).collect()),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(TrainError::reading(&path)(error)),
    }
}

/// Returns the files of losses that are there.
fn loss_files(output: &Path) -> impl Iterator<Item = PathBuf> {
    [losses::NAME, curve::NAME].map(|name| output.join(name)).into_iter().filter(|path| path.exists())
}

/// Moves files and folders to `before-1`, or the next name that is free.
fn move_to_new_folder(output: &Path, old: Vec<PathBuf>) -> Result<Option<PathBuf>, TrainError> {
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
