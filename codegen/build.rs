//! With the feature `llvm`, says what to install before the LLVM bindings fail for want of it.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The variable by which the LLVM bindings are told where LLVM 22 is.
const PREFIX: &str = "LLVM_SYS_221_PREFIX";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={PREFIX}");
    if env::var_os("CARGO_FEATURE_LLVM").is_some() && !candidates().iter().any(|config| is_llvm_22(config)) {
        println!(
            "cargo::error=TMA0903: LLVM 22 is not here. On Debian and Ubuntu: `apt-get install llvm-22-dev \
             libpolly-22-dev`; elsewhere install LLVM 22 and set {PREFIX} to its folder. Without the feature `llvm` \
             kernels are checked, but not compiled"
        );
        std::process::exit(1);
    }
}

/// Where the LLVM bindings look for `llvm-config`.
fn candidates() -> Vec<PathBuf> {
    match env::var_os(PREFIX) {
        Some(prefix) => vec![Path::new(&prefix).join("bin/llvm-config")],
        None => ["llvm-config", "llvm-config-22", "llvm-config22", "llvm22-config"].map(PathBuf::from).into(),
    }
}

fn is_llvm_22(config: &Path) -> bool {
    let output = Command::new(config).arg("--version").output();
    output.is_ok_and(|output| output.status.success() && output.stdout.starts_with(b"22."))
}
