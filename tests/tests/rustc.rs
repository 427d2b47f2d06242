//! The errors of rustc for whole packages with kernels.

mod packages;

use std::fmt::Write as _;
use std::fs;

use packages::{check, package, package_with_build_script, root};
use tma_tests::sources::{BOOK, code_blocks};

/// A package without a build script gets an error with the lines to add.
#[test]
fn tma0901_without_a_build_script() {
    let folder = package("no-build-script", "");
    fs::copy(root().join("tests/rustc/tests/ui/accepted/correct.rs"), folder.join("src/main.rs")).unwrap();
    let output = check(&folder, &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "it was accepted");
    for wanted in ["TMA0901: no PTX for `scale`", "src/main.rs:6:4", "tma_codegen::build()"] {
        assert!(said.contains(wanted), "{wanted:?} was not said, but:\n{said}");
    }
}

/// Each block of the book is in its own module, after the line that the page says to begin
/// with.
#[test]
fn the_kernels_of_the_book_pass_rustc_as_they_stand() {
    let folder = package_with_build_script("book");
    let mut text = "//! The book.\n#![allow(dead_code)]\n".to_owned();
    for name in BOOK {
        let page = fs::read_to_string(root().join(name)).unwrap();
        let kernels: Vec<_> =
            code_blocks(&page).into_iter().filter(|block| block.info == "rust,kernel").collect();
        assert!(!kernels.is_empty(), "{name} has no kernel");
        let page = name.trim_start_matches("docs/").trim_end_matches(".md").replace(['-', '/'], "_");
        for block in kernels {
            let (line, code) = (block.line, &block.code);
            // A block that is itself a module does not see the imports around it.
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

/// Names that the expansion uses too, or that its paths begin with.
const NAMES_OF_THE_EXPANSION: [&str; 26] = [
    "SPEC",
    "launch",
    "INSTANCES",
    "on",
    "grid",
    "device",
    "args",
    "spec",
    "names",
    "function",
    "conversion",
    "same_type",
    "Is",
    "any",
    "TheKernelLanguage",
    "HERE",
    "T",
    "core",
    "std",
    "tma_runtime",
    "lang",
    "KernelSpec",
    "name",
    "main",
    "r#type",
    "r#loop",
];

/// A user may use any name anywhere: none collides with one of the expansion's.
#[test]
fn names_of_the_expansion_may_be_those_of_a_user() {
    let folder = package_with_build_script("collisions");
    let mut text = "//! Names.\n#![deny(warnings)]\n\
                    #![allow(non_snake_case, non_upper_case_globals, non_camel_case_types)]\n"
        .to_owned();
    for (i, name) in NAMES_OF_THE_EXPANSION.into_iter().enumerate() {
        writeln!(text, "pub mod name_{i} {{").unwrap();
        for (place, kernel) in places(name).into_iter().enumerate() {
            writeln!(text, "pub mod place_{place} {{ use ::tma_runtime::prelude::*;\n{kernel}\n}}").unwrap();
        }
        text.push_str("}\n");
    }
    fs::write(folder.join("src/lib.rs"), text).unwrap();
    let output = check(&folder, &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Returns kernels with `name` in each position that a user can name.
fn places(name: &str) -> Vec<String> {
    let kernel = |instances: &str, item: &str, signature: &str, value: &str| {
        format!(
            "#[tma_module] pub mod m {{ use ::tma_runtime::prelude::*; {item}\n\
             #[tma_kernel(threads = 32{instances})] pub fn {signature} {{ \
             out.set(thread_idx().x, min({value}, u32::MAX)); assert!(out.get(0) == 1); \
             out.set(1, Phase::new().parity()); }} }}"
        )
    };
    let out = "out: Global<u32>";
    vec![
        kernel("", "", &format!("k({name}: u32, {out})"), name),
        kernel("", "", &format!("k({out}, {name}: Global<u32>)"), &format!("{name}.get(0)")),
        kernel(", instances(a = <1>)", "", &format!("k<const {name}: u32>({out})"), name),
        kernel(&format!(", instances({name} = <1>, b = <2>)"), "", &format!("k<const N: u32>({out})"), "N"),
        kernel("", "", &format!("{name}({out})"), "1"),
        kernel("", &format!("const {name}: u32 = 1;"), &format!("k({out})"), name),
        kernel("", &format!("type {name} = u32;"), &format!("k(x: {name}, {out})"), "x"),
        kernel(
            "",
            &format!("#[tma_device] fn {name}(x: u32) -> u32 {{ x + 1 }}"),
            &format!("k({out})"),
            &format!("{name}(1)"),
        ),
        // In a kernel of its own, instead of one in a shared module.
        format!(
            "#[tma_kernel(threads = 32)] pub fn {name}({out}) {{ let {name} = thread_idx().x; out.set({name}, 1); }}"
        ),
    ]
}
