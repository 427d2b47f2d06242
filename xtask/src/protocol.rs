//! `cargo xtask protocol`: runs `cargo tma check`, without a build, on the examples or on any
//! sources.

use std::path::PathBuf;

use anyhow::Result;
use tma_setup::process;

use crate::workspace;

/// Checks the kernels at `paths`, or the examples.
pub(crate) fn run(paths: &[PathBuf], budget: Option<u64>) -> Result<()> {
    let mut check = workspace::cargo();
    check.args(["run", "--quiet", "-p", "cargo-tma", "--", "tma", "check", "--no-build"]);
    check.args(budget.map(|budget| format!("--budget={budget}")));
    if paths.is_empty() {
        check.arg("--source").arg(workspace::root().join("examples/src"));
    }
    for path in paths {
        // Paths are relative to the directory in which the task was called.
        check.arg("--source").arg(std::path::absolute(path)?);
    }
    process::run(&mut check)
}
