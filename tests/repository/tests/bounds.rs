//! Checks that the tables of bounds in `docs/language/kernels.md` have a row for each trait of the
//! vocabulary, and the scalars of each.

use std::collections::BTreeSet;

use tma_tests_repository::{File, expect_none, files};

/// Traits that generics of kernels have no use for: ranges are not passed to functions, and those
/// of `ptx!` are the macro's.
const NOT_BOUNDS: [&str; 4] = ["CountedRange", "PtxInput", "PtxMemory", "PtxScalar"];

/// Sets of scalars that rows name in words, and their elements.
const SETS: [(&str, &str); 4] = [
    ("every scalar but `bool`", "`i8 u8 i16 u16 i32 u32 i64 u64 usize f16 bf16 f32 f64 tf32 e4m3 e5m2`"),
    ("every scalar", "`bool i8 u8 i16 u16 i32 u32 i64 u64 usize f16 bf16 f32 f64 tf32 e4m3 e5m2`"),
    ("signed integers", "`i8 i16 i32 i64`"),
    ("integers", "`i8 u8 i16 u16 i32 u32 i64 u64 usize`"),
];

/// The vocabulary's files, without those of the expansion.
fn vocabulary(files: &[File]) -> impl Iterator<Item = &File> {
    let is_part = |path: &str| path.starts_with("tma-runtime/src/lang/") && !path.ends_with("/names.rs");
    files.iter().filter(move |file| is_part(&file.path) && !file.is_test())
}

/// Returns the text up to the first character that no name has.
fn name(text: &str) -> &str {
    text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default()
}

/// Returns the public traits of a file, also those that rows of `elements!` define.
fn traits(rust: &str) -> impl Iterator<Item = &str> {
    let declared = rust.lines().filter_map(|line| line.strip_prefix("pub trait "));
    let of_macro = rust.lines().filter(|line| line.contains(": \"") && line.starts_with("    "));
    let of_macro = of_macro.map(str::trim).filter(|line| line.starts_with(char::is_uppercase));
    declared.chain(of_macro).map(name)
}

/// Returns the traits that `mark!` implements in a file, each with its types.
fn marked(rust: &str) -> impl Iterator<Item = (&str, BTreeSet<&str>)> {
    let lines = rust.lines().filter_map(|line| line.strip_prefix("mark!(")?.strip_suffix(");"));
    let split = lines.filter_map(|line| line.split_once(": "));
    split.map(|(name, types)| (name, types.split(", ").collect()))
}

/// Returns the rows of the tables of bounds: the bound, and the cell of its types.
fn rows(page: &str) -> Vec<(&str, &str)> {
    let (_, section) = page.split_once("\n## Bounds\n").expect("the page has a section of bounds");
    let section = section.split("\n## ").next().unwrap_or_default();
    let mut has_includes = false;
    let mut found = vec![];
    for line in section.lines().filter_map(|line| line.strip_prefix("| ")) {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        match cells[0].strip_prefix('`') {
            Some(bound) => {
                let bound = bound.rsplit_once(": ").map_or(bound, |(_, bound)| bound);
                found.push((name(bound), cells[if has_includes { 2 } else { 1 }]));
            }
            None if cells[0] == "bound" => has_includes = cells[1] == "includes",
            None => {}
        }
    }
    found
}

/// Returns the scalars that a cell lists.
fn scalars(cell: &str) -> BTreeSet<String> {
    let expanded = SETS.iter().fold(cell.to_owned(), |cell, (words, types)| cell.replace(words, types));
    expanded.split(['`', ' ', ',']).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

#[test]
fn each_trait_of_the_vocabulary_has_a_row() {
    let files = files();
    let page = files.iter().find(|file| file.path == "docs/language/kernels.md").expect("the page exists");
    let rows: BTreeSet<_> = rows(&page.text).into_iter().map(|(bound, _)| bound).collect();
    let traits: BTreeSet<_> = vocabulary(&files).flat_map(|file| traits(&file.text)).collect();
    assert!(traits.len() > 50, "only {} traits were found", traits.len());
    let without = traits.iter().filter(|name| !rows.contains(*name) && !NOT_BOUNDS.contains(name));
    expect_none(without.map(|name| format!("docs/language/kernels.md: `{name}` has no row in \"Bounds\"")));
    // The runtime declares this one, and the vocabulary exports it.
    let unknown = rows.iter().filter(|name| !traits.contains(*name) && **name != "Scalar");
    expect_none(unknown.map(|name| format!("docs/language/kernels.md: no trait is called `{name}`")));
}

#[test]
fn rows_have_the_scalars_of_their_traits() {
    let files = files();
    let page = files.iter().find(|file| file.path == "docs/language/kernels.md").expect("the page exists");
    let rows = rows(&page.text);
    let marked: Vec<_> = vocabulary(&files).flat_map(|file| marked(&file.text)).collect();
    let marked: Vec<_> = marked.into_iter().filter(|(bound, _)| *bound != "Sealed").collect();
    assert!(marked.len() > 10, "only {} traits were found", marked.len());
    let differs = marked.into_iter().filter_map(|(bound, types)| {
        let (_, cell) = rows.iter().find(|(row, _)| *row == bound)?;
        let is_same = scalars(cell).iter().map(String::as_str).eq(types.iter().copied());
        (!is_same).then(|| format!("docs/language/kernels.md: `{bound}` is for {types:?}, not {cell}"))
    });
    expect_none(differs);
}
