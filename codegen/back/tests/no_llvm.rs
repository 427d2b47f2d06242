//! The message of the build script without an LLVM, and the libraries that it links with one.

use std::path::{Path, PathBuf};
use std::process::Command;

fn rustc() -> Command {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--edition", "2024"]);
    rustc
}

/// Returns a folder for a test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("the folder for temporary files can be written to");
    folder
}

/// Compiles `build.rs` with its dependencies, and runs it in an otherwise empty environment.
/// Returns its output.
fn build_script(name: &str, features: &[&str], environment: &[(&str, &str)]) -> Vec<String> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let out_dir = folder(name);
    let (library, program) = (out_dir.join("libtma_setup.rlib"), out_dir.join("script"));
    let mut setup = rustc();
    setup.args(["--crate-type", "rlib", "--crate-name", "tma_setup", "-o"]).arg(&library);
    let built = setup.arg(package.join("../../tma-setup/src/lib.rs")).status();
    assert!(built.is_ok_and(|status| status.success()), "tma-setup does not compile with std alone");

    let mut script = rustc();
    script.args(features.iter().flat_map(|feature| ["--cfg".to_owned(), format!("feature=\"{feature}\"")]));
    script.arg("--extern").arg(format!("tma_setup={}", library.display())).arg("-o").arg(&program);
    let built = script.arg(package.join("build.rs")).status();
    assert!(built.is_ok_and(|status| status.success()), "build.rs does not compile");

    let mut run = Command::new(program);
    run.current_dir(package).env_clear().env("PATH", "").env("OUT_DIR", &out_dir);
    let output = run.envs(environment.iter().copied()).output().expect("the build script starts");
    assert!(output.status.success(), "cargo prints the errors alone if the script succeeds: {output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(str::to_owned).collect()
}

#[test]
fn tma0903_comes_alone_with_the_variable_and_the_command() {
    let lines = build_script("elsewhere", &["llvm"], &[("TMA_LLVM", "/nonexistent")]);
    let errors: Vec<_> = lines.iter().filter(|line| line.contains("cargo::error")).collect();
    assert_eq!(errors.len(), 1, "{lines:#?}");
    let wanted = "cargo::error=TMA0903: `TMA_LLVM` is `/nonexistent`, which has no `libLLVM";
    assert!(errors[0].starts_with(wanted), "{errors:?}");
    assert!(errors[0].contains("install it: "), "{errors:?}");
    assert!(!lines.iter().any(|line| line.contains("rustc-link")), "{lines:#?}");
}

#[test]
fn the_variable_of_the_bindings_counts_too_but_ours_goes_first() {
    let other = ("LLVM_SYS_221_PREFIX", "/nonexistent");
    let lines = build_script("bindings", &["llvm"], &[other]);
    assert!(lines.iter().any(|line| line.contains("TMA0903: `LLVM_SYS_221_PREFIX`")), "{lines:#?}");

    let library = folder("ours").join("libLLVM.so.22.1");
    std::fs::write(&library, "").expect("the folder can be written to");
    let ours = ("TMA_LLVM", library.to_str().expect("a path of text"));
    let lines = build_script("ours", &["llvm"], &[other, ours]);
    assert!(
        lines.contains(&"cargo::rustc-link-lib=dylib:+verbatim=libLLVM.so.22.1".to_owned()),
        "{lines:#?}"
    );
}

#[test]
fn without_the_feature_nothing_is_looked_for() {
    let lines = build_script("bare", &[], &[("TMA_LLVM", "/nonexistent")]);
    assert!(!lines.iter().any(|line| line.contains("LLVM")), "{lines:#?}");
}
