//! Writes files that a later run trusts.

use std::path::Path;
use std::{fs, io};

/// Writes `text` to `path` whole or not at all: into a file beside it, which then takes its name.
/// A full disk leaves no draft; that of a run that was killed is removed by the next run, with all
/// other files that belong to no kernel.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    let draft = path.with_extension("ptx.new");
    let written = fs::write(&draft, text).and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        fs::remove_file(&draft).ok();
    }
    written
}

/// A text whose lines end as on Unix. A checkout may end them as on Windows, as git does with
/// `core.autocrlf`; rustc does the same with what it reads.
pub(super) fn with_unix_lines(text: String) -> String {
    if text.contains('\r') { text.replace("\r\n", "\n") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_written_leaves_what_was_there() {
        let folder = std::env::temp_dir().join(format!("tma-store-{}", std::process::id()));
        let path = folder.join("kernel.ptx");
        fs::create_dir_all(&folder).unwrap();
        write(&path, "old").unwrap();
        // In the way of the draft, as a full disk would be.
        fs::create_dir(path.with_extension("ptx.new")).unwrap();
        assert!(write(&path, "new").is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        fs::remove_dir(path.with_extension("ptx.new")).unwrap();
        write(&path, "new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "the draft is gone");
        fs::remove_dir_all(&folder).unwrap();
    }
}
