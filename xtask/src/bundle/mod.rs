//! `cargo xtask bundle`: builds the GPU tests, benchmarks and examples as programs that need
//! neither Rust nor LLVM, but only the GPU's driver and a C library at least as recent as this
//! machine's.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use tma_setup::process;

use crate::{
    setup::{self, Tools},
    workspace,
};

/// The script that runs the bundle and prints a summary.
const SCRIPT: &str = include_str!("run.sh");

/// The test packages in the bundle, with the feature that each is built with and its programs,
/// which `run.sh` names too. Some only call the driver. The others also exchange memory with cust.
const TEST_PROGRAMS: [(&str, &str, &[&str]); 2] = [
    (
        "tma-tests",
        "cust",
        &["tma-gpu-tests", "tma-gpu-mutants", "tma-gpu-bench", "tma-team-bench", "tma-team-gemm-bench"],
    ),
    ("tma-conformance", "cuda", &["tma-gpu-products"]),
];

/// Builds the programs into `target/bundle`.
pub(crate) fn run() -> Result<()> {
    let tools = setup::run()?;
    let metadata = workspace::metadata(true)?;
    let examples = binaries(workspace::package(&metadata, "tma-examples")?);
    for (package, feature, programs) in TEST_PROGRAMS {
        build(&tools, package, feature, programs)?;
    }
    build(&tools, "tma-examples", "cuda", &examples)?;

    let built =
        Path::new(metadata["target_directory"].as_str().context("cargo metadata has no target directory")?);
    // The bundle is built elsewhere and then renamed, so that `target/bundle` is always complete
    // and from a single build.
    let finished = workspace::target().join("bundle");
    let bundle = workspace::target().join("bundle.new");
    process::fresh_folder(&bundle)?;
    for program in TEST_PROGRAMS.iter().flat_map(|(_, _, programs)| *programs) {
        add(&built.join("release").join(program), &bundle)?;
    }
    let examples_folder = bundle.join("examples");
    process::fresh_folder(&examples_folder)?;
    for program in examples {
        add(&built.join("release").join(program), &examples_folder)?;
    }
    let script = bundle.join("run.sh");
    fs::write(&script, SCRIPT).with_context(|| format!("cannot write {}", script.display()))?;
    process::make_executable(&script)?;
    process::fresh_folder(&finished)?;
    fs::rename(&bundle, &finished).with_context(|| format!("cannot create {}", finished.display()))?;
    println!("The bundle is in {}: copy it to a machine with a GPU and run run.sh", finished.display());
    Ok(())
}

/// Returns the names of a package's binaries.
fn binaries(package: &Value) -> Vec<&str> {
    let targets = package["targets"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_binary = |target: &&Value| {
        target["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "bin"))
    };
    targets.iter().filter(is_binary).filter_map(|target| target["name"].as_str()).collect()
}

fn build(tools: &Tools, package: &str, feature: &str, programs: &[&str]) -> Result<()> {
    let mut command = tools.cargo();
    command.args(["build", "--release", "--features", feature, "-p", package]);
    process::run(command.args(programs.iter().flat_map(|program| ["--bin", program])))
}

/// Copies a program without its symbols into the folder `to`, if it can run on other machines.
fn add(program: &Path, to: &Path) -> Result<()> {
    let name = program.file_name().context("the path of the program has no file name")?;
    let copy: PathBuf = to.join(name);
    process::run(Command::new("strip").arg("-o").arg(&copy).arg(program))?;
    let libraries = process::output(Command::new("readelf").args(["--dynamic", "--wide"]).arg(&copy))?;
    if let Some(line) = libraries.lines().find(|line| line.contains("NEEDED") && line.contains("libLLVM")) {
        bail!(
            "{} links LLVM, so it would not run where LLVM is not installed: {}",
            program.display(),
            line.trim()
        );
    }
    println!("{}", name.to_string_lossy());
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{fs, path::PathBuf, process::Command};

    use super::SCRIPT;
    use tma_setup::process;

    use crate::workspace;

    /// Creates a bundle that contains shell scripts, given as name and body, instead of the
    /// programs.
    fn bundle(name: &str, programs: &[(&str, &str)]) -> PathBuf {
        let folder = workspace::target().join("tools").join(name);
        process::fresh_folder(&folder.join("examples")).unwrap();
        let scripts = programs.iter().map(|(program, body)| (*program, format!("#!/bin/sh\n{body}\n")));
        for (program, text) in scripts.chain([("run.sh", SCRIPT.to_owned())]) {
            fs::write(folder.join(program), text).unwrap();
            process::make_executable(&folder.join(program)).unwrap();
        }
        folder
    }

    /// Returns the exit status of `run.sh` and its last line.
    fn run(folder: &PathBuf, arguments: &[&str]) -> (Option<i32>, String) {
        let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
        let output = Command::new(folder.join("run.sh")).args(arguments).env("PATH", path).output().unwrap();
        fs::remove_dir_all(folder).unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        (output.status.code(), text.lines().last().unwrap_or_default().to_owned())
    }

    #[test]
    fn the_parts_are_summed() {
        let folder = bundle(
            "bundle-passing",
            &[
                ("tma-gpu-tests", "echo '80 passed, 0 failed'"),
                ("tma-gpu-products", "echo '6 passed, 0 failed'"),
                ("tma-gpu-bench", r#"echo '{"name": "copy"}'"#),
                ("examples/tma_copy", "echo equal"),
            ],
        );
        assert_eq!(run(&folder, &[]), (Some(0), "88 passed, 0 failed".to_owned()));
    }

    #[test]
    fn abnormal_ends_are_failures() {
        let folder = bundle(
            "bundle-failing",
            &[
                ("tma-gpu-tests", "echo '78 passed, 2 failed'; exit 1"),
                ("tma-gpu-products", "true"),
                ("tma-gpu-bench", "exit 1"),
                ("examples/tma_copy", "echo '3 passed, 0 failed'; kill -9 $$"),
            ],
        );
        assert_eq!(run(&folder, &[]), (Some(1), "82 passed, 4 failed".to_owned()));
    }

    #[test]
    fn each_sanitizer_counts_as_one() {
        // Stands in for the sanitizer, which is called with
        // `--tool TOOL --error-exitcode 1 PROGRAM --quick`.
        let sanitizer = r#"test "$2 $6" = "memcheck --quick" -o "$2 $6" = "initcheck --quick""#;
        let folder = bundle("bundle-sanitized", &[("compute-sanitizer", sanitizer)]);
        assert_eq!(run(&folder, &["--sanitize"]), (Some(1), "2 passed, 1 failed".to_owned()));
    }
}
