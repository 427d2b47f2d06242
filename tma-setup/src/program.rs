//! NVIDIA's programs that examine the compiler's output: ptxas assembles PTX, and nvdisasm lists
//! the machine code. Neither needs the CUDA toolkit: wheels of the Python package index contain
//! them as single programs.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{download, process};

/// A program from NVIDIA, and its source.
#[derive(Debug)]
pub struct Program {
    /// Name of the program.
    pub name: &'static str,
    /// Environment variable with the path of the program to use.
    pub variable: &'static str,
    /// Oldest CUDA toolkit whose program is sufficient: major, minor.
    pub oldest: (u32, u32),
    /// Package that contains the program.
    pub wheel: &'static str,
    /// Path of the program in the wheel.
    pub member: &'static str,
    /// Downloads, one for each processor.
    pub pinned: &'static [Pinned],
}

/// The SHA-256 checksums of the downloads for one processor.
#[derive(Debug)]
pub struct Pinned {
    /// Processor, named as in `std::env::consts::ARCH`.
    pub processor: &'static str,
    /// Checksum of the wheel.
    pub wheel: &'static str,
    /// Checksum of the program in it.
    pub program: &'static str,
}

/// The assembler. CUDA 12.8 introduced sm_120a, the newest architecture that kernels are compiled
/// for (PTX ISA, "Release Notes", PTX 8.7).
pub const PTXAS: Program = Program {
    name: "ptxas",
    variable: "TMA_PTXAS",
    oldest: (12, 8),
    wheel: "nvidia-cuda-nvcc==13.0.88",
    member: "nvidia/cu13/bin/ptxas",
    pinned: &[
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
    ],
};

/// The disassembler, which can also read the output of an older ptxas.
pub const NVDISASM: Program = Program {
    name: "nvdisasm",
    variable: "TMA_NVDISASM",
    oldest: (12, 8),
    wheel: "nvidia-cuda-nvdisasm==13.2.78",
    member: "nvidia/cu13/bin/nvdisasm",
    pinned: &[
        Pinned {
            processor: "x86_64",
            wheel: "b4ebcd3c5046bf8039ac52675b9dbefd843600969649ecaab0a42b0713a61dae",
            program: "69b72119d112b04b76af340cad187f3f1bced1f425e62cac4b664c4e3699d363",
        },
        Pinned {
            processor: "aarch64",
            wheel: "c338282695eca43de237929c5e3963d8d04f61d578d40f01bd04aca2bc29c233",
            program: "6da7fa7aa8af5cd1582781c9a35e12d371a5083c4d53f3a0f02cb1de43dbb507",
        },
    ],
};

/// A usable program.
#[derive(Clone, Debug)]
pub struct Found {
    /// Path of the program.
    pub path: PathBuf,
    /// Version of its CUDA toolkit: major, minor.
    pub release: (u32, u32),
}

impl Program {
    /// Returns the program that its variable names, else the one on PATH, else the one that was
    /// downloaded into `home`. The variable's program must be usable. The others are skipped if
    /// they are not.
    ///
    /// # Errors
    /// If the variable names a different program.
    pub fn find(&self, home: &Path) -> Result<Option<Found>> {
        if let Some(path) = std::env::var_os(self.variable).filter(|path| !path.is_empty()) {
            let Some(found) = self.usable(Path::new(&path)) else {
                let (variable, wanted) = (self.variable, self.wanted());
                bail!("{variable} is {}, which is not a {wanted}", path.display());
            };
            return Ok(Some(found));
        }
        let search = std::env::var_os("PATH").unwrap_or_default();
        let on_path = std::env::split_paths(&search).map(|folder| folder.join(self.name));
        let on_path = on_path.filter(|path| path.is_file()).find_map(|path| self.usable(&path));
        let own = home.join(self.name);
        if on_path.is_some() || !own.is_file() {
            return Ok(on_path);
        }
        if let Err(error) = download::verify(self, &own) {
            eprintln!("downloading {} again: {error}", self.name);
            return Ok(None);
        }
        Ok(self.usable(&own))
    }

    /// Returns the result of [`find`](Self::find), or an error with the command that fetches the
    /// program.
    ///
    /// # Errors
    /// The same as for [`find`](Self::find), and if there is no program.
    pub fn require(&self, home: &Path, command: &str) -> Result<Found> {
        self.find(home)?
            .with_context(|| format!("cannot find a {}; run `{command}` to install it", self.wanted()))
    }

    /// Returns the result of [`find`](Self::find), or downloads the program into `home`.
    ///
    /// # Errors
    /// The same as for [`find`](Self::find), and if the download fails or is a different program.
    pub fn provide(&self, home: &Path) -> Result<Found> {
        if let Some(found) = self.find(home)? {
            return Ok(found);
        }
        let path = download::fetch(self, home)?;
        match self.usable(&path) {
            Some(found) => Ok(found),
            None => bail!("the downloaded {} does not run on this machine", path.display()),
        }
    }

    /// Describes the requested program.
    pub fn wanted(&self) -> String {
        format!("{} of CUDA {}.{} or later", self.name, self.oldest.0, self.oldest.1)
    }

    fn usable(&self, path: &Path) -> Option<Found> {
        let release = release(&process::probe(Command::new(path).arg("--version"))?)?;
        (release >= self.oldest).then(|| Found { path: path.to_owned(), release })
    }
}

/// Parses "… release 13.0, V13.0.88".
fn release(version_text: &str) -> Option<(u32, u32)> {
    let (_, rest) = version_text.split_once("release ")?;
    let (major, minor) = rest.split(',').next()?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_read_from_the_version_text() {
        let text =
            "ptxas: NVIDIA (R) Ptx optimizing assembler\nCuda compilation tools, release 13.0, V13.0.88\n";
        assert_eq!(release(text), Some((13, 0)));
        assert_eq!(release("release 12.8, V12.8.93"), Some((12, 8)));
        assert_eq!(release("GNU assembler 2.40"), None);
        assert_eq!(release("release thirteen.0,"), None);
    }

    #[test]
    fn another_program_is_not_taken() {
        assert!(PTXAS.usable(Path::new("cc")).is_none());
        assert!(NVDISASM.usable(Path::new("no-such-program")).is_none());
    }
}
