//! The complete text of errors and warnings: with their source, all at once, each once, in the
//! words of the language. Each file of `diagnostics` is a case, and so is each page of
//! `docs/errors`, with the kernels that it shows as refused or warned of. The `.stderr` of a case
//! has its diagnostics.
//!
//! `BLESS=1 cargo test -p tma-codegen --test diagnostics` accepts new texts.

mod pages;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use pages::{By, Outcome, examples, page};
use tma_codegen::Target;
use tma_codegen::diag::Code;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnostics")
}

/// Returns the names, without extension, of the files in a folder that have this extension.
fn names(folder: &Path, extension: &str) -> BTreeSet<String> {
    let paths = fs::read_dir(folder).expect("the folder is there").map(|entry| entry.expect("a file").path());
    let with_extension = paths.filter(|path| path.extension().is_some_and(|found| found == extension));
    let name = |path: PathBuf| path.file_stem().expect("it has a name").to_string_lossy().into_owned();
    with_extension.map(name).collect()
}

#[track_caller]
fn rendered(path: &str, source: &str, by: By) -> String {
    let rendered = pages::judge(path, source, by).map_or_else(|no_rust| no_rust, |judged| judged.rendered);
    assert!(!rendered.is_empty(), "{path} is accepted without a warning:\n{source}");
    rendered.trim_end().to_owned() + "\n"
}

/// Returns every case: the path of its diagnostics in the folder, and their text.
fn cases() -> Vec<(String, String)> {
    let files = names(&folder(), "rs").into_iter().map(|name| {
        let path = format!("{name}.rs");
        let source = fs::read_to_string(folder().join(&path)).expect("it can be read");
        // The cases about the protocol are whole kernels.
        let by = if source.contains("//~ TMA07") { By::Protocol } else { By::Statements };
        (name, rendered(&path, &source, by))
    });
    let pages = Code::ALL.iter().filter_map(|&code| {
        let page = page(code)?;
        let path = format!("{code}.md");
        let wrong = examples(&page).into_iter().filter(|example| example.outcome != Outcome::Accepted);
        let texts: Vec<_> = wrong.map(|example| rendered(&path, &example.source, example.by())).collect();
        (!texts.is_empty()).then(|| (format!("pages/{code}"), texts.join("\n")))
    });
    files.chain(pages).collect()
}

#[test]
fn every_error_and_warning_reads_as_it_did() {
    let texts = cases().into_iter();
    tma_golden::assert_all(texts.map(|(name, found)| (folder().join(format!("{name}.stderr")), found)));
}

#[test]
fn no_text_is_left_without_its_case() {
    let cases: BTreeSet<_> = cases().into_iter().map(|(name, _)| name).collect();
    let of_pages = names(&folder().join("pages"), "stderr").into_iter().map(|name| format!("pages/{name}"));
    let texts = names(&folder(), "stderr").into_iter().chain(of_pages);
    let alone: Vec<_> = texts.filter(|name| !cases.contains(name)).collect();
    assert!(alone.is_empty(), "texts of nothing: {alone:?}");
}

/// Messages use the words of the language, and not those of the compiler.
#[test]
fn no_message_names_a_type_of_the_compiler() {
    let inner = [
        "Kind::", "ExprKind", "StmtKind", "Infer(", "Some(", "None", "TileType", "Scalar", "Type::",
        "LocalId", "Error)",
    ];
    let cases = cases();
    assert!(cases.len() > 60, "only {} texts were looked at", cases.len());
    for (name, text) in cases {
        let starts = ["error", "warning", "= help", "= note"];
        let is_message = |line: &&str| starts.iter().any(|start| line.trim_start().starts_with(start));
        for line in text.lines().filter(is_message) {
            // Patterns that a user may write.
            let line = line.replace("`Some(name)`", "").replace("`None`", "");
            assert!(inner.iter().all(|word| !line.contains(word)), "{name}: {line}");
        }
    }
}

/// The error of a macro has only one location.
#[test]
fn in_a_text_the_second_place_is_a_line() {
    let source = "#[tma_kernel(threads = 32,\n    threads = 64)]\nfn k() {}\n";
    let judged = pages::judge("k.rs", source, By::Statements).expect("it is Rust");
    assert_eq!(
        judged.diagnostics.errors[0].text(),
        "TMA0006: `threads` is specified twice\nnote: first specified here: line 1\nhelp: remove one of them"
    );
}

#[test]
fn an_instruction_is_missed_only_where_the_target_lacks_it() {
    let page = page(Code::TargetFeature).expect("it has a page");
    let source = &examples(&page)[0].source;
    let errors = |by| pages::judge("k.rs", source, by).expect("it is Rust").diagnostics.errors.len();
    assert_eq!(errors(By::Target(Target::Sm90)), 1);
    for target in [Target::Sm90a, Target::Sm100a, Target::Sm120a] {
        assert_eq!(errors(By::Target(target)), 0, "{target}");
    }
    assert_eq!(errors(By::Statements), 0, "the macro knows no target");
}
