//! The invariants of docs/ARCHITECTURE.md that the source text can show.
//!
//! Each check is a function from files to problems. One test runs it on the tree, and another on
//! files that break the rule.

mod folders;
mod homes;
mod imports;
mod map;
mod matches;
mod panics;
mod parameters;
#[path = "../tree/mod.rs"]
mod tree;

use tree::File;

/// The Rust files of the packages, but for those that tests read: kernels that are to be rejected.
fn sources(files: &[File]) -> impl Iterator<Item = &File> {
    let is_data = |path: &str| path.contains("/ui/") || path.contains("/packages/");
    files.iter().filter(move |file| file.is_rust() && !is_data(&file.path))
}

/// What a Rust file has outside its tests.
fn code(file: &File) -> syn::File {
    parse(file, file.split_tests().0)
}

fn parse(file: &File, text: &str) -> syn::File {
    syn::parse_file(text).unwrap_or_else(|error| panic!("{}: {error}", file.path))
}

/// A file for the tests of the checks.
fn planted(path: &str, text: &str) -> File {
    File { path: path.to_owned(), text: text.to_owned() }
}
