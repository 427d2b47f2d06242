//! `cargo tma setup`.

use anyhow::{Context, Result};
use serde_json::json;
use tma_setup::program::{NVDISASM, PTXAS, Program};
use tma_setup::{download, llvm, packages, stub_cuda};

use super::assembled::home;
use crate::arguments::Setup;
use crate::output::Output;
use crate::style::{bold, dim};
use crate::{package, progress};

/// Installs LLVM with the system's package manager, and fetches NVIDIA's programs.
pub(crate) fn run(options: &Setup) -> Result<Output> {
    let home = home();
    let mut needs = vec![&packages::LLVM];
    if PTXAS.find(&home)?.is_none() || NVDISASM.find(&home)?.is_none() {
        needs.push(&download::PIP);
    }
    packages::provide(&needs)?;
    let llvm = llvm::find()?;
    let mut text = format!("{:<10}{}\n", bold("LLVM 22"), llvm.display());
    let mut json = json!({ "llvm": llvm });
    for program in [&PTXAS, &NVDISASM] {
        let found = provide(program)?;
        let (major, minor) = found.release;
        text += &format!(
            "{:<10}{} {}\n",
            bold(program.name),
            found.path.display(),
            dim(format!("{major}.{minor}"))
        );
        json[program.name] = json!({ "path": found.path, "release": format!("{major}.{minor}") });
    }
    if options.cust {
        let stub = stub()?;
        text += &stub.as_ref().map_or_else(
            || "libcuda   that of CUDA_LIBRARY_PATH or of the CUDA toolkit\n".to_owned(),
            |stub| format!("libcuda   build with CUDA_LIBRARY_PATH={stub}\n"),
        );
        json["cuda_library_path"] = json!(stub);
    }
    Ok(Output::clean(text, json))
}

fn provide(program: &Program) -> Result<tma_setup::program::Found> {
    progress::during(&format!("fetching {}", program.name), || program.provide(&home()))
}

/// Returns the folder for `CUDA_LIBRARY_PATH`, if one is needed.
fn stub() -> Result<Option<String>> {
    // The stub needs the sources of cust_raw, which cargo has if the package uses cust.
    let metadata = package::metadata(&["--all-features"])?;
    let target = metadata["target_directory"].as_str().context("cargo metadata has no target directory")?;
    let folder = std::path::Path::new(target).join("stub-cuda");
    Ok(stub_cuda::provide(&folder, &metadata)?.map(|folder| folder.display().to_string()))
}
