//! Runs the command on new packages.

#![allow(dead_code, reason = "each test program uses its part")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// Returns an empty folder for one test.
pub(crate) fn fresh(name: &str) -> PathBuf {
    let all = Path::new(env!("CARGO_TARGET_TMPDIR"));
    compile_the_compiler_quickly(all);
    let folder = all.join("cargo-tma").join(name);
    fs::remove_dir_all(&folder).ok();
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Packages under `folder` have few kernels: an optimised compiler of kernels would take longer to
/// build than it saves. The test of the book's package does the same.
fn compile_the_compiler_quickly(folder: &Path) {
    fs::create_dir_all(folder.join(".cargo")).unwrap();
    let packages = ["tma-front", "tma-protocol", "tma-codegen"];
    let settings =
        packages.map(|package| format!("[profile.dev.package.{package}]\nopt-level = 0\n")).concat();
    fs::write(folder.join(".cargo/config.toml"), settings).unwrap();
}

/// Sets up the environment of a user's shell, but without the network and a GPU. NVIDIA's programs
/// are those that the setup has fetched.
pub(crate) fn environment(command: &mut Command, folder: &Path) {
    let tools = root().join("target/tools");
    for (variable, program) in [("TMA_PTXAS", "ptxas"), ("TMA_NVDISASM", "nvdisasm")] {
        if std::env::var_os(variable).is_none() {
            command.env(variable, tools.join(program));
        }
    }
    command.current_dir(folder).env("CARGO_NET_OFFLINE", "true").env("TMA_DEVICE", "sim");
    command.env_remove("OUT_DIR").env_remove("CARGO_MANIFEST_DIR");
    // Third-party crates are compiled once for this package and the one in the book.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("getting-started/hello-tma/target");
    command.env("CARGO_TARGET_DIR", target);
    command.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_INCREMENTAL", "0");
}

pub(crate) fn tma(folder: &Path, line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-tma"));
    command.arg("tma").args(line.split_whitespace());
    environment(&mut command, folder);
    command.output().unwrap()
}

/// Returns the output of a command that exits with `code`.
#[track_caller]
pub(crate) fn printed(folder: &Path, line: &str, code: i32) -> String {
    let output = tma(folder, line);
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    assert_eq!(output.status.code(), Some(code), "`cargo tma {line}`\n{out}\n{err}");
    if code == 2 { err } else { out }
}

#[track_caller]
pub(crate) fn has(text: &str, wanted: &[&str]) {
    for wanted in wanted {
        assert!(text.contains(wanted), "{wanted:?} is not in:\n{text}");
    }
}

/// Creates a new package. It is in this workspace's folder, but not a member of the workspace.
pub(crate) fn new_package(name: &str) -> PathBuf {
    new_package_with(name, "")
}

/// Creates a new package with options of `cargo tma new`.
pub(crate) fn new_package_with(name: &str, options: &str) -> PathBuf {
    let beside = fresh(name);
    let said = printed(&beside, &format!("new {name} {options}"), 0);
    has(&said, &["Created", name, "cargo test"]);
    let folder = beside.join(name);
    let manifest = folder.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(manifest, text + "\n[workspace]\n").unwrap();
    fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    folder
}
