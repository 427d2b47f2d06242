//! Packages outside of the workspace, like those of users.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Returns the workspace's folder.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Creates the folder of a package that depends on the runtime, without sources. The package has
/// the name of its folder.
pub(crate) fn package(folder: &str, more: &str) -> PathBuf {
    let name = folder.rsplit('/').next().unwrap_or(folder);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\ntma-runtime = {{ path = {:?} }}\n{more}",
        root().join("tma-runtime")
    );
    fs::create_dir_all(folder.join("src")).unwrap();
    fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    folder
}

/// Creates a [`package`] with a build script that checks kernels. It does not need LLVM, and writes
/// files without code.
pub(crate) fn package_with_build_script(folder: &str) -> PathBuf {
    let build = format!(
        "[build-dependencies]\ntma-codegen = {{ path = {:?}, default-features = false }}\n",
        root().join("codegen/back")
    );
    let folder = package(folder, &build);
    fs::write(folder.join("build.rs"), "fn main() { tma_codegen::build() }\n").unwrap();
    folder
}

/// Runs `cargo check` on a package and its targets. All packages share a folder for their
/// dependencies. If these tests compare kept PTX (`TMA_KEEP`), the package does not: it may be
/// built from it.
pub(crate) fn check(folder: &Path, targets: &[&str]) -> Output {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["check", "--offline", "--target-dir"]);
    cargo.arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages")).args(targets).current_dir(folder);
    cargo.env_remove("OUT_DIR").env_remove("TMA_KEEP").output().unwrap()
}
