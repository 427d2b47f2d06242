//! `cargo xtask protocol`: `cargo tma check`, without a build, of the examples or of any sources.

use std::path::PathBuf;

use anyhow::Result;
use tma_setup::process;

use crate::workspace;

/// Judges the kernels at `paths`, or the examples.
pub(crate) fn run(paths: &[PathBuf], budget: Option<u64>) -> Result<()> {
    let mut check = workspace::cargo();
    check.args(["run", "--quiet", "-p", "cargo-tma", "--", "tma", "check", "--no-build"]);
    check.args(budget.map(|budget| format!("--budget={budget}")));
    if paths.is_empty() {
        check.arg("--source").arg(workspace::root().join("examples/src"));
    }
    for path in paths {
        // As they are meant where this task was called.
        check.arg("--source").arg(std::path::absolute(path)?);
    }
    process::run(&mut check)
}
