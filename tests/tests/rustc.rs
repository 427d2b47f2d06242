//! What rustc says of kernels and of their launches.
//!
//! The kernels in `ui` are compiled by this package's build script, as all under `tests` are.

mod packages;

use std::fmt::Write as _;
use std::fs;

use packages::{check, package, package_with_build_script, root};
use tma_tests::sources::{BOOK, code_blocks};

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
    let folder = package("no-build-script", "");
    fs::copy(root().join("tests/tests/ui/accepted/correct.rs"), folder.join("src/main.rs")).unwrap();
    let output = check(&folder, &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "it was accepted");
    for wanted in ["TMA0901: there is no PTX for `scale`", "src/main.rs:6:4", "tma_codegen::build()"] {
        assert!(said.contains(wanted), "{wanted:?} was not said, but:\n{said}");
    }
}

/// Each block of the book stands in a module of its own, under the line that the page says to begin with.
#[test]
fn the_kernels_of_the_book_pass_rustc_as_they_stand() {
    let folder = package_with_build_script("book");
    let mut text = "//! The book.\n#![allow(dead_code)]\n".to_owned();
    for name in BOOK {
        let page = fs::read_to_string(root().join(name)).unwrap();
        let kernels: Vec<_> =
            code_blocks(&page).into_iter().filter(|block| block.info == "rust,kernel").collect();
        assert!(!kernels.is_empty(), "{name} has no kernel");
        let page = name.trim_start_matches("docs/").trim_end_matches(".md");
        for block in kernels {
            let (line, code) = (block.line, &block.code);
            // A block that is a module by itself does not see what is imported around it.
            writeln!(
                text,
                "mod {page}_{line} {{\n#[allow(unused_imports)]\nuse tma_runtime::prelude::*;\n{code}\n}}"
            )
            .unwrap();
        }
    }
    fs::write(folder.join("src/lib.rs"), text).unwrap();
    let output = check(&folder, &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
