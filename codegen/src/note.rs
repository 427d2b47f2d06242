//! The macro's note to the build script: a kernel has no PTX.
//!
//! Cargo runs a build script again when a file that it watches is newer than the script's last run.
//! What did not exist then cannot be watched: cargo takes a missing file for a changed one, in
//! every build. So a kernel in a folder made later is first met by the macro, which writes this
//! file; it is watched, and the next build finds the kernel.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::abi::NOTE;

/// Older than any run of a build script, and not older than what file systems can write down (FAT
/// begins in 1980).
const LONG_AGO: Duration = Duration::from_secs(1_000_000_000);

/// Whether a build script of ours has run, which alone reads the note.
pub(crate) fn is_read(out_dir: &Path) -> bool {
    out_dir.join(NOTE).is_file()
}

/// Asks for another run of the build script, on behalf of a kernel.
pub(crate) fn leave(out_dir: &Path, kernel: &str) {
    // Without the note, the script runs again when a file that it reads has changed; there is an
    // error as it is.
    fs::write(out_dir.join(NOTE), kernel).ok();
}

/// Empties the note, dated so that cargo sees no change, and returns the file to watch.
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
