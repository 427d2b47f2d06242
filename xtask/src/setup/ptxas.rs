//! ptxas, NVIDIA's assembler, which validates the compiler's PTX. It does not need the CUDA
//! toolkit: a wheel of the Python package index contains it as a single program.
//!
//! The download is executed, so it must be the file that was inspected when this was written: pip
//! rejects a wheel, and this task a program, with another SHA-256.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};

use super::system::Need;
use crate::{process, workspace};

/// Names the ptxas to use; tests read it too.
pub(super) const VARIABLE: &str = "TMA_PTXAS";

/// The oldest ptxas that knows every architecture that kernels are compiled for: sm_120a came with
/// CUDA 12.8 (PTX ISA, "Release Notes", PTX 8.7).
const OLDEST: (u32, u32) = (12, 8);

/// The package that contains it, and its path in the wheel.
const WHEEL: &str = "nvidia-cuda-nvcc==13.0.88";
const MEMBER: &str = "nvidia/cu13/bin/ptxas";

/// The SHA-256 of the downloads for one processor.
struct Pinned {
    processor: &'static str,
    wheel: &'static str,
    program: &'static str,
}

const PINNED: [Pinned; 2] = [
    Pinned {
        processor: "x86_64",
        wheel: "56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03",
        program: "daba837a68265cae38c832d13399b61dab811891de9b8914defddef143b849f2",
    },
    Pinned {
        processor: "aarch64",
        wheel: "c7ff28f86a24effdc6c034fa15230c549a273e4771b10a7fec14996f8cf3307f",
        program: "a1941a04ca4fd233b2fbe50c625b1e72b3d5f79ebe80209a272c85482dfbb487",
    },
];

impl Pinned {
    /// For this machine.
    fn here() -> Result<&'static Self> {
        let processor = std::env::consts::ARCH;
        PINNED.iter().find(|pinned| pinned.processor == processor).with_context(|| {
            format!("{WHEEL} is not known for {processor}: set {VARIABLE} to a ptxas of CUDA 12.8 or later")
        })
    }

    /// The requirement for pip, in the format of a requirements file. Source: pip's documentation,
    /// "Secure installs".
    fn requirement(&self) -> String {
        format!("{WHEEL} --hash=sha256:{}\n", self.wheel)
    }

    /// Rejects any other program.
    fn verify(&self, program: &Path) -> Result<()> {
        let found = sha256(program)?;
        ensure!(
            found == self.program,
            "{} is not the ptxas of {WHEEL}, and is not run: its SHA-256 is {found}, not {}",
            program.display(),
            self.program
        );
        Ok(())
    }
}

/// The SHA-256 of a file, in hexadecimal.
fn sha256(path: &Path) -> Result<String> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    // By its standard input, as a file name with a backslash would change the output's format.
    let text = process::output(Command::new("sha256sum").stdin(file))?;
    let digest = text.split_whitespace().next().context("sha256sum wrote nothing")?;
    Ok(digest.to_owned())
}

pub(super) const PIP: Need = Need {
    what: "pip, to fetch ptxas with",
    packages: &["python3-pip"],
    by_hand: "Install pip for Python 3, or set TMA_PTXAS to a ptxas of CUDA 12.8 or later.",
    is_met: || python_with_pip().is_some(),
};

/// A working ptxas.
pub(super) struct Ptxas {
    pub(super) path: PathBuf,
    /// Version of its CUDA toolkit: major, minor.
    pub(super) release: (u32, u32),
}

/// The one that `TMA_PTXAS` names, else one on PATH, else the one fetched before. The variable's
/// must be usable; the others are skipped if they are not.
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
    if on_path.is_some() || !home().is_file() {
        return Ok(on_path);
    }
    if let Err(error) = Pinned::here().and_then(|pinned| pinned.verify(&home())) {
        println!("Fetching ptxas again: {error}");
        return Ok(None);
    }
    Ok(usable(&home()))
}

/// The path of a fetched ptxas.
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

/// Downloads the wheel and extracts the program.
pub(super) fn fetch() -> Result<Ptxas> {
    if !cfg!(target_os = "linux") {
        bail!("ptxas exists for Linux only: run this task there");
    }
    let pinned = Pinned::here()?;
    let python = python_with_pip().context("pip is missing")?;
    let folder = workspace::target().join("tools/wheel");
    workspace::fresh_folder(&folder)?;
    let (requirements, wheels) = (folder.join("requirements.txt"), folder.join("wheels"));
    fs::write(&requirements, pinned.requirement())?;
    let mut download = Command::new(python);
    download.args([
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
        "--require-hashes",
    ]);
    download.arg("--requirement").arg(requirements).arg("--dest").arg(&wheels);
    process::run(&mut download)
        .context("Cannot fetch ptxas. Without the network, set TMA_PTXAS to one of CUDA 12.8 or later")?;

    let wheel = fs::read_dir(&wheels)?.next().context("pip has downloaded nothing")??.path();
    let unzip = "import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extract(sys.argv[2], sys.argv[3])";
    process::run(Command::new(python).args(["-c", unzip]).args([&wheel, Path::new(MEMBER), &folder]))?;
    let unpacked = folder.join(MEMBER);
    pinned.verify(&unpacked)?;
    process::make_executable(&unpacked)?;
    // Renamed when complete, so that an interrupted run leaves no partial ptxas.
    fs::rename(&unpacked, home()).context("cannot put ptxas in its place")?;
    fs::remove_dir_all(&folder)?;
    usable(&home()).with_context(|| format!("the fetched {} does not run on this machine", home().display()))
}

/// A Python 3 with pip. The first one on PATH may lack it while the system's has it.
fn python_with_pip() -> Option<&'static str> {
    let candidates = ["python3", "/usr/bin/python3"];
    candidates
        .into_iter()
        .find(|python| process::probe(Command::new(python).args(["-m", "pip", "--version"])).is_some())
}

#[cfg(test)]
mod tests {
    use std::{fs, path::PathBuf};

    use super::{PINNED, Pinned, WHEEL, release, sha256};

    /// A separate file for a test.
    fn file(name: &str, text: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id()));
        fs::write(&path, text).unwrap();
        path
    }

    #[test]
    fn another_program_is_refused() {
        // Source: FIPS 180-4's example, SHA-256 of "abc".
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let pinned = Pinned { processor: "any", wheel: "", program: abc };
        let path = file("pinned", "abc");
        assert_eq!(sha256(&path).unwrap(), abc);
        pinned.verify(&path).unwrap();
        fs::write(&path, "abd").unwrap();
        let error = pinned.verify(&path).unwrap_err().to_string();
        fs::remove_file(&path).unwrap();
        assert!(error.contains("is not the ptxas of nvidia-cuda-nvcc==13.0.88, and is not run"), "{error}");
    }

    #[test]
    fn pip_is_asked_for_one_version_and_one_wheel() {
        for pinned in &PINNED {
            for digest in [pinned.wheel, pinned.program] {
                assert!(
                    digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()),
                    "{digest}"
                );
            }
            assert_eq!(pinned.requirement(), format!("{WHEEL} --hash=sha256:{}\n", pinned.wheel));
        }
    }

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
