//! rust-analyzer, and the source of the standard library, which it needs to infer types. Only
//! `cargo xtask editor` needs them.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use tma_setup::process;

use crate::workspace;

/// The package that contains the program, and the version to install. The version dates from the
/// time of the oldest supported Rust, because the two share a protocol for macros.
const PACKAGE: &str = "ra_ap_rust-analyzer";
const VERSION: &str = "0.0.333";

/// Returns the path of the program: the one of rustup for this toolchain, the one that an earlier
/// run installed, or else a new build, which takes a quarter of an hour on two cores.
pub(crate) fn provide() -> Result<PathBuf> {
    provide_library_source()?;
    let home = workspace::target().join("tools/rust-analyzer");
    let own = home.join("bin/rust-analyzer");
    let is_usable = |path: &Path| process::probe(Command::new(path).arg("--version")).is_some();
    let found = [Path::new("rust-analyzer"), &own].into_iter().find(|path| is_usable(path));
    if let Some(path) = found {
        return Ok(path.to_owned());
    }
    let mut install = workspace::cargo();
    install.args(["install", PACKAGE, "--locked", "--version", VERSION, "--root"]).arg(&home);
    // Fast enough, and halves the build time.
    install.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1").env("CARGO_PROFILE_RELEASE_DEBUG", "0");
    process::run(&mut install).context("cannot install rust-analyzer")?;
    Ok(own)
}

fn provide_library_source() -> Result<()> {
    let sysroot = process::output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let source = Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library/core");
    if !source.is_dir() {
        process::run(Command::new("rustup").args(["component", "add", "rust-src"]))
            .context("cannot install rust-src; without rustup, copy it into the sysroot of rustc")?;
        ensure!(source.is_dir(), "{} is missing after the installation", source.display());
    }
    Ok(())
}
