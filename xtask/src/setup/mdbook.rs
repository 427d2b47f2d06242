//! mdBook, which builds the book. Only `cargo xtask book` needs it.
//!
//! Cargo verifies downloads with the registry's checksums, and with `--locked` it uses the versions
//! of dependencies that the release was made with.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use tma_setup::process;

use crate::workspace;

/// The version to install. Another release of the same series is used if it is on PATH: the
/// protocol of preprocessors and the names of pages do not change within a series.
const VERSION: &str = "0.5.4";
const SERIES: &str = "mdbook v0.5.";

/// Returns the path of the program: the one on PATH, the one that an earlier run installed, or else
/// a new build, which takes some minutes.
pub(crate) fn provide() -> Result<PathBuf> {
    let tools = workspace::target().join("tools");
    let own = tools.join("bin/mdbook");
    let is_usable = |path: &Path| {
        let version = process::probe(Command::new(path).arg("--version"));
        version.is_some_and(|version| version.starts_with(SERIES))
    };
    if let Some(path) = [Path::new("mdbook"), &own].into_iter().find(|path| is_usable(path)) {
        return Ok(path.to_owned());
    }
    let mut install = workspace::cargo();
    // Without the web server, which accounts for half of the dependencies.
    install.args(["install", "mdbook", "--locked", "--no-default-features", "--features", "search"]);
    install.args(["--version", VERSION, "--root"]).arg(&tools);
    // A book builds in seconds either way, and mdBook itself builds in half the time.
    install.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1").env("CARGO_PROFILE_RELEASE_DEBUG", "0");
    process::run(&mut install).context("cannot install mdBook")?;
    Ok(own)
}
