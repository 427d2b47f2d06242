//! What rustc says of kernels and of their launches.
//!
//! The kernels in `ui` are compiled by this package's build script, as all under `tests` are.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Compares with the `.stderr` beside each file. To accept a change: run with `TRYBUILD=overwrite`.
#[test]
fn mistakes_are_reported_where_they_stand() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/accepted/*.rs");
    cases.compile_fail("tests/ui/refused/*.rs");
}

/// A package that forgets its build script is told what to write.
#[test]
fn tma0901_without_a_build_script() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no_build_script");
    let manifest = format!(
        "[package]\nname = \"no-build-script\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\ntma-runtime = {{ path = {:?} }}\n",
        root.join("tma-runtime")
    );
    fs::create_dir_all(folder.join("src")).unwrap();
    fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    fs::copy(root.join("tests/tests/ui/accepted/correct.rs"), folder.join("src/main.rs")).unwrap();

    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["check", "--offline", "--target-dir", "target"]).current_dir(&folder).env_remove("OUT_DIR");
    let output = cargo.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "it was accepted");
    for wanted in ["TMA0901: there is no PTX for `scale`", "src/main.rs:6:4", "tma_codegen::build()"] {
        assert!(said.contains(wanted), "{wanted:?} was not said, but:\n{said}");
    }
}
