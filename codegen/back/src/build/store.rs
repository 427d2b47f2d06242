//! Writes files that later runs rely on.

use std::path::Path;
use std::{fs, io};

/// Writes `text` to `path` atomically, by writing to a draft next to it that is then renamed. If
/// the disk is full, no draft remains. A draft of a killed run is removed by the next run, like all
/// files that belong to no kernel.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    write_by(&path.with_extension("ptx.new"), path, text.as_bytes())
}

/// Writes `bytes` to `path` in the same way. The file is among the sources, which builds for
/// several target folders may write at the same time: the draft's name has the number of the
/// process.
#[cfg(any(feature = "llvm", test))]
pub(super) fn write_source(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_by(&path.with_extension(format!("{}.new", std::process::id())), path, bytes)
}

/// Whether `path` is that of a draft of [`write_source`], of a file whose name ends with a hash.
#[cfg(any(feature = "llvm", test))]
pub(super) fn is_draft_of_source(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let parts = name.strip_suffix(".new").and_then(|name| name.rsplit_once('.'));
    parts.is_some_and(|(name, process)| {
        let hash = name.rsplit_once('-').map_or("", |(_, hash)| hash);
        hash.len() == 16 && u64::from_str_radix(hash, 16).is_ok() && process.parse::<u32>().is_ok()
    })
}

fn write_by(draft: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let written = fs::write(draft, bytes).and_then(|()| fs::rename(draft, path));
    if written.is_err() {
        fs::remove_file(draft).ok();
    }
    written
}

/// Converts line endings to those of Unix. A checkout may have those of Windows, as git does with
/// `core.autocrlf`. rustc normalises its input in the same way.
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
        // Blocks the draft, as a full disk would.
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
