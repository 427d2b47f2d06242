//! ptxas, NVIDIA's assembler: it judges the PTX that the compiler writes. The CUDA toolkit is not
//! needed for it: one wheel of the Python package index holds it as a single program.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use super::system::Need;
use crate::{process, workspace};

/// Names the ptxas to use; tests read it too.
pub(super) const VARIABLE: &str = "TMA_PTXAS";

/// The oldest ptxas that knows every architecture that kernels are compiled for: sm_120a came with
/// CUDA 12.8 (PTX ISA, "Release Notes", PTX 8.7).
const OLDEST: (u32, u32) = (12, 8);

/// The package that brings it, and where in its wheel.
const WHEEL: &str = "nvidia-cuda-nvcc==13.0.88";
const MEMBER: &str = "nvidia/cu13/bin/ptxas";

pub(super) const PIP: Need = Need {
    what: "pip, to fetch ptxas with",
    packages: &["python3-pip"],
    by_hand: "Install pip for Python 3, or set TMA_PTXAS to a ptxas of CUDA 12.8 or later.",
    is_met: || python_with_pip().is_some(),
};

/// A ptxas that runs.
pub(super) struct Ptxas {
    pub(super) path: PathBuf,
    /// Version of the CUDA toolkit it is from: major, minor.
    pub(super) release: (u32, u32),
}

/// The one that `TMA_PTXAS` names, else one on PATH, else the one fetched before. What the variable
/// names must be usable; the others are passed over if they are not.
pub(super) fn find() -> Result<Option<Ptxas>> {
    if let Some(path) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        let usable = usable(Path::new(&path));
        return usable.map(Some).with_context(|| {
            format!(
                "{VARIABLE} is {}, which is no ptxas of CUDA {}.{} or later",
                path.display(),
                OLDEST.0,
                OLDEST.1
            )
        });
    }
    let search = std::env::var_os("PATH").unwrap_or_default();
    let on_path =
        std::env::split_paths(&search).map(|folder| folder.join("ptxas")).find_map(|path| usable(&path));
    Ok(on_path.or_else(|| usable(&home())))
}

/// Where a fetched ptxas is kept.
fn home() -> PathBuf {
    workspace::target().join("tools/ptxas")
}

fn usable(path: &Path) -> Option<Ptxas> {
    let release = release(&process::probe(Command::new(path).arg("--version"))?)?;
    (release >= OLDEST).then(|| Ptxas { path: path.to_owned(), release })
}

/// Reads "… release 13.0, V13.0.88".
fn release(version_text: &str) -> Option<(u32, u32)> {
    let (_, rest) = version_text.split_once("release ")?;
    let (major, minor) = rest.split(',').next()?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Downloads the wheel and takes the one program out of it.
pub(super) fn fetch() -> Result<Ptxas> {
    if !cfg!(target_os = "linux") {
        bail!("ptxas exists for Linux only: run this task there");
    }
    let python = python_with_pip().context("pip is missing")?;
    let folder = workspace::target().join("tools/wheel");
    workspace::fresh_folder(&folder)?;
    let mut download = Command::new(python);
    download.args(["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", WHEEL, "--dest"]);
    process::run(download.arg(&folder))
        .context("Cannot fetch ptxas. Without the network, set TMA_PTXAS to one")?;

    let wheel = fs::read_dir(&folder)?.next().context("pip has downloaded nothing")??.path();
    let unzip = "import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extract(sys.argv[2], sys.argv[3])";
    process::run(Command::new(python).args(["-c", unzip]).args([&wheel, Path::new(MEMBER), &folder]))?;
    let unpacked = folder.join(MEMBER);
    process::make_executable(&unpacked)?;
    // Renamed as a whole, so that an interrupted run leaves no half of a ptxas.
    fs::rename(&unpacked, home()).context("cannot put ptxas in its place")?;
    fs::remove_dir_all(&folder)?;
    usable(&home()).with_context(|| format!("the fetched {} does not run on this machine", home().display()))
}

/// A Python 3 that has pip. The one first on PATH may lack it where the system's has it.
fn python_with_pip() -> Option<&'static str> {
    let candidates = ["python3", "/usr/bin/python3"];
    candidates
        .into_iter()
        .find(|python| process::probe(Command::new(python).args(["-m", "pip", "--version"])).is_some())
}

#[cfg(test)]
mod tests {
    use super::release;

    #[test]
    fn the_release_is_read_from_the_version_text() {
        let text =
            "ptxas: NVIDIA (R) Ptx optimizing assembler\nCuda compilation tools, release 13.0, V13.0.88\n";
        assert_eq!(release(text), Some((13, 0)));
        assert_eq!(release("release 12.8, V12.8.93"), Some((12, 8)));
        assert_eq!(release("GNU assembler 2.40"), None);
        assert_eq!(release("release thirteen.0,"), None);
    }
}
