//! `cargo xtask fuzz`: fuzzes everything that takes input from outside.
//!
//! cargo-fuzz fuzzes the simulator, guided by coverage. The simulator has no `unsafe`, so it runs
//! without a sanitizer, on stable Rust. A program in `tests` fuzzes everything that needs the
//! compiler, because LLVM has no coverage instrumentation.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use clap::ValueEnum;

use tma_setup::process;

use crate::{ptx, setup, workspace};

/// The target of the inputs.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Target {
    /// The front end of the compiler: mutated kernels
    Kernel,
    /// Generated kernels, compared with the same text as plain Rust
    Values,
    /// The runtime: launches, tensors and tensor maps
    Host,
    /// Types inferred by the front end, compared with rustc's
    Types,
    /// The simulator's parser and loader: mutated PTX
    Ptx,
    /// The simulator's launches: shapes, arguments, tensor maps
    Launch,
    /// The options and files of the command `ptx-sim`
    Command,
}

/// The extent of a run.
#[derive(Clone, Copy)]
pub(crate) struct RunExtent {
    pub(crate) minutes: u32,
    /// Number of inputs, instead of a time.
    pub(crate) inputs: Option<u32>,
}

/// The time limit of one input, in seconds.
const INPUT_TIMEOUT: u32 = 30;

/// The maximum length of binary inputs, which applies from the start. By default libFuzzer begins
/// with short inputs, but a launch takes at least about sixty bytes.
const NUMBERS: [&str; 2] = ["-max_len=512", "-len_control=0"];

/// Runs the fuzzer on `target`. It fails on a panic, a hang or excessive memory, and for `types` on
/// any difference from rustc.
pub(crate) fn run(target: Target, extent: RunExtent) -> Result<()> {
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

/// Writes the PTX of every kernel of the workspace, and returns its folder.
fn compiled() -> Result<PathBuf> {
    let folder = workspace::target().join("fuzz-seeds");
    ptx::run(Some(&folder), ptx::DEFAULT_TARGET)?;
    Ok(folder)
}

/// Runs a target of the fuzzer in the package `tests`.
fn mutate(target: &str, extent: RunExtent) -> Result<()> {
    let mut fuzzer = setup::run()?.cargo();
    fuzzer.args(["run", "--profile", "fuzz", "-p", "tma-tests", "--bin", "tma-fuzz", "--"]);
    fuzzer.args(["--target", target, "--minutes", &extent.minutes.to_string()]);
    if let Some(inputs) = extent.inputs {
        fuzzer.args(["--inputs", &inputs.to_string()]);
    }
    process::run(&mut fuzzer)
}

/// Runs a target of cargo-fuzz. It starts from the corpus of earlier runs and from the files in
/// `seeds`. `options` are options of libFuzzer.
fn guide(target: &str, extent: RunExtent, seeds: &[PathBuf], options: &[&str]) -> Result<()> {
    let kept = Path::new("fuzz/corpus").join(target);
    let folder = simulator().join(&kept);
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let mut fuzzer = std::process::Command::new(setup::cargo_fuzz::provide()?);
    fuzzer.current_dir(simulator()).args(["fuzz", "run", "--sanitizer", "none", target]);
    fuzzer.arg(kept).args(seeds).arg("--");
    fuzzer.arg(match extent.inputs {
        Some(inputs) => format!("-runs={inputs}"),
        None => format!("-max_total_time={}", 60 * extent.minutes),
    });
    fuzzer.arg(format!("-timeout={INPUT_TIMEOUT}")).arg("-print_final_stats=1").args(options);
    process::run(&mut fuzzer)
}
