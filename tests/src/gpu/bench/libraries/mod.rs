//! The libraries that a machine may have, loaded at run time: rivals of the kernels, and
//! instruments to measure with. All FFI of this package is here.

pub mod cublas;
pub mod cublaslt;
pub mod driver;
pub mod nvml;
pub mod types;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use libloading::Library;

/// The versions of NVIDIA's math libraries, newest first.
const VERSIONS: [&str; 2] = ["13", "12"];

/// The folders of the libraries in the wheel `nvidia-cublas`, below the package `nvidia`: since
/// CUDA 13, and before.
const IN_WHEEL: [&str; 2] = ["cu13/lib", "cublas/lib"];

/// Loads the newest version of a library: from `folder` if there is one, else from the loader's
/// search path, else from the wheel of the Python in the path.
fn open_versioned(name: &str, folder: Option<&Path>) -> anyhow::Result<Library> {
    let files = VERSIONS.map(|version| format!("{name}.{version}"));
    let in_folder = |folder: &Path| files.iter().map(|file| folder.join(file)).collect::<Vec<_>>();
    let candidates = match folder {
        Some(folder) => in_folder(folder),
        None => {
            let by_loader = files.iter().map(PathBuf::from);
            by_loader.chain(wheel_folders().iter().flat_map(|folder| in_folder(folder))).collect()
        }
    };
    open_first(name, &candidates)
}

/// Loads the first of these files that can be loaded.
fn open_first(name: &str, candidates: &[PathBuf]) -> anyhow::Result<Library> {
    let mut failure = None;
    for candidate in candidates {
        // SAFETY: the initialisers of the libraries named in this module may run at any time.
        match unsafe { Library::new(candidate) } {
            Ok(library) => return Ok(library),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    Err(failure.context("no file to try")?).with_context(|| format!("{name} is not here"))
}

/// Returns the folders in which the Python in the path may have the wheel's libraries; none without
/// Python.
fn wheel_folders() -> Vec<PathBuf> {
    let question = "import nvidia; print(*nvidia.__path__, sep='\\n')";
    let result = Command::new("python3").args(["-c", question]).output();
    let packages =
        result.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    packages.lines().flat_map(|package| IN_WHEEL.map(|folder| Path::new(package).join(folder))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_not_there_is_named() {
        let nowhere = Path::new("/nowhere");
        let error = open_versioned("libcublasLt.so", Some(nowhere)).map(drop).unwrap_err();
        let text = format!("{error:#}");
        assert!(text.starts_with("libcublasLt.so is not here") && text.contains("/nowhere/"), "{text}");
    }
}
