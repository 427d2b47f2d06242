//! `cargo xtask setup`: finds or installs everything that the build needs. Running it again changes
//! nothing.
//!
//! The task lists what the system lacks, installs that in one go, then fetches ptxas and nvdisasm
//! and makes a stub of the CUDA driver's library for cust. Each part reports its findings in one
//! line.

pub(crate) mod cargo_fuzz;
pub(crate) mod mdbook;
pub(crate) mod rust_analyzer;

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;
use tma_setup::{
    download::PIP,
    llvm, packages,
    program::{Found, NVDISASM, PTXAS, Program},
    stub_cuda,
};

use crate::workspace;

/// The tools, which every cargo call that builds kernels or the feature `cust` needs.
pub(crate) struct Tools {
    /// The assembler that validates PTX.
    pub(crate) ptxas: PathBuf,
    /// The disassembler.
    nvdisasm: PathBuf,
    /// A folder with `lib64/libcuda.a` for `CUDA_LIBRARY_PATH`, if no CUDA toolkit is installed.
    cuda_library_path: Option<PathBuf>,
}

impl Tools {
    /// Returns a cargo call whose environment names the tools.
    pub(crate) fn cargo(&self) -> Command {
        let mut command = workspace::cargo();
        command.env(PTXAS.variable, &self.ptxas).env(NVDISASM.variable, &self.nvdisasm);
        command.envs(self.cuda_library_path.iter().map(|path| (stub_cuda::VARIABLE, path)));
        command
    }
}

/// Installs what is missing and returns the paths of everything.
pub(crate) fn run() -> Result<Tools> {
    let home = workspace::target().join("tools");
    let mut needs = vec![&packages::LLVM];
    if PTXAS.find(&home)?.is_none() || NVDISASM.find(&home)?.is_none() {
        needs.push(&PIP);
    }
    packages::provide(&needs)?;

    println!("LLVM 22 at {}", llvm::find()?.display());
    let ptxas = provide(&PTXAS, &home)?.path;
    let nvdisasm = provide(&NVDISASM, &home)?.path;
    let cuda_library_path =
        stub_cuda::provide(&workspace::target().join("stub-cuda"), &workspace::metadata(false)?)?;
    match &cuda_library_path {
        Some(path) => println!("libcuda to link cust with: a stub in {}", path.display()),
        None => println!("libcuda to link cust with: from CUDA_LIBRARY_PATH or the CUDA toolkit"),
    }
    Ok(Tools { ptxas, nvdisasm, cuda_library_path })
}

fn provide(program: &Program, home: &Path) -> Result<Found> {
    let found = program.provide(home)?;
    println!("{} {}.{} at {}", program.name, found.release.0, found.release.1, found.path.display());
    Ok(found)
}
