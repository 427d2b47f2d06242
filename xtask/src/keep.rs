//! `cargo xtask keep`: the PTX that `tma-kernels` keeps in its sources.
//!
//! It does what `cargo tma ptx --keep` does, in the profile of the tests, which share what is
//! compiled: the build script of `tma-kernels` makes the same PTX in all profiles.

use std::process::Command;

use anyhow::{Context, Result};

use tma_setup::process;

use crate::setup::{self, Tools};

/// The variable that has a build script compare the PTX of its package, and its value for
/// `tma-kernels`.
pub(crate) const CHECK: (&str, &str) = ("TMA_KEEP", "check:tma-kernels");

/// Rewrites the PTX, or compares it.
pub(crate) fn run(is_check: bool) -> Result<()> {
    let tools = setup::run()?;
    let mut compile = if is_check { check(&tools) } else { command(&tools, "write:tma-kernels") };
    process::run(&mut compile).context("after a change, run `cargo xtask keep`, and commit it")
}

/// Returns the command that compares the PTX.
pub(crate) fn check(tools: &Tools) -> Command {
    command(tools, CHECK.1)
}

fn command(tools: &Tools, task: &str) -> Command {
    let mut command = tools.cargo();
    command.args(["check", "-p", "tma-kernels", "--features", "llvm"]).env(CHECK.0, task);
    command
}
