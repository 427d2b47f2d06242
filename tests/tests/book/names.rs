//! The words of the language that pages mention exist. Text that looks like a call in code font,
//! `name(..)`, `name::<..>` or `name!(..)`, must be a word, or a name of this project's sources.
//! The same holds for each name in the columns that translate a word of another language.

use std::collections::BTreeSet;

use tma_tests_repository::{File, expect_none, files};

use crate::pages;

/// Pages for users of another language: the second column of their tables is of this one.
const FROM_ELSEWHERE: [&str; 4] = ["docs/cuda.md", "docs/cute.md", "docs/triton.md", "docs/cubecl.md"];

/// Other names on pages: instructions, Rust's own words, options, and names that are placeholders
/// for any other.
const OTHERS: [&str; 12] = [
    "stmatrix",
    "wgmma",
    "if",
    "let",
    "Some",
    "None",
    "activation",
    "silu",
    "cfg",
    "copy_",
    "add_",
    "tiles_of_NAME",
];

/// Names that a page misspells on purpose, to show an error of the compiler.
const MISSPELT: [(&str, &str); 1] = [("docs/getting-started.md", "sett")];

/// The ways to end the name of something that is called.
const CALLS: [&str; 3] = ["(", "::<", "!("];

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the first name of a text.
fn leading(text: &str) -> &str {
    text.split(|c| !is_of_name(c)).next().unwrap_or_default()
}

/// Returns every word of the index, and every name that the sources define.
fn known(files: &[File]) -> BTreeSet<&str> {
    let index = files.iter().find(|file| file.path == "docs/words.md").expect("there is an index");
    let rows = index.text.lines().filter_map(|line| line.strip_prefix("| `"));
    let words: BTreeSet<_> = rows.map(|row| leading(row.strip_prefix("T::").unwrap_or(row))).collect();
    assert!(words.len() > 250, "only {} words were found", words.len());
    let defined = files.iter().filter(|file| file.is_rust()).flat_map(|file| defined(&file.text));
    words.into_iter().chain(defined).chain(OTHERS).collect()
}

/// Returns the names that follow `fn`, `struct` and the like.
fn defined(rust: &str) -> impl Iterator<Item = &str> {
    const KEYWORDS: [&str; 8] =
        ["fn ", "struct ", "enum ", "trait ", "type ", "const ", "mod ", "macro_rules! "];
    let after = |keyword: &'static str| rust.match_indices(keyword).map(move |(at, _)| at + keyword.len());
    KEYWORDS.into_iter().flat_map(after).map(|at| leading(&rust[at..])).filter(|name| !name.is_empty())
}

/// Returns the names in a piece of code that are called.
fn called(code: &str) -> impl Iterator<Item = &str> {
    let ends = CALLS.into_iter().flat_map(|call| code.match_indices(call).map(|(at, _)| at));
    let names = ends.map(|end| {
        let start = code[..end].rfind(|c| !is_of_name(c)).map_or(0, |at| at + 1);
        &code[start..end]
    });
    names.filter(|name| name.starts_with(|c: char| c.is_alphabetic() || c == '_'))
}

/// Returns the last name of a piece of code that is only a path: `bf16`, `tile.get`.
fn alone(code: &str) -> Option<&str> {
    let is_path = !code.is_empty() && code.split('.').all(|part| part == leading(part) && !part.is_empty());
    let name = code.rsplit('.').next().filter(|_| is_path)?;
    // Skips the indices of parts of a slot.
    name.starts_with(|c: char| c.is_alphabetic()).then_some(name)
}

/// Returns the pieces of a line in code font: every second one between backquotes.
fn code(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Returns the names in a page that are not in `known`.
fn unknown(page: &File, known: &BTreeSet<&str>) -> Vec<String> {
    let is_table = FROM_ELSEWHERE.contains(&&*page.path);
    let (mut in_fence, mut found) = (false, vec![]);
    for (line, number) in page.text.lines().zip(1..) {
        in_fence ^= line.trim_start().starts_with("```");
        if in_fence {
            continue;
        }
        let row = line.strip_prefix("| ").filter(|_| is_table);
        let ours = row.map_or(line, |row| row.split(" | ").nth(1).unwrap_or_default());
        let names = code(ours).flat_map(|code| called(code).chain(alone(code).filter(|_| row.is_some())));
        let wrong = names.filter(|name| !known.contains(name) && !MISSPELT.contains(&(&page.path, name)));
        found.extend(wrong.map(|name| format!("{}:{number}: nothing is called `{name}`", page.path)));
    }
    found
}

#[test]
fn words_that_pages_name_exist() {
    let files = files();
    let known = known(&files);
    expect_none(pages(&files).flat_map(|page| unknown(page, &known)));
}

#[test]
fn words_that_do_not_exist_are_found() {
    let known = BTreeSet::from(["get", "bf16", "shared"]);
    let page = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
    let prose = page("docs/a.md", "`gett(i)`, `x.get::<4>(i)`, `print!(x)`, `f16x2`\n```\n`none()`\n```\n");
    assert_eq!(
        unknown(&prose, &known),
        ["docs/a.md:1: nothing is called `gett`", "docs/a.md:1: nothing is called `print`"]
    );
    let table =
        page("docs/cuda.md", "| `a()` | `f16x2`, `bf16`, `tile.get`, `tile.sett`, `slot.0` | `b()` |\n");
    assert_eq!(
        unknown(&table, &known),
        ["docs/cuda.md:1: nothing is called `f16x2`", "docs/cuda.md:1: nothing is called `sett`"]
    );
}
