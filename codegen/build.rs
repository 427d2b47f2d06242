//! Names the state of the compiler's sources, so that no PTX of an older one is taken for its own.
//! With the feature `llvm`, says what to install before the LLVM bindings fail for want of it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The variable by which the LLVM bindings are told where LLVM 22 is.
const PREFIX: &str = "LLVM_SYS_221_PREFIX";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rustc-env=TMA_CODEGEN_SOURCES={:016x}", sources());
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

/// A hash of all that the compiler is made of: FNV-1a, as in `src/hash.rs`.
fn sources() -> u64 {
    let mut files = vec![];
    let mut folders = vec![PathBuf::from("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    let bytes = files.into_iter().flat_map(|file| fs::read(file).unwrap_or_default());
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    version.into_bytes().into_iter().chain(bytes).fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
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
