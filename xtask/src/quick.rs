//! `cargo xtask test --quick`: the checks that a change calls for. They take seconds to a few
//! minutes in a built tree; CI runs all.
//!
//! Every run checks the format and the rules of the repository's text, and compiles the published
//! packages without LLVM. [`TESTS`] says which tests a changed file calls for, and [`PTX`] which
//! changes call for a comparison of the PTX that `tma-kernels` keeps.

use std::collections::BTreeSet;

use anyhow::Result;
use tma_setup::process;

use crate::{
    apart, keep,
    setup::Tools,
    test::{PUBLISHED, QUICKLY, SIMULATOR_COMMAND},
    workspace,
};

/// Tests of a folder or file: what `cargo test` is given.
type Arguments = &'static [&'static str];

/// The tests that a change below each path calls for. The longest path that matches decides.
///
/// The front end and the checker are tested without LLVM: with it the build scripts of all kernels
/// would run again.
const TESTS: &[(&str, Arguments)] = &[
    ("cargo-tma/", &["-p", "cargo-tma"]),
    ("codegen/", WITHOUT_LLVM),
    ("codegen/back/src/emit/", BACK_END),
    ("codegen/back/src/lower/", BACK_END),
    ("codegen/back/tests/flights/", &["-p", "tma-codegen", "--test", "flights"]),
    ("codegen/back/tests/mma_ptx.rs", BACK_END),
    ("codegen/back/tests/tiles_ptx.rs", BACK_END),
    ("conformance/", &["-p", "tma-conformance"]),
    ("docs/", PAGES),
    ("docs/errors/", &["-p", "tma-codegen", "--no-default-features", "--test", "error_pages"]),
    ("examples/", &["-p", "tma-tests", "--test", "simulator"]),
    ("ptx-probe/", &["-p", "ptx-probe", "-p", "tma-tests", "--test", "traces"]),
    ("ptx-sim/", &["-p", "ptx-sim", "--features", SIMULATOR_COMMAND]),
    ("README.md", PAGES),
    ("tests/golden/", &["-p", "tma-golden"]),
    ("tests/rustc/", &["-p", "tma-tests-rustc"]),
    ("tests/src/", &["-p", "tma-tests", "--lib", "--test", "simulator", "--test", "ptx"]),
    ("tma-kernels/", &["-p", "tma-kernels", "--lib", "--test", "picked", "--test", "special"]),
    ("tma-kernels/src/attention/", &["-p", "tma-kernels", "--test", "attention"]),
    (
        "tma-kernels/src/cached/",
        &["-p", "tma-kernels", "--test", "cached", "--test", "latent", "--test", "append"],
    ),
    ("tma-kernels/src/conv/", &["-p", "tma-kernels", "--test", "conv"]),
    ("tma-kernels/src/gemm/grouped/", &["-p", "tma-kernels", "--test", "grouped"]),
    ("tma-kernels/src/gemm/scaled/", &["-p", "tma-kernels", "--test", "scaled"]),
    ("tma-kernels/src/model/", &["-p", "tma-kernels", "--test", "model"]),
    ("tma-kernels/python/", &["-p", "tma-kernels-python"]),
    ("tma-macros/", &["-p", "tma-tests-rustc"]),
    ("tma-model/", &["-p", "tma-model"]),
    ("tma-python/", &["-p", "tma-python"]),
    ("tma-runtime/", &["-p", "tma-runtime", "--lib", "--tests"]),
    ("tma-setup/", &["-p", "tma-setup"]),
    ("xtask/", &["-p", "xtask"]),
];

const WITHOUT_LLVM: Arguments =
    &["-p", "tma-front", "-p", "tma-protocol", "-p", "tma-codegen", "--no-default-features"];
const BACK_END: Arguments =
    &["-p", "tma-codegen", "--lib", "--test", "mma_ptx", "--test", "tiles_ptx", "--test", "no_llvm"];
const PAGES: Arguments = &["-p", "tma-tests", "--test", "book", "--test", "words"];

/// The paths of the PTX of `tma-kernels`, and of what it is made from.
const PTX: [&str; 4] = ["codegen/", "tma-kernels/src/", "tma-kernels/tma-ptx/", "tma-model/"];

/// Packages whose integration tests are chosen by name: a changed test is run, and no other.
const BY_NAME: [(&str, &str); 2] = [("tests/tests/", "tma-tests"), ("tma-kernels/tests/", "tma-kernels")];

/// Returns the steps for what has changed since `base`, a revision that git knows.
///
/// # Errors
/// If git does not know the revision.
pub(crate) fn steps(tools: &Tools, base: &str) -> Result<Vec<(String, std::process::Command)>> {
    let changed = changed(base)?;
    println!("{} files have changed since {base}", changed.len());
    let step = |name: &str, arguments: Vec<&str>| {
        let mut command = tools.cargo();
        command.args(arguments);
        (name.to_owned(), command)
    };
    let packages = PUBLISHED.iter().flat_map(|package| ["-p", package]);
    let check = ["check", "--no-default-features"].into_iter().chain(QUICKLY);
    let (name, mut compile) = step("compilation without LLVM", check.chain(packages).collect());
    // Changed kernels are checked, whatever PTX is kept.
    compile.env("TMA_PTX", "off");
    let mut steps = vec![
        step("format", vec!["fmt", "--all", "--check"]),
        step("the repository's text", vec!["test", "-q", "-p", "tma-tests-repository"]),
        (name, compile),
    ];
    for arguments in tests(&changed) {
        let name = arguments.join(" ");
        steps.push(step(
            &name,
            ["test", "-q"].into_iter().chain(arguments.iter().map(String::as_str)).collect(),
        ));
    }
    // Before the models, which run it.
    if changed.iter().any(|path| PTX.iter().any(|start| path.starts_with(start))) {
        steps.push(("kept PTX".to_owned(), keep::check(tools)));
    }
    if changed.iter().any(|path| path.starts_with("models/")) {
        steps.push(apart::format(tools, apart::MODELS));
        steps.extend(apart::steps(tools, apart::MODELS));
    }
    Ok(steps)
}

/// Returns the files that differ from `base`, and those that git does not know yet.
fn changed(base: &str) -> Result<Vec<String>> {
    let list = |arguments: &[&str]| {
        let mut git = std::process::Command::new("git");
        process::output(git.current_dir(workspace::root()).args(arguments))
    };
    let mut names = list(&["diff", "--name-only", base])?;
    names += &list(&["ls-files", "--others", "--exclude-standard"])?;
    Ok(names.lines().map(str::to_owned).collect())
}

/// Returns the arguments of the calls of `cargo test` that the changed files call for.
fn tests(changed: &[String]) -> BTreeSet<Vec<String>> {
    changed.iter().filter_map(|path| by_name(path).or_else(|| by_folder(path))).collect()
}

fn by_folder(path: &str) -> Option<Vec<String>> {
    let matching = TESTS.iter().filter(|(start, _)| path.starts_with(start));
    let (_, arguments) = matching.max_by_key(|(start, _)| start.len())?;
    Some(arguments.iter().map(|&argument| argument.to_owned()).collect())
}

fn by_name(path: &str) -> Option<Vec<String>> {
    let (package, rest) =
        BY_NAME.iter().find_map(|(folder, package)| Some((package, path.strip_prefix(folder)?)))?;
    let name = rest.split(['/', '.']).next().filter(|name| !name.is_empty())?;
    let test = workspace::root().join(path.strip_suffix(rest)?).join(name);
    // Folders of data and of modules that tests share are no tests.
    let is_test = test.with_extension("rs").exists() || test.join("main.rs").exists();
    is_test.then(|| ["-p", package, "--test", name].map(str::to_owned).to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(paths: &[&str]) -> Vec<String> {
        let paths: Vec<_> = paths.iter().map(|&path| path.to_owned()).collect();
        tests(&paths).into_iter().map(|arguments| arguments.join(" ")).collect()
    }

    #[test]
    fn the_longest_path_decides() {
        assert_eq!(of(&["codegen/back/src/lower/mod.rs"]), [BACK_END.join(" ")]);
        assert_eq!(
            of(&["codegen/front/src/check/mod.rs", "codegen/back/src/lib.rs"]),
            [WITHOUT_LLVM.join(" ")]
        );
    }

    #[test]
    fn a_changed_test_is_run_by_name() {
        assert_eq!(of(&["tests/tests/axioms/main.rs"]), ["-p tma-tests --test axioms"]);
        assert_eq!(of(&["tma-kernels/tests/conv.rs"]), ["-p tma-kernels --test conv"]);
    }

    #[test]
    fn every_path_exists() {
        for path in TESTS.iter().map(|(path, _)| *path).chain(PTX) {
            assert!(workspace::root().join(path).exists(), "{path}");
        }
    }

    #[test]
    fn every_package_has_tests() {
        let metadata = workspace::metadata(true).expect("cargo runs");
        let packages = metadata["packages"].as_array().expect("a workspace has packages");
        let root = workspace::root().to_str().expect("a path in Unicode");
        for package in packages {
            let manifest = package["manifest_path"].as_str().expect("a package has a manifest");
            let folder = manifest.strip_prefix(root).expect("a path below the root");
            let source = folder[1..].replace("Cargo.toml", "src/lib.rs");
            // The rules of the repository's text run each time.
            assert!(source.starts_with("tests/repository") || by_folder(&source).is_some(), "{source}");
        }
    }
}
