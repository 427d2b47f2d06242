//! cargo-fuzz, which builds and runs the simulator's fuzz targets, and its requirements. Only
//! `cargo xtask fuzz` needs it.
//!
//! Cargo verifies downloads with the registry's checksums, and with `--locked` it uses the versions
//! of dependencies that the release was made with.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use tma_setup::{
    packages::{self, Need},
    process,
};

use crate::workspace;

/// The version to install if there is none. Any later version works too.
const VERSION: &str = "0.13.2";

const CXX_COMPILER: Need = Need {
    purpose: "a C++ compiler, to build libFuzzer",
    packages: &["g++"],
    by_hand: "Install g++ or clang++, and set CXX if `c++` is not its name.",
    is_met: has_cxx_compiler,
};

fn has_cxx_compiler() -> bool {
    let compiler = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
    process::probe(Command::new(compiler).arg("--version")).is_some()
}

/// Returns the path of the program: the one on PATH, the one that an earlier run installed, or else
/// a new build.
pub(crate) fn provide() -> Result<PathBuf> {
    packages::provide(&[&CXX_COMPILER])?;
    let tools = workspace::target().join("tools");
    let own = tools.join("bin/cargo-fuzz");
    let is_usable = |path: &Path| process::probe(Command::new(path).args(["fuzz", "--version"])).is_some();
    let found = [Path::new("cargo-fuzz"), &own].into_iter().find(|path| is_usable(path));
    if let Some(path) = found {
        return Ok(path.to_owned());
    }
    let mut install = workspace::cargo();
    install.args(["install", "cargo-fuzz", "--locked", "--version", VERSION, "--root"]);
    process::run(install.arg(&tools)).context("cannot install cargo-fuzz")?;
    Ok(own)
}
