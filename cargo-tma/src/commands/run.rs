//! `cargo tma run`.

use anyhow::{Result, anyhow};
use serde_json::json;

use crate::arguments::Run;
use crate::output::Output;
use crate::style::bold;
use crate::{package, progress};

/// Runs a kernel on the simulator.
pub(crate) fn run(options: &Run) -> Result<Output> {
    let package = package::find(options.build.package.as_deref())?;
    let kernel = package::only(package.kernels(&options.build)?, &options.kernel)?;
    // Findings quote source lines, whose paths begin at the package.
    std::env::set_current_dir(&package.folder)?;
    let launch = || options.launch.run(&kernel.path.to_string_lossy(), &kernel.text, &kernel.entry);
    let outcome = progress::during(&format!("{} runs on the simulator", kernel.name), launch);
    let outcome = outcome.map_err(|why| anyhow!(why))?;
    let text = format!("{}\n{}", bold(&kernel.name), outcome.text);
    let mut json = outcome.json;
    json["kernel"] = json!(kernel.name);
    Ok(Output { text, json, is_clean: outcome.is_clean })
}
