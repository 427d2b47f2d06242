//! What the build script says where there is no LLVM.

use std::path::Path;
use std::process::Command;

/// Compiles `build.rs` and runs it, with the feature `llvm` and nothing else in its environment.
fn build_script(name: &str, environment: &[(&str, &str)]) -> (bool, String) {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut compile = Command::new(rustc);
    compile.args(["--edition", "2024", "-o"]).arg(&program).arg(package.join("build.rs"));
    assert!(compile.status().is_ok_and(|status| status.success()), "build.rs does not compile");

    let mut run = Command::new(program);
    run.current_dir(package).env_clear().env("PATH", "").env("CARGO_FEATURE_LLVM", "1");
    let output = run.envs(environment.iter().copied()).output().expect("the build script starts");
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn tma0903_names_the_packages_and_the_variable() {
    let (succeeded, text) = build_script("nowhere", &[]);
    assert!(!succeeded);
    for word in ["cargo::error=TMA0903: ", "llvm-22-dev", "libpolly-22-dev", "LLVM_SYS_221_PREFIX"] {
        assert!(text.contains(word), "no {word:?} in: {text}");
    }
}

#[test]
fn tma0903_is_also_for_a_folder_without_llvm() {
    let (succeeded, text) = build_script("elsewhere", &[("LLVM_SYS_221_PREFIX", "/nonexistent")]);
    assert!(!succeeded && text.contains("TMA0903"), "{text}");
}
