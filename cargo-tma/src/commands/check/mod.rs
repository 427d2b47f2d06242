//! `cargo tma check`.

mod kernels;
mod report;

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use tma_codegen::protocol::Budget;
use tma_codegen::sources;
use tma_setup::program::PTXAS;

use super::assembled::{self, Assembled};
use crate::arguments::Check;
use crate::kernel::Kernel;
use crate::output::Output;
use crate::package::{self, Built, Package};
use crate::progress;
use crate::sources::Sources;
use kernels::{CheckResults, CheckedKernel, check_kernels};
use report::{Ptxas, Report};

/// Checks the kernels of the package, or those of the given sources, and assembles their PTX if
/// ptxas is installed.
pub(crate) fn run(options: &Check) -> Result<Output> {
    let is_anywhere = options.no_build && !options.sources.is_empty();
    let package = if is_anywhere { None } else { Some(package::find(options.build.package.as_deref())?) };
    let root = package.as_ref().map_or_else(env::current_dir, |package| Ok(package.folder.clone()))?;
    let files = sources::rust_files(&folders(&root, package.as_ref(), &options.sources)?)?;
    let budget = options.budget.map_or(Budget::REPORT, Budget);
    let sources = Sources::read(&files, &root, package.as_ref())?;
    let CheckResults { mut kernels, rejected } = check_kernels(&sources, budget)?;
    if let Some(name) = &options.kernel {
        let names: Vec<_> = kernels.iter().map(|kernel| kernel.name.clone()).collect();
        kernels.retain(|kernel| package::is_named(&kernel.name, name));
        ensure!(!kernels.is_empty(), "there is no kernel `{name}`; available: {}", names.join(", "));
    }
    let built = match &package {
        Some(package) if !options.no_build => {
            let advice = "cannot build the package; use `--no-build` to check kernels without compiling them";
            Some(package.build(&options.build).context(advice)?)
        }
        Some(_) | None => None,
    };
    let ptxas = match &built {
        None => Ptxas::Skipped,
        Some(_) if PTXAS.find(&assembled::home())?.is_none() => Ptxas::Missing,
        Some(built) => Ptxas::Finished(assemble(&kernels, &built.kernels)?),
    };
    let all_built = built.as_ref().is_none_or(|Built { all_built, .. }| *all_built);
    Ok(Report { kernels, rejected, ptxas, all_built }.output(&options.deny))
}

/// Returns the folders in which to search for kernels.
fn folders(root: &Path, package: Option<&Package>, named: &[PathBuf]) -> Result<Vec<PathBuf>> {
    if let Some(missing) = named.iter().find(|path| !path.exists()) {
        anyhow::bail!("no such file or folder: {}", missing.display());
    }
    if named.is_empty() && package.is_some() {
        return Ok(sources::roots(root, &[]));
    }
    // Absolute, like the package's own folders: both are shown relative to the package's folder.
    named.iter().map(|path| Ok(std::path::absolute(path)?)).collect()
}

/// Assembles each kernel that was compiled.
fn assemble(kernels: &[CheckedKernel], compiled: &[Kernel]) -> Result<Vec<Option<Assembled>>> {
    progress::over("assembling with ptxas", kernels, |kernel| {
        let ptx = compiled.iter().find(|compiled| compiled.path.ends_with(&kernel.ptx));
        let assembled = ptx.map(assembled::assemble).transpose()?;
        Ok(assembled.inspect(Assembled::remove))
    })
}
