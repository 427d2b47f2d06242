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
    /// The simulator's parser and loader: mutated PTX
    Ptx,
    /// The simulator's launches: shapes, arguments, tensor maps
    Launch,
    /// The options and files of the command `ptx-sim`
    Command,
}

/// The longest that one input may take, in seconds.
const PATIENCE: u32 = 30;

/// How long inputs of numbers may be. They are so from the start: libFuzzer's own beginning with the shortest ones is meant for
/// texts, and no launch comes of less than some sixty bytes.
const NUMBERS: [&str; 2] = ["-max_len=512", "-len_control=0"];

/// Runs the fuzzer on `target` for `minutes`; a panic, a hang or too much memory fails it.
pub(crate) fn run(target: Target, minutes: u32) -> Result<()> {
    match target {
        Target::Kernel => mutate("kernel", minutes),
        Target::Values => mutate("values", minutes),
        Target::Host => mutate("host", minutes),
        Target::Ptx => guide("ptx", minutes, &[simulator().join("tests/corpus"), compiled()?], &[]),
        Target::Launch => guide("launch", minutes, &[], &NUMBERS),
        Target::Command => guide("command", minutes, &[simulator().join("fuzz/seeds/command")], &[]),
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
fn mutate(target: &str, minutes: u32) -> Result<()> {
    let mut fuzzer = setup::run()?.cargo();
    fuzzer.args(["run", "--profile", "fuzz", "-p", "tma-tests", "--bin", "tma-fuzz", "--"]);
    process::run(fuzzer.args(["--target", target, "--minutes", &minutes.to_string()]))
}

/// Runs a target of cargo-fuzz. It starts from what earlier runs have kept and from the files in `seeds`; `options` are
/// libFuzzer's.
fn guide(target: &str, minutes: u32, seeds: &[PathBuf], options: &[&str]) -> Result<()> {
    let kept = Path::new("fuzz/corpus").join(target);
    let folder = simulator().join(&kept);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut fuzzer = std::process::Command::new(setup::cargo_fuzz::provide()?);
    fuzzer.current_dir(simulator()).args(["fuzz", "run", "--sanitizer", "none", target]);
    fuzzer.arg(kept).args(seeds).arg("--");
    fuzzer.arg(format!("-max_total_time={}", 60 * minutes));
    fuzzer.arg(format!("-timeout={PATIENCE}")).arg("-print_final_stats=1").args(options);
    process::run(&mut fuzzer)
}
