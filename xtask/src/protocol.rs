//! `cargo xtask protocol`: what is known of the order in which kernels use barriers and memory.

use std::path::PathBuf;

use anyhow::Result;
use tma_setup::process;

use crate::workspace;

/// Judges the kernels at `paths`, or the examples.
pub(crate) fn run(paths: &[PathBuf], budget: Option<u64>) -> Result<()> {
    let mut judge = workspace::cargo();
    judge.args([
        "run",
        "--quiet",
        "-p",
        "tma-codegen",
        "--no-default-features",
        "--example",
        "protocol",
        "--",
    ]);
    if let Some(budget) = budget {
        judge.arg(format!("--budget={budget}"));
    }
    if paths.is_empty() {
        judge.arg(workspace::root().join("examples/src"));
    }
    process::run(judge.args(paths))
}
