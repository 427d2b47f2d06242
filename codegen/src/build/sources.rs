//! The source files of a package.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::{BuildError, file_error};

/// Where cargo looks for the targets of a package.
/// Source: The Cargo Book, "Package Layout".
pub(crate) const FOLDERS: [&str; 4] = ["src", "examples", "tests", "benches"];

/// Those of a package's folders and of `further` paths in it that exist: where its build script
/// looks for kernels.
pub fn roots(package: &Path, further: &[PathBuf]) -> Vec<PathBuf> {
    let folders = FOLDERS.map(PathBuf::from);
    let all = folders.iter().chain(further).map(|path| package.join(path));
    all.filter(|path| path.exists()).collect()
}

/// The Rust files under `roots`, sorted. A link that leads nowhere is none: some editors lock a
/// file by one.
///
/// Links are followed, but a folder is listed once, by whatever names it can be reached; and a link
/// to a folder around it, such as `.`, `..` or the root, is passed over, since that holds more than
/// sources.
///
/// # Errors
///
/// If a folder cannot be listed.
pub fn rust_files(roots: &[PathBuf]) -> Result<Vec<PathBuf>, BuildError> {
    let mut files = vec![];
    let mut folders = vec![];
    for root in roots {
        if root.is_dir() { folders.push(root.clone()) } else { files.push(root.clone()) }
    }
    let mut links = vec![];
    let mut listed = HashSet::new();
    // Links come last, so that what is reached in two ways has the name that it has without links.
    while let Some(folder) = folders.pop().or_else(|| links.pop()) {
        let real = folder.canonicalize().map_err(file_error(&folder))?;
        if !listed.insert(real.clone()) {
            continue;
        }
        for entry in fs::read_dir(&folder).map_err(file_error(&folder))? {
            let path = entry.map_err(file_error(&folder))?.path();
            if !path.is_dir() {
                files.push(path);
            } else if !path.is_symlink() {
                folders.push(path);
            } else if path.canonicalize().is_ok_and(|target| !real.starts_with(target)) {
                links.push(path);
            }
        }
        links.sort_by(|a, b| b.cmp(a));
    }
    files.retain(|path| path.extension().is_some_and(|extension| extension == "rs") && path.is_file());
    files.sort();
    files.dedup();
    Ok(files)
}
