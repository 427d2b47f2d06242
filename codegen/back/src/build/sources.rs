//! The source files of a package.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::{BuildError, file_error};

/// The folders in which cargo looks for the targets of a package. Source: The Cargo Book, "Package
/// Layout".
pub(crate) const FOLDERS: [&str; 4] = ["src", "examples", "tests", "benches"];

/// Returns the existing ones among a package's folders and the `extra` paths in it. The build
/// script searches these for kernels.
pub fn roots(package: &Path, extra: &[PathBuf]) -> Vec<PathBuf> {
    let folders = FOLDERS.map(PathBuf::from);
    let all = folders.iter().chain(extra).map(|path| package.join(path));
    all.filter(|path| path.exists()).collect()
}

/// Returns the Rust files under `roots`, sorted. Dangling links are skipped: some editors use them
/// as locks.
///
/// Links are followed, but each folder is listed once, under whatever names it can be reached. A
/// link to an enclosing folder, such as `.`, `..` or the root, is skipped, since that contains more
/// than sources.
///
/// # Errors
///
/// Fails if a folder cannot be listed.
pub fn rust_files(roots: &[PathBuf]) -> Result<Vec<PathBuf>, BuildError> {
    let mut files = vec![];
    let mut folders = vec![];
    for root in roots {
        if root.is_dir() { folders.push(root.clone()) } else { files.push(root.clone()) }
    }
    let mut links = vec![];
    let mut listed = HashSet::new();
    // Links come last: a folder that is also reachable without links gets the name without them.
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
