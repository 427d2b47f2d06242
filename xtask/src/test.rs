//! `cargo xtask test`: runs all checks that every commit must pass, and stops at the first failing
//! step.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};

use tma_setup::{llvm, process};

use crate::{
    apart, keep, quick,
    setup::{self, Tools},
    workspace,
};

/// The feature `cuda`, of the published packages that have it and of the other packages.
const CUDA_OF_PUBLISHED: &str = "tma-runtime/cuda,tma-kernels/cuda,tma-python/cuda";
const CUDA_OF_OTHERS: &str = "tma-examples/cuda,tma-conformance/cuda,tma-kernels-python/cuda,tma-tests/cuda";
/// The feature `cust`. It is the only one that needs a `libcuda` to link with.
const CUST: &str = "tma-runtime/cust,tma-tests/cust";

/// The feature with the command `ptx-sim`, which is off by default. It does not affect the library.
pub(crate) const SIMULATOR_COMMAND: &str = "ptx-sim/cli";

/// The packages that are published.
pub(crate) const PUBLISHED: [&str; 12] = [
    "tma-model",
    "tma-setup",
    "tma-front",
    "tma-protocol",
    "tma-codegen",
    "tma-macros",
    "ptx-probe",
    "ptx-sim",
    "tma-runtime",
    "tma-kernels",
    "tma-python",
    "cargo-tma",
];

/// The features in their `package.metadata.docs.rs`.
const FEATURES_OF_DOCS_RS: &str =
    "ptx-sim/cli,tma-setup/install,tma-kernels/ptx-sim,tma-python/ptx-sim,tma-runtime/cust";

/// The settings that build the compiler of kernels in a third of the time, which pays off where it
/// compiles no PTX.
pub(crate) const QUICKLY: [&str; 6] = [
    "--config",
    "profile.dev.package.tma-front.opt-level=0",
    "--config",
    "profile.dev.package.tma-protocol.opt-level=0",
    "--config",
    "profile.dev.package.tma-codegen.opt-level=0",
];

/// Runs the steps in order and prints how long each took.
pub(crate) fn run() -> Result<()> {
    let start = Instant::now();
    let mut times = Vec::new();
    let tools = step("setup", &mut times, || {
        provide_components()?;
        setup::run()
    })?;
    let steps = steps(&tools).into_iter().map(|(name, command)| (name.to_owned(), command));
    let formats = [apart::BESIDE, apart::MODELS].map(|apart| apart::format(&tools, apart));
    let models = apart::steps(&tools, apart::MODELS);
    run_all(formats.into_iter().chain(steps).chain(models).collect(), times, start)
}

/// Runs the steps that the changes since revision `base` call for.
pub(crate) fn run_quick(base: &str) -> Result<()> {
    let start = Instant::now();
    let tools = setup::run()?;
    run_all(quick::steps(&tools, base)?, Vec::new(), start)
}

fn run_all(steps: Vec<(String, Command)>, mut times: Vec<(String, Duration)>, start: Instant) -> Result<()> {
    for (name, mut command) in steps {
        step(&name, &mut times, || process::run(&mut command))?;
    }
    println!("\nAll steps passed in {}", seconds(start.elapsed()));
    for (name, time) in times {
        println!("{:>8}  {name}", seconds(time));
    }
    Ok(())
}

/// Installs rustfmt and clippy, which rustup's minimal profile lacks.
fn provide_components() -> Result<()> {
    let is_missing = |tool| process::probe(workspace::cargo().args([tool, "--version"])).is_none();
    if ["fmt", "clippy"].into_iter().any(is_missing) {
        let mut add = Command::new("rustup");
        add.current_dir(workspace::root()).args(["component", "add", "rustfmt", "clippy"]);
        process::run(&mut add).context("cannot install rustfmt and clippy")?;
    }
    Ok(())
}

fn step<T>(name: &str, times: &mut Vec<(String, Duration)>, work: impl FnOnce() -> Result<T>) -> Result<T> {
    println!("\n== {name}");
    let start = Instant::now();
    let result = work().with_context(|| format!("step `{name}` failed"))?;
    println!("== {name}: {}", seconds(start.elapsed()));
    times.push((name.to_owned(), start.elapsed()));
    Ok(result)
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// Returns the steps, cheapest first.
fn steps(tools: &Tools) -> Vec<(&'static str, Command)> {
    let cargo = |arguments: &[&str]| {
        let mut command = tools.cargo();
        command.args(arguments);
        command
    };
    // The build must work without LLVM and CUDA even if they are installed. With these variables, a
    // build script that looked for either would find nothing.
    let nowhere = workspace::target().join("nowhere");
    let without_cuda = |mut command: Command| {
        command.env("CUDA_LIBRARY_PATH", &nowhere);
        command
    };
    let deny_warnings = ["--", "-D", "warnings"];

    let format = cargo(&["fmt", "--all", "--check"]);

    // Lints and documentation do not depend on PTX, which build scripts of their own would compile.
    // Code that only exists without CUDA is linted further down.
    let everything = [SIMULATOR_COMMAND, CUDA_OF_PUBLISHED, CUDA_OF_OTHERS, CUST].join(",");
    let mut lints = cargo(&["clippy", "--workspace", "--all-targets"]);
    lints.args(QUICKLY);
    lints.args(["--features", &everything]).args(deny_warnings).env("TMA_PTX", "off");

    // All of these run without LLVM, and include xtask. The compiler's dependencies therefore have
    // the same features each time, and it is built once.
    let without_defaults = |subcommand: &str, packages: &[&str], more: &[&str]| {
        let mut command = cargo(&[subcommand, "--no-default-features", "-p", "xtask"]);
        command.args(QUICKLY);
        command.args(packages.iter().flat_map(|package| ["-p", package])).args(more);
        command.env(llvm::VARIABLE, &nowhere);
        command
    };
    let lints_without_defaults = |packages: &[&str], more: &[&str]| {
        let mut command = without_defaults("clippy", packages, more);
        command.args(deny_warnings);
        command
    };
    let bare = lints_without_defaults(&[&PUBLISHED[..], &["tma-examples"]].concat(), &[]);
    // Programs only for GPUs do without the simulator, and are built where CUDA is not installed.
    let gpu_only = lints_without_defaults(&["tma-runtime", "tma-kernels"], &["--features", "cuda"]);
    let only_it = ["--test", "no_simulator"];
    let neither = lints_without_defaults(&["tma-runtime"], &only_it);
    let no_simulator = without_defaults("test", &["tma-runtime"], &only_it);
    let with_cust = ["--features", "cust,ptx-sim", "--test", "exchange"];
    let exchange = without_defaults("test", &["tma-runtime"], &with_cust);

    // The kernels are compiled here, and compared with the PTX that other builds use.
    let mut tests = cargo(&["test", "--workspace", "--features", SIMULATOR_COMMAND]);
    tests.env(keep::CHECK.0, keep::CHECK.1);

    // The documentation of unpublished packages has no readers.
    let mut documentation = cargo(&["doc", "--no-deps", "-p", "xtask"]);
    documentation.args(QUICKLY);
    documentation.args(PUBLISHED.iter().flat_map(|package| ["-p", package]));
    documentation.args(["--features", FEATURES_OF_DOCS_RS, "--features", CUDA_OF_PUBLISHED]);
    documentation.env("RUSTDOCFLAGS", "-D warnings").env("TMA_PTX", "off");

    // Mimics docs.rs, which has neither LLVM nor CUDA; cust's build script does not ask for CUDA
    // there. The environment does not say that this is docs.rs: cargo would cache the build
    // script's output, and other steps would link without a libcuda.
    let mut published =
        without_defaults("doc", &PUBLISHED, &["--no-deps", "--features", FEATURES_OF_DOCS_RS]);
    published.env("RUSTDOCFLAGS", "-D warnings");

    vec![
        ("format", format),
        ("lints", lints),
        ("lints without LLVM and CUDA", without_cuda(bare)),
        ("lints without the simulator, for GPUs", without_cuda(gpu_only)),
        ("lints without simulator and CUDA", neither),
        ("tests without the simulator", no_simulator),
        ("tests with cust", exchange),
        ("tests", tests),
        ("documentation", documentation),
        ("documentation as published", published),
    ]
}
