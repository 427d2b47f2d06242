//! `cargo xtask setup`: finds or installs what the build needs. Running it again changes nothing.
//!
//! It lists what the system lacks, installs that in one go, then fetches ptxas and makes the stub
//! of the CUDA driver's library. Each part reports what it found in one line.

pub(crate) mod cargo_fuzz;
mod llvm;
mod ptxas;
pub(crate) mod rust_analyzer;
mod stub_cuda;
mod system;

use std::{path::PathBuf, process::Command};

use anyhow::Result;

use crate::workspace;

/// The tools, to be passed to every cargo call that builds kernels or the feature `cuda`.
pub(crate) struct Tools {
    /// The assembler that validates PTX.
    pub(crate) ptxas: PathBuf,
    /// A folder with `lib64/libcuda.so` for `CUDA_LIBRARY_PATH`, if no CUDA toolkit is installed.
    cuda_library_path: Option<PathBuf>,
    /// LLVM's folder for `LLVM_SYS_221_PREFIX`, if it cannot be found through `PATH`.
    llvm_prefix: Option<PathBuf>,
}

impl Tools {
    /// A cargo call whose environment names the tools.
    pub(crate) fn cargo(&self) -> Command {
        let mut command = workspace::cargo();
        command.env(ptxas::VARIABLE, &self.ptxas);
        command.envs(self.cuda_library_path.iter().map(|path| (stub_cuda::VARIABLE, path)));
        command.envs(self.llvm_prefix.iter().map(|path| (llvm::VARIABLE, path)));
        command
    }
}

/// Installs what is missing and returns the paths of everything.
pub(crate) fn run() -> Result<Tools> {
    let found = ptxas::find()?;
    let mut needs = vec![&llvm::NEED, &system::CXX_LIBRARY];
    if found.is_none() {
        needs.push(&ptxas::PIP);
    }
    system::provide(&needs)?;

    let llvm = llvm::find()?;
    println!("LLVM {} in {}", llvm.version, llvm.prefix.display());
    let ptxas = found.map_or_else(ptxas::fetch, Ok)?;
    println!("ptxas {}.{} at {}", ptxas.release.0, ptxas.release.1, ptxas.path.display());
    let cuda_library_path = stub_cuda::provide()?;
    match &cuda_library_path {
        Some(path) => println!("libcuda to link with: a stub in {}", path.display()),
        None => println!("libcuda to link with: as CUDA_LIBRARY_PATH or the installed CUDA toolkit has it"),
    }

    let llvm_prefix = (!llvm.on_path).then_some(llvm.prefix);
    Ok(Tools { ptxas: ptxas.path, cuda_library_path, llvm_prefix })
}
