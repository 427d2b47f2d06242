//! `cargo xtask fuzz`: made-up inputs against what takes input from outside.

use anyhow::Result;
use clap::ValueEnum;

use crate::{process, setup};

/// What gets the inputs.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Target {
    /// The front end of the compiler: mutated kernels
    Kernel,
    /// The simulator's parser and loader: mutated PTX
    Ptx,
    /// Launches, tensor maps, and the arguments of the command `ptx-sim`
    Launch,
}

impl Target {
    /// As `tma-fuzz` calls it.
    fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Ptx => "ptx",
            Self::Launch => "launch",
        }
    }
}

/// Runs the fuzzer on `target` for `minutes`; a panic or hang fails it.
pub(crate) fn run(target: Target, minutes: u32) -> Result<()> {
    let tools = setup::run()?;
    let mut fuzzer = tools.cargo();
    fuzzer.args(["run", "--profile", "fuzz", "-p", "tma-tests", "--bin", "tma-fuzz", "--"]);
    let (target, minutes) = (target.name(), minutes.to_string());
    process::run(fuzzer.args(["--target", target, "--minutes", &minutes]))
}
