//! A new statement is written in few places: docs/add-an-operation.md lists the files that name all
//! statements. Everything else reads `Stmt::facts`.

use std::collections::BTreeSet;

use tma_tests_repository::{File, files};

use crate::{enums, planted, sources};

const PAGE: &str = "docs/add-an-operation.md";
const HEADING: &str = "\n## A statement, place by place\n";
const DECLARATION: &str = "codegen/front/src/ir/stmt.rs";
const NAME: &str = "StmtKind";

#[test]
fn the_book_names_the_files_that_list_all_statements() {
    let files = files();
    let found = lists(&files);
    assert!(found.len() > 1, "no list was found: {found:?}");
    assert_eq!(listed(&files), found);
}

#[test]
fn lists_of_statements_are_found_in_every_form() {
    let texts = [
        (DECLARATION, "pub enum StmtKind { Sync(Sync), SyncGrid { a: u32 } }"),
        ("codegen/back/src/a.rs", "match kind { StmtKind::SyncGrid { .. } => 1, StmtKind::Sync(_) => 2 }"),
        (
            "codegen/back/src/b.rs",
            "impl StmtKind { fn f(&self) { match self { Self::SyncGrid { .. } | Self::Sync(_) => 1 } } }",
        ),
        ("codegen/back/src/c.rs", "if let StmtKind::SyncGrid { .. } = kind {}"),
        (
            "codegen/back/src/d.rs",
            "#[cfg(test)]\nmod tests { match kind { StmtKind::SyncGrid { .. } | StmtKind::Sync(_) => 1 } }",
        ),
        (
            PAGE,
            "# A\n[x](../codegen/back/src/x.rs)\n## A statement, place by place\n| [a](../codegen/back/src/a.rs) |\n\n## B\n",
        ),
    ];
    let files = texts.map(|(path, text)| planted(path, text));
    assert_eq!(lists(&files), names(&["codegen/back/src/a.rs", "codegen/back/src/b.rs", DECLARATION]));
    assert_eq!(listed(&files), names(&["codegen/back/src/a.rs"]));
}

fn names<'f>(paths: &[&'f str]) -> BTreeSet<&'f str> {
    paths.iter().copied().collect()
}

/// Returns the files of the compiler that name every statement, and the one that declares them.
fn lists(files: &[File]) -> BTreeSet<&str> {
    let declares = files.iter().find(|file| file.path == DECLARATION);
    let kinds = declares.into_iter().flat_map(enums).find(|found| found.name == NAME);
    let variants = kinds.map(|kinds| kinds.variants).unwrap_or_default();
    let compiler = sources(files).filter(|file| file.path.starts_with("codegen/") && !file.is_test());
    let lists_all = |file: &&File| variants.iter().all(|variant| mentions(file.split_tests().0, variant));
    let found = compiler.filter(lists_all).map(|file| file.path.as_str());
    found.chain(declares.map(|file| file.path.as_str())).collect()
}

/// Whether a text names a variant of the enum.
fn mentions(text: &str, variant: &str) -> bool {
    let own = text.contains(&format!("impl {NAME} ")).then_some("Self");
    [NAME].into_iter().chain(own).any(|owner| {
        let name = format!("{owner}::{variant}");
        let is_end = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        text.match_indices(&name).any(|(at, _)| is_end(&text[at + name.len()..]))
    })
}

/// Returns the files of the compiler that the page's list of places links to.
fn listed(files: &[File]) -> BTreeSet<&str> {
    let page = files.iter().find(|file| file.path == PAGE);
    let section = page.and_then(|page| page.text.split_once(HEADING)).map_or("", |(_, rest)| rest);
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with('|'));
    let links = rows.flat_map(|row| row.split("](../").skip(1));
    links.filter_map(|link| link.split(')').next()).collect()
}
