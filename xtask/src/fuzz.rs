//! `cargo xtask fuzz`: made-up inputs against what takes input from outside.
//!
//! The simulator is fuzzed by cargo-fuzz, guided by coverage: it is Rust without `unsafe`, so no sanitizer is asked for, and
//! stable Rust does. What needs the compiler, whose LLVM no coverage is counted in, is fuzzed by a program of the tests.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::{process, ptx, setup, workspace};

/// What gets the inputs.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Target {
    /// The front end of the compiler: mutated kernels
    Kernel,
    /// Generated kernels, against the same text as plain Rust
    Values,
    /// The runtime: launches, tensors and tensor maps
    Host,
    /// The types that the front end infers, against rustc's
    Types,
    /// The simulator's parser and loader: mutated PTX
    Ptx,
    /// The simulator's launches: shapes, arguments, tensor maps
    Launch,
    /// The options and files of the command `ptx-sim`
    Command,
}

/// How much is tried.
#[derive(Clone, Copy)]
pub(crate) struct Extent {
    pub(crate) minutes: u32,
    /// In place of a time.
    pub(crate) inputs: Option<u32>,
}

/// The longest that one input may take, in seconds.
const PATIENCE: u32 = 30;

/// How long inputs of numbers may be. They are so from the start: libFuzzer's own beginning with the shortest ones is meant for
/// texts, and no launch comes of less than some sixty bytes.
const NUMBERS: [&str; 2] = ["-max_len=512", "-len_control=0"];

/// Runs the fuzzer on `target`; a panic, a hang or too much memory fails it, and of `types` another answer than rustc's.
pub(crate) fn run(target: Target, extent: Extent) -> Result<()> {
    match target {
        Target::Kernel => mutate("kernel", extent),
        Target::Values => mutate("values", extent),
        Target::Host => mutate("host", extent),
        Target::Types => mutate("types", extent),
        Target::Ptx => guide("ptx", extent, &[simulator().join("tests/corpus"), compiled()?], &[]),
        Target::Launch => guide("launch", extent, &[], &NUMBERS),
        Target::Command => guide("command", extent, &[simulator().join("fuzz/seeds/command")], &[]),
    }
}

fn simulator() -> PathBuf {
    workspace::root().join("ptx-sim")
}

/// The PTX of every kernel of the workspace.
fn compiled() -> Result<PathBuf> {
    let folder = workspace::target().join("fuzz-seeds");
    ptx::run(Some(&folder), ptx::DEFAULT_TARGET)?;
    Ok(folder)
}

/// Runs a target of the fuzzer in the package `tests`.
fn mutate(target: &str, extent: Extent) -> Result<()> {
    let mut fuzzer = setup::run()?.cargo();
    fuzzer.args(["run", "--profile", "fuzz", "-p", "tma-tests", "--bin", "tma-fuzz", "--"]);
    fuzzer.args(["--target", target, "--minutes", &extent.minutes.to_string()]);
    if let Some(inputs) = extent.inputs {
        fuzzer.args(["--inputs", &inputs.to_string()]);
    }
    process::run(&mut fuzzer)
}

/// Runs a target of cargo-fuzz. It starts from what earlier runs have kept and from the files in `seeds`; `options` are
/// libFuzzer's.
fn guide(target: &str, extent: Extent, seeds: &[PathBuf], options: &[&str]) -> Result<()> {
    let kept = Path::new("fuzz/corpus").join(target);
    let folder = simulator().join(&kept);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut fuzzer = std::process::Command::new(setup::cargo_fuzz::provide()?);
    fuzzer.current_dir(simulator()).args(["fuzz", "run", "--sanitizer", "none", target]);
    fuzzer.arg(kept).args(seeds).arg("--");
    fuzzer.arg(match extent.inputs {
        Some(inputs) => format!("-runs={inputs}"),
        None => format!("-max_total_time={}", 60 * extent.minutes),
    });
    fuzzer.arg(format!("-timeout={PATIENCE}")).arg("-print_final_stats=1").args(options);
    process::run(&mut fuzzer)
}
