//! `cargo tma trace`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::arguments::Trace;
use crate::output::Output;

/// Runs a program of the package, and traces one launch of a kernel. The program itself prints the
/// summary.
pub(crate) fn run(options: &Trace) -> Result<Output> {
    let file = options
        .out
        .clone()
        .unwrap_or_else(|| PathBuf::from(format!("{}.trace.json", options.kernel.replace("::", "-"))));
    let file = std::path::absolute(&file).with_context(|| format!("{}: no such path", file.display()))?;
    if file.exists() {
        // A file of an earlier run must not pass for this one's.
        fs::remove_file(&file).with_context(|| format!("cannot replace {}", file.display()))?;
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .arg("run")
        .args(&options.arguments)
        .env("TMA_TRACE", &options.kernel)
        .env("TMA_TRACE_LAUNCH", options.launch.to_string())
        .env("TMA_TRACE_FILE", &file)
        // Standard output is this command's own.
        .stdout(io::stderr())
        .status()
        .context("cannot run cargo")?;
    if !file.exists() {
        bail!(
            "`{}` was not launched {} times on a stream{}; launches that a graph replays cannot be traced",
            options.kernel,
            options.launch,
            if status.success() { "" } else { ", and the program failed" }
        );
    }
    let summary = summary(&file)?;
    let text = format!("open {} at https://ui.perfetto.dev\n", file.display());
    let json = json!({ "file": file, "program_succeeded": status.success(), "summary": summary });
    Ok(Output { text, json, is_clean: status.success() })
}

/// Reads the summary in the file's metadata.
fn summary(file: &Path) -> Result<Value> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let trace: Value =
        serde_json::from_str(&text).with_context(|| format!("{} is no trace", file.display()))?;
    Ok(trace["otherData"]["summary"].clone())
}
