//! `cargo tma run`.

use anyhow::{Result, bail};
use ptx_sim::cli::Refusal;
use serde_json::json;
use tma_codegen::sources;

use super::parameters;
use crate::arguments::Run;
use crate::output::Output;
use crate::package::{self, Package};
use crate::progress;
use crate::sources::Sources;
use crate::style::bold;

/// Runs a kernel on the simulator.
pub(crate) fn run(options: &Run) -> Result<Output> {
    let package = package::find(options.build.package.as_deref())?;
    let kernel = package::only(package.kernels(&options.build)?, &options.kernel)?;
    // Findings quote source lines, with paths relative to the package.
    std::env::set_current_dir(&package.folder)?;
    let launch = || options.launch.run(&kernel.path.to_string_lossy(), &kernel.text, &kernel.entry);
    let outcome = progress::during(&format!("simulating {}", kernel.name), launch);
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(Refusal::Arguments(why)) => {
            bail!("{why}{}", help(&package, &kernel.name).unwrap_or_default())
        }
        Err(Refusal::Other(why)) => bail!(why),
    };
    let text = format!("{}\n{}", bold(&kernel.name), outcome.text);
    let mut json = outcome.json;
    json["kernel"] = json!(kernel.name);
    Ok(Output { text, json, is_clean: outcome.is_clean })
}

/// Describes the kernel's parameters, if the kernel is found in the sources.
fn help(package: &Package, name: &str) -> Option<String> {
    let files = sources::rust_files(&sources::roots(&package.folder, &[])).ok()?;
    let sources = Sources::read(&files, &package.folder, Some(package)).ok()?;
    let mut kernels = sources.files.iter().filter_map(|source| sources.check(source).ok());
    kernels.find_map(|accepted| {
        let mut kernels = accepted.kernels.iter().map(|checked| checked.kernel.kernel());
        kernels.find(|kernel| kernel.path() == name).map(parameters::help)
    })
}
