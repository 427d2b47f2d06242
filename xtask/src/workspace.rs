//! Paths of the workspace.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use serde_json::Value;

use tma_setup::process;

/// Returns the folder of the workspace's `Cargo.toml`.
pub(crate) fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package)
}

/// Returns the folder for the output of tasks. `CARGO_TARGET_DIR` does not move it, because tests
/// look for tools here.
pub(crate) fn target() -> PathBuf {
    root().join("target")
}

/// Returns a call of the cargo that runs this program, in the workspace's root.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Returns `cargo metadata` of the workspace and, unless `members_only`, of all its dependencies.
pub(crate) fn metadata(members_only: bool) -> Result<Value> {
    let mut command = cargo();
    command.args(["metadata", "--format-version", "1", "--all-features"]);
    if members_only {
        command.arg("--no-deps");
    }
    serde_json::from_str(&process::output(&mut command)?).context("cannot parse the output of cargo metadata")
}

/// Returns the entry of package `name` in `metadata`.
pub(crate) fn package<'a>(metadata: &'a Value, name: &str) -> Result<&'a Value> {
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    packages
        .iter()
        .find(|package| package["name"] == name)
        .with_context(|| format!("no package named {name}"))
}
