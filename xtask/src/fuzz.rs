//! `cargo xtask fuzz`: the front end against mutated kernels.

use anyhow::Result;

use crate::{process, setup};

/// Runs the fuzzer for `minutes`; a panic of the front end fails it.
pub(crate) fn run(minutes: u32) -> Result<()> {
    let tools = setup::run()?;
    let mut fuzzer = tools.cargo();
    fuzzer.args(["run", "--release", "-p", "tma-tests", "--bin", "tma-fuzz", "--", "--minutes"]);
    process::run(fuzzer.arg(minutes.to_string()))
}
