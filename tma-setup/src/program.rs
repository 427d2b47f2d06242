//! NVIDIA's programs that judge what the compiler emits: ptxas assembles PTX, nvdisasm lists the
//! machine code. Neither needs the CUDA toolkit: wheels of the Python package index contain them as
//! single programs.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{download, process};

/// A program of NVIDIA's, and where to get it.
#[derive(Debug)]
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// The variable that names the one to use.
    pub variable: &'static str,
    /// The oldest CUDA toolkit whose program is good enough: major, minor.
    pub oldest: (u32, u32),
    /// The package that contains it.
    pub wheel: &'static str,
    /// Its path in the wheel.
    pub member: &'static str,
    /// The downloads, one for each processor.
    pub pinned: &'static [Pinned],
}

/// The SHA-256 of the downloads for one processor.
#[derive(Debug)]
pub struct Pinned {
    /// As `std::env::consts::ARCH` calls it.
    pub processor: &'static str,
    /// Of the wheel.
    pub wheel: &'static str,
    /// Of the program in it.
    pub program: &'static str,
}

/// The assembler. sm_120a, the newest architecture that kernels are compiled for, came with CUDA
/// 12.8 (PTX ISA, "Release Notes", PTX 8.7).
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

/// The disassembler; it reads what an older ptxas has assembled.
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

/// A program that works.
#[derive(Clone, Debug)]
pub struct Found {
    /// Where it is.
    pub path: PathBuf,
    /// Version of its CUDA toolkit: major, minor.
    pub release: (u32, u32),
}

impl Program {
    /// The one that its variable names, else one on PATH, else the one that was downloaded into
    /// `home`. The variable's must be usable; the others are skipped if they are not.
    ///
    /// # Errors
    /// If the variable names another program.
    pub fn find(&self, home: &Path) -> Result<Option<Found>> {
        if let Some(path) = std::env::var_os(self.variable).filter(|path| !path.is_empty()) {
            let Some(found) = self.usable(Path::new(&path)) else {
                let (variable, wanted) = (self.variable, self.wanted());
                bail!("{variable} is {}, which is no {wanted}", path.display());
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
            eprintln!("{} is to be fetched again: {error}", self.name);
            return Ok(None);
        }
        Ok(self.usable(&own))
    }

    /// [`find`](Self::find), or an error that names the command that fetches it.
    ///
    /// # Errors
    /// As [`find`](Self::find); if there is none.
    pub fn require(&self, home: &Path, command: &str) -> Result<Found> {
        self.find(home)?.with_context(|| format!("there is no {}: `{command}` fetches it", self.wanted()))
    }

    /// [`find`](Self::find), or else a download into `home`.
    ///
    /// # Errors
    /// As [`find`](Self::find); if the download fails or is another program.
    pub fn provide(&self, home: &Path) -> Result<Found> {
        if let Some(found) = self.find(home)? {
            return Ok(found);
        }
        let path = download::fetch(self, home)?;
        match self.usable(&path) {
            Some(found) => Ok(found),
            None => bail!("the fetched {} does not run on this machine", path.display()),
        }
    }

    /// What is asked for, in words.
    pub fn wanted(&self) -> String {
        format!("{} of CUDA {}.{} or later", self.name, self.oldest.0, self.oldest.1)
    }

    fn usable(&self, path: &Path) -> Option<Found> {
        let release = release(&process::probe(Command::new(path).arg("--version"))?)?;
        (release >= self.oldest).then(|| Found { path: path.to_owned(), release })
    }
}

/// Reads "… release 13.0, V13.0.88".
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
