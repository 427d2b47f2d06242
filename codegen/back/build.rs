//! Names the state of the compiler's sources, so that no PTX of an older one is taken for its own.
//! With the feature `llvm`, links LLVM's library, or says how to install it.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// The sources of the compiler's packages, and of the rules of the hardware. From a registry, the
/// others have the version of this one.
const SOURCES: [&str; 4] = ["../../tma-model/src", "../front/src", "../protocol/src", "src"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for folder in SOURCES.into_iter().filter(|folder| Path::new(folder).exists()) {
        println!("cargo::rerun-if-changed={folder}");
    }
    println!("cargo::rustc-env=TMA_CODEGEN_SOURCES={:016x}", sources());
    #[cfg(feature = "llvm")]
    link_llvm();
}

/// The bindings do not link anything: they would want `llvm-config`, and report its absence before
/// this could.
#[cfg(feature = "llvm")]
fn link_llvm() {
    for variable in tma_setup::llvm::VARIABLES {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    let out_dir = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let linked = tma_setup::llvm::find().map_err(|missing| missing.to_string()).and_then(|path| {
        println!("cargo::rerun-if-changed={}", path.display());
        tma_setup::llvm::directives(&path, &out_dir).map_err(|error| format!("{}: {error}", path.display()))
    });
    match linked {
        Ok(directives) => directives.iter().for_each(|directive| println!("cargo::{directive}")),
        Err(why) => {
            let otherwise = "Without the feature `llvm` kernels are checked, but not compiled";
            // No exit status: cargo would print all that this script has told it.
            println!("cargo::error=TMA0903: {why} ({otherwise})");
        }
    }
}

/// A hash of all that the compiler is made of: FNV-1a, as in `src/hash.rs`.
fn sources() -> u64 {
    let mut files = vec![];
    let mut folders = SOURCES.map(PathBuf::from).to_vec();
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
