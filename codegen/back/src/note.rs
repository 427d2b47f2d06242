//! The macro's note to the build script that a kernel has no PTX.
//!
//! Cargo reruns a build script if a file that it watches is newer than the script's last run. A
//! file that did not exist then cannot be watched, as cargo treats a missing file as changed in
//! every build. A kernel in a new folder is therefore first seen by the macro. The macro writes
//! this file, which is watched, and the next build finds the kernel.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tma_front::abi::NOTE;

/// Older than any run of a build script, but within the range of file systems (FAT begins in 1980).
const LONG_AGO: Duration = Duration::from_secs(1_000_000_000);

/// Whether a build script that reads the note has run.
pub(crate) fn is_read(out_dir: &Path) -> bool {
    out_dir.join(NOTE).is_file()
}

/// Requests another run of the build script for a kernel.
pub(crate) fn leave(out_dir: &Path, kernel: &str) {
    // If this fails, the script reruns only when a file that it reads changes. An error is reported
    // in any case.
    fs::write(out_dir.join(NOTE), kernel).ok();
}

/// Empties the note, with a date at which cargo sees no change, and returns the file to watch.
pub(crate) fn clear(out_dir: &Path) -> io::Result<PathBuf> {
    let path = out_dir.join(NOTE);
    fs::write(&path, "")?;
    File::options().write(true).open(&path)?.set_modified(SystemTime::UNIX_EPOCH + LONG_AGO)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_note_that_was_left_is_newer_than_the_script() {
        let folder = std::env::temp_dir().join(format!("tma-note-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let script = SystemTime::now() - Duration::from_secs(60);
        let path = clear(&folder).unwrap();
        let modified = || fs::metadata(&path).unwrap().modified().unwrap();
        assert!(modified() < script);
        leave(&folder, "copy");
        assert!(modified() > script);
        clear(&folder).unwrap();
        assert!(modified() < script);
        fs::remove_dir_all(&folder).unwrap();
    }
}
