//! Tests of the invariants of docs/ARCHITECTURE.md that are visible in the source text.
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
mod statements;

use proc_macro2::{TokenStream, TokenTree};
use tma_tests_repository::File;

/// Folders of files that tests read.
const DATA: [&str; 4] = ["/tests/ui/", "/tests/packages/", "/tests/diagnostics/", "/tests/findings/"];

/// Returns the Rust files of the packages except for those that tests read, which have kernels that
/// the compiler must reject.
fn sources(files: &[File]) -> impl Iterator<Item = &File> {
    let is_data = |path: &str| DATA.iter().any(|folder| path.contains(folder));
    files.iter().filter(move |file| file.is_rust() && !is_data(&file.path))
}

/// Parses the part of a Rust file outside its tests.
fn code(file: &File) -> syn::File {
    parse(file, file.split_tests().0)
}

fn parse(file: &File, text: &str) -> syn::File {
    syn::parse_file(text).unwrap_or_else(|error| panic!("{}: {error}", file.path))
}

/// Creates a file for the tests of the checks.
fn planted(path: &str, text: &str) -> File {
    File { path: path.to_owned(), text: text.to_owned() }
}

/// An enum: its name, the line that names it, and the names of its variants.
struct Enum {
    name: String,
    line: usize,
    variants: Vec<String>,
}

/// Returns the enums that a file declares outside its tests, including those in the input of
/// macros.
fn enums(file: &File) -> Vec<Enum> {
    let tokens = file.split_tests().0.parse().unwrap_or_else(|error| panic!("{}: {error}", file.path));
    enums_in(tokens)
}

fn enums_in(tokens: TokenStream) -> Vec<Enum> {
    let tokens: Vec<_> = tokens.into_iter().collect();
    let mut found = vec![];
    for (i, token) in tokens.iter().enumerate() {
        match (token, tokens.get(i + 1), tokens.get(i + 2)) {
            (TokenTree::Group(group), ..) => found.extend(enums_in(group.stream())),
            (TokenTree::Ident(word), Some(TokenTree::Ident(name)), Some(TokenTree::Group(body)))
                if *word == "enum" =>
            {
                let variants = variants(body.stream());
                found.push(Enum { name: name.to_string(), line: name.span().start().line, variants });
            }
            _ => {}
        }
    }
    found
}

/// Returns the first name of each part between commas, after its attributes.
fn variants(body: TokenStream) -> Vec<String> {
    let mut found = vec![];
    let mut begins = true;
    for token in body {
        match token {
            TokenTree::Ident(name) if begins => {
                found.push(name.to_string());
                begins = false;
            }
            TokenTree::Punct(mark) if mark.as_char() == ',' => begins = true,
            _ => {}
        }
    }
    found
}
