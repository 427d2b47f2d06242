//! A package that saves its PTX: it is built, tested and rejected without LLVM.

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::{environment, has, new_package, printed};

/// Creates the package with LLVM as a feature, and a test that its PTX is saved. The feature is the
/// compiler's default one, so that with it the compiler is the one that other tests have built.
fn package() -> std::path::PathBuf {
    let folder = new_package("kept-tma");
    let manifest = folder.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).unwrap();
    let text = text.replace("codegen/back\" }", "codegen/back\", default-features = false }");
    fs::write(manifest, text.replace("[features]\n", "[features]\nllvm = [\"tma-codegen/default\"]\n"))
        .unwrap();
    let test = "#[test]\nfn ptx_is_kept() {\n    tma_runtime::assert_ptx_kept!();\n}\n";
    fs::write(folder.join("tests/kept.rs"), test).unwrap();
    folder
}

/// Runs the package's tests as on a machine without LLVM, and returns whether they pass, and the
/// output.
fn tests_without_llvm(folder: &Path) -> (bool, String) {
    let mut test = Command::new(env!("CARGO"));
    environment(&mut test, folder);
    let output =
        test.args(["test", "--tests", "--no-fail-fast"]).env("TMA_LLVM", "/nonexistent").output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn kept_ptx_runs_without_llvm_and_changed_kernels_are_rejected() {
    let folder = package();
    let source = folder.join("src/lib.rs");
    let text = fs::read_to_string(&source).unwrap();

    let said = printed(&folder, "ptx --keep --features llvm", 0);
    has(&said, &["Kept ", "tma-ptx: scale"]);
    printed(&folder, "ptx --check --features llvm", 0);
    let (passed, said) = tests_without_llvm(&folder);
    assert!(passed, "{said}");
    has(&said, &["scale_doubles ... ok", "ptx_is_kept ... ok"]);

    // A kernel that only moves keeps its PTX.
    fs::write(&source, text.replacen("use tma", "// A line more.\n\nuse tma", 1)).unwrap();
    let (passed, said) = tests_without_llvm(&folder);
    assert!(passed, "{said}");

    fs::write(&source, text.replacen("factor * tile", "2.0 * factor * tile", 1)).unwrap();
    let (passed, said) = tests_without_llvm(&folder);
    assert!(!passed);
    has(&said, &["TMA0905: the PTX of `scale` in `tma-ptx` is out of date", "src/lib.rs:"]);
    // The check also fails with LLVM.
    printed(&folder, "ptx --check --features llvm", 1);
    let mut test = Command::new(env!("CARGO"));
    environment(&mut test, &folder);
    let output = test.args(["test", "--features", "llvm", "--test", "kept"]).output().unwrap();
    assert!(!output.status.success());
    has(
        &String::from_utf8_lossy(&output.stdout),
        &["TMA0560: ", "does not for `scale`; run `cargo tma ptx --keep`"],
    );

    printed(&folder, "ptx --keep --features llvm", 0);
    assert_eq!(fs::read_dir(folder.join("tma-ptx")).unwrap().count(), 1, "the earlier one is removed");
    printed(&folder, "ptx --check --features llvm", 0);
    // A build that compiles nothing saves nothing.
    printed(&folder, "ptx --keep", 1);
}
