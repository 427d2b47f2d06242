//! The code map of docs/ARCHITECTURE.md matches the tree.

use tma_tests_repository::{File, expect_none, files};

use crate::{planted, sources};

const PAGE: &str = "docs/ARCHITECTURE.md";

#[test]
fn the_code_map_names_every_file_and_no_other() {
    let files = files();
    assert!(sections(&files).len() >= 4, "the packages' maps were not found");
    expect_none(mistakes(&files));
}

#[test]
fn mistakes_of_the_code_map_are_found() {
    let page = "# A\n### `codegen/back`\n| files | do |\n| --- | --- |\n| `parse/a.rs`, `gone.rs` | `b.rs` |\n\
        | `lower/` | `c` |\n\n| other | table |\n| `x.rs` | y |\n### `tests`\n| `z.rs` | |\n";
    let paths = ["lib.rs", "parse/a.rs", "parse/b.rs", "lower/x.rs", "lower/y/z.rs"];
    let mut files: Vec<_> =
        paths.iter().map(|path| planted(&format!("codegen/back/src/{path}"), "")).collect();
    files.push(planted(PAGE, page));
    let wanted = ["there is no codegen/back/src/gone.rs", "codegen/back/src/parse/b.rs is in no row"];
    assert_eq!(mistakes(&files), wanted);
}

/// Returns the sections with a code map: the package, and the paths in its rows.
fn sections(files: &[File]) -> Vec<(String, Vec<String>)> {
    let page = files.iter().find(|file| file.path == PAGE);
    let sections = page.into_iter().flat_map(|page| page.text.split("\n### `").skip(1));
    let sections = sections.filter_map(|section| {
        let (package, rest) = section.split_once('`')?;
        let (_, table) = rest.split_once("\n| files |")?;
        Some((package.to_owned(), paths(table)))
    });
    sections.collect()
}

/// Returns the paths in the first column of a table.
fn paths(table: &str) -> Vec<String> {
    let rows = table.lines().skip(1).take_while(|line| line.starts_with('|'));
    let cells = rows.filter_map(|row| row.split('|').nth(1));
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

fn mistakes(files: &[File]) -> Vec<String> {
    let mut found = vec![];
    for (package, paths) in sections(files) {
        let root = format!("{package}/src/");
        let of_package: Vec<_> = sources(files).filter_map(|file| file.path.strip_prefix(&root)).collect();
        let covers = |path: &str, file: &str| {
            if path.ends_with('/') { file.starts_with(path) } else { file == path }
        };
        let absent = paths.iter().filter(|path| !of_package.iter().any(|file| covers(path, file)));
        found.extend(absent.map(|path| format!("there is no {root}{path}")));
        let is_root = |file: &str| matches!(file.rsplit('/').next(), Some("lib.rs" | "mod.rs" | "tests.rs"));
        let missing =
            of_package.iter().filter(|file| !is_root(file) && !paths.iter().any(|path| covers(path, file)));
        found.extend(missing.map(|file| format!("{root}{file} is in no row")));
    }
    found
}
