//! The source files of a package.

use std::fs;
use std::path::{Path, PathBuf};

use super::{BuildError, file_error};

/// Where cargo looks for the targets of a package.
/// Source: The Cargo Book, "Package Layout".
const FOLDERS: [&str; 4] = ["src", "examples", "tests", "benches"];

/// The files and folders to look into that exist.
pub(super) fn roots(package: &Path, further: &[PathBuf]) -> Vec<PathBuf> {
    let folders = FOLDERS.map(PathBuf::from);
    let all = folders.iter().chain(further).map(|path| package.join(path));
    all.filter(|path| path.exists()).collect()
}

/// The Rust files under `roots`, sorted. A link that leads nowhere is none: some editors lock a file by one.
pub(super) fn rust_files(roots: &[PathBuf]) -> Result<Vec<PathBuf>, BuildError> {
    let mut files = vec![];
    let mut left = roots.to_vec();
    while let Some(path) = left.pop() {
        if path.is_dir() {
            for entry in fs::read_dir(&path).map_err(file_error(&path))? {
                left.push(entry.map_err(file_error(&path))?.path());
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    files.dedup();
    Ok(files)
}
