//! `cargo tma doctor`.

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use serde_json::{Value, json};
use tma_setup::program::{NVDISASM, PTXAS, Program};
use tma_setup::{llvm, process, stub_cuda};

use super::assembled::home;
use crate::output::Output;
use crate::style::{bad, bold, dim, good, warning};
use crate::{package, progress};

/// The oldest Rust version that builds the project: its `rust-version`.
const RUST: &str = env!("CARGO_PKG_RUST_VERSION");

/// The state of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Fine,
    /// Missing, but kernels compile and are simulated without it.
    Optional,
    /// Missing, and nothing works without it.
    Missing,
}

/// A requirement that was checked.
#[derive(Debug)]
struct Requirement {
    name: &'static str,
    state: State,
    /// Description of what was found, or of the problem.
    found: String,
    /// Advice, if there is a problem.
    advice: Option<String>,
}

impl Requirement {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, state: State::Fine, found: found.into(), advice: None }
    }

    fn missing(name: &'static str, state: State, found: &str, advice: impl Into<String>) -> Self {
        Self { name, state, found: found.to_owned(), advice: Some(advice.into()) }
    }
}

/// Checks all requirements. The output is not clean if one is missing without which nothing works.
pub(crate) fn run() -> Result<Output> {
    let mut checks = vec![rust(), linker(), llvm_library()];
    checks.extend([&PTXAS, &NVDISASM].map(program));
    checks.push(gpu());
    if let Some(package) = Package::here() {
        checks.push(package.compiles_kernels());
        checks.extend(package.uses_cust().then(cuda_to_link));
    }
    Ok(report(&checks))
}

fn report(checks: &[Requirement]) -> Output {
    let is_clean = checks.iter().all(|check| check.state != State::Missing);
    let mut text = String::new();
    for check in checks {
        let mark = match check.state {
            State::Fine => good("ok"),
            State::Optional => warning("--"),
            State::Missing => bad("no"),
        };
        text += &format!("{mark}  {}: {}\n", bold(check.name), check.found);
        if let Some(advice) = &check.advice {
            text += &format!("    {}\n", dim(format!("-> {advice}")));
        }
    }
    text += &match is_clean {
        true => format!("{}\n", good("Kernels can be compiled and simulated here.")),
        false => format!("{}\n", bad("Something is missing that is required to compile kernels.")),
    };
    let json = checks.iter().map(|check| {
        let state = match check.state {
            State::Fine => "fine",
            State::Optional => "optional",
            State::Missing => "missing",
        };
        json!({ "what": check.name, "state": state, "found": check.found, "advice": check.advice })
    });
    Output { text, json: Value::Array(json.collect()), is_clean }
}

fn rust() -> Requirement {
    let name = "Rust";
    let update = format!("install Rust {RUST} or later: rustup update stable");
    let Some(version) = process::probe(Command::new("rustc").arg("--version")) else {
        return Requirement::missing(name, State::Missing, "rustc is not installed", update);
    };
    match is_recent(&version) {
        true => Requirement::ok(name, version),
        false => Requirement::missing(name, State::Missing, &version, update),
    }
}

/// Returns whether `rustc 1.95.0 (..)` is at least the oldest version that builds the project.
fn is_recent(version: &str) -> bool {
    let numbers = |text: &str| {
        let mut numbers = text.split('.').map(|part| part.parse::<u32>().ok());
        Some((numbers.next()??, numbers.next()??))
    };
    let found = version.split_whitespace().nth(1).and_then(numbers);
    found.is_some() && found >= numbers(RUST)
}

fn linker() -> Requirement {
    match process::probe(Command::new("cc").arg("--version")) {
        Some(version) => Requirement::ok("linker", version.lines().next().unwrap_or_default()),
        None if cfg!(windows) => Requirement::ok("linker", "that of the installed Rust toolchain"),
        None => {
            Requirement::missing("linker", State::Missing, "`cc` is not installed", "install gcc or clang")
        }
    }
}

fn llvm_library() -> Requirement {
    match llvm::find() {
        Ok(path) => Requirement::ok("LLVM 22", path.display().to_string()),
        Err(missing) => {
            let advice = missing.command.clone();
            let advice = advice.unwrap_or_else(|| "cargo tma explain TMA0903".to_owned());
            Requirement::missing("LLVM 22", State::Missing, &format!("TMA0903: {missing}"), advice)
        }
    }
}

fn program(program: &Program) -> Requirement {
    match program.find(&home()) {
        Ok(Some(found)) => {
            let (major, minor) = found.release;
            Requirement::ok(program.name, format!("{} of CUDA {major}.{minor}", found.path.display()))
        }
        Ok(None) => {
            let found = format!("not installed; only needed to inspect kernels ({})", program.wanted());
            Requirement::missing(program.name, State::Optional, &found, "cargo tma setup")
        }
        Err(error) => {
            Requirement::missing(program.name, State::Optional, &error.to_string(), "unset the variable")
        }
    }
}

/// Queries NVIDIA's own tool, which comes with the driver.
fn gpu() -> Requirement {
    let mut query = Command::new("nvidia-smi");
    query.args(["--query-gpu=name,compute_cap,driver_version", "--format=csv,noheader"]);
    let gpus = progress::during("looking for GPUs", || process::probe(&mut query));
    let Some(gpus) = gpus.filter(|text| !text.is_empty()) else {
        let found = "no GPU found, or no driver for it; kernels run on the simulator";
        return Requirement::missing(
            "GPU",
            State::Optional,
            found,
            "install NVIDIA's driver if there is a GPU",
        );
    };
    let found = gpus.lines().map(str::trim).collect::<Vec<_>>().join("; ");
    match gpus.lines().any(is_hopper) {
        true => Requirement::ok("GPU", found),
        false => {
            let advice =
                "kernels for sm_90a run on Hopper only; set TMA_DEVICE=sim to run them on the simulator";
            Requirement::missing("GPU", State::Optional, &found, advice)
        }
    }
}

/// Returns whether a GPU is a Hopper, given a line such as `NVIDIA H200, 9.0, 580.65.06`.
fn is_hopper(gpu: &str) -> bool {
    gpu.split(',').nth(1).is_some_and(|capability| capability.trim() == "9.0")
}

/// Checks for a libcuda, which only packages that use cust need.
fn cuda_to_link() -> Requirement {
    let name = "libcuda to link with";
    if let Some(path) = std::env::var_os(stub_cuda::VARIABLE) {
        return Requirement::ok(name, format!("{} is {}", stub_cuda::VARIABLE, Path::new(&path).display()));
    }
    if stub_cuda::toolkit_is_installed() {
        return Requirement::ok(name, "that of the installed CUDA toolkit");
    }
    let found = "no CUDA toolkit found; the feature `cust` needs a libcuda";
    Requirement::missing(
        name,
        State::Optional,
        found,
        "run cargo tma setup --cust in the package to create a stub library",
    )
}

/// The package of the current folder, if it has kernels.
#[derive(Debug)]
struct Package {
    name: String,
    /// Text of `Cargo.toml`.
    manifest: String,
    /// Text of `build.rs`.
    script: String,
}

impl Package {
    fn here() -> Option<Self> {
        let mut locate = Command::new("cargo");
        let manifest = process::probe(locate.args(["locate-project", "--message-format", "plain"]))?;
        let package = package::find(None).ok()?;
        let manifest = std::fs::read_to_string(manifest).ok().filter(|text| text.contains("tma-runtime"))?;
        let script = std::fs::read_to_string(package.folder.join("build.rs")).unwrap_or_default();
        Some(Self { name: package.name, manifest, script })
    }

    /// Checks whether the package is set up for kernels.
    fn compiles_kernels(&self) -> Requirement {
        let name = "this package";
        if self.script.contains("tma_codegen") && self.manifest.contains("tma-codegen") {
            return Requirement::ok(name, format!("{} compiles its kernels", self.name));
        }
        let found = format!("{} has no build script that compiles kernels", self.name);
        let advice = "put `fn main() { tma_codegen::build() }` into `build.rs`, and add `tma-codegen` to \
                      `[build-dependencies]` in `Cargo.toml`";
        Requirement::missing(name, State::Missing, &found, advice)
    }

    /// Returns whether the manifest names cust, as a dependency or as a feature.
    fn uses_cust(&self) -> bool {
        let is_named = |line: &str| {
            ["cust =", "cust=", "cust."].iter().any(|start| line.starts_with(start))
                || line.contains("\"cust\"")
                || line.contains("/cust\"")
        };
        self.manifest.lines().filter(|line| !line.starts_with('#')).any(is_named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_versions_of_rust_are_detected() {
        assert!(is_recent(&format!("rustc {RUST}.0 (59807616e 2026-04-14)")));
        assert!(is_recent("rustc 2.0.0-nightly"));
        assert!(!is_recent("rustc 1.80.1 (3f5fd8dd4 2024-08-06)"));
        assert!(!is_recent("cargo"));
    }

    #[test]
    fn hopper_is_recognised() {
        assert!(is_hopper("NVIDIA H200, 9.0, 580.65.06"));
        assert!(!is_hopper("NVIDIA B200, 10.0, 580.65.06"));
        assert!(!is_hopper("No devices were found"));
    }

    #[test]
    fn only_packages_that_use_cust_need_a_libcuda() {
        let uses_cust = |manifest: &str| {
            let (name, script) = (String::new(), String::new());
            Package { name, manifest: manifest.to_owned(), script }.uses_cust()
        };
        assert!(uses_cust("[features]\ngpu = [\"tma-runtime/cust\"]\n"));
        assert!(uses_cust("tma-runtime = { version = \"0.1\", features = [\"cuda\", \"cust\"] }\n"));
        assert!(uses_cust("[dependencies]\ncust = \"0.3\"\n"));
        assert!(!uses_cust("# Not cust.\n[features]\ncuda = [\"tma-runtime/cuda\"]\n"));
    }

    #[test]
    fn only_missing_requirements_fail() {
        let optional = Requirement::missing("ptxas", State::Optional, "there is none", "cargo tma setup");
        let output = report(&[Requirement::ok("Rust", "1.95"), optional]);
        assert!(output.is_clean && output.text.contains("-> cargo tma setup"), "{}", output.text);
        let missing = Requirement::missing(
            "LLVM 22",
            State::Missing,
            "TMA0903: it is not here",
            "apt-get install libllvm22",
        );
        let output = report(&[missing]);
        assert!(!output.is_clean && output.text.contains("-> apt-get install libllvm22"), "{}", output.text);
        assert_eq!(output.json[0]["state"], "missing");
    }
}
