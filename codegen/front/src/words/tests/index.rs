//! The index of words in the book, `docs/words.md`, which is generated from the table.

use std::collections::BTreeSet;
use std::fs;

use super::*;
use crate::ir::{ReduceOp, Scalar};

const HEAD: &str = "\
# Index of words

Every function, method, type, constant and macro of kernels, with the chapter of the
[language](language/README.md) that explains it. This page is made of the compiler's own table.
[Bounds](language/kernels.md#bounds) lists the traits of generics.

| word | what it is | chapter |
| --- | --- | --- |
";

/// A row of the index.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    name: String,
    word: String,
    what: String,
    chapter: &'static str,
}

fn rows() -> BTreeSet<Row> {
    let row = |name: &str, word: String, what: &str, chapter| {
        let (name, what) = (name.to_owned(), what.to_owned());
        Row { name, word, what, chapter }
    };
    let called = entries().into_iter().map(|entry| {
        let (word, what) = match entry.signature.owner {
            Owner::Functions("lang") => (entry.usage(), "function"),
            Owner::Functions("Number") => (format!("T::{}", entry.usage()), "function of numbers"),
            Owner::Functions(owner) => (format!("{owner}::{}", entry.usage()), "function"),
            Owner::Methods("Number") => (entry.usage(), "method of numbers"),
            Owner::Methods("Range") => (entry.usage(), "method of ranges"),
            Owner::Methods(owner) => (entry.usage(), &*format!("method of `{owner}`")),
        };
        row(&entry.name, word, what, entry.signature.chapter)
    });
    let types = TypeWord::all().into_iter();
    let types = types.map(|word| row(word.name(), word.usage(), "type", word.chapter()));
    let constants = ConstantWord::ALL.iter().map(|word| {
        row(word.name(), format!("T::{}", word.name()), "constant of numbers", ConstantWord::CHAPTER)
    });
    let macros = MacroWord::ALL.iter();
    let macros =
        macros.map(|word| row(word.name(), format!("{}!(..)", word.name()), "macro", MacroWord::CHAPTER));
    called.chain(types).chain(constants).chain(macros).collect()
}

fn index() -> String {
    let pages = pages();
    let line = |Row { word, what, chapter: heading, .. }: &Row| {
        let (page, _) = chapter(&pages, heading);
        let anchor = heading.to_lowercase().replace(' ', "-");
        format!("| `{word}` | {what} | [{heading}](language/{page}#{anchor}) |\n")
    };
    let mut rows: Vec<_> = rows().into_iter().collect();
    rows.sort_by_key(|row| row.name.to_lowercase());
    HEAD.to_owned() + &rows.iter().map(line).collect::<String>()
}

#[test]
fn the_index_of_the_book_is_that_of_the_table() {
    tma_golden::assert_all([(folder("docs/words.md"), index())]);
}

/// The pages of `docs/language`: file names and texts.
fn pages() -> Vec<(String, String)> {
    let files = fs::read_dir(folder("docs/language")).expect("the language has a folder in the book");
    let read = |file: fs::DirEntry| {
        let text = fs::read_to_string(file.path()).expect("a page can be read");
        (file.file_name().to_string_lossy().into_owned(), text)
    };
    files.map(|file| read(file.expect("the folder can be listed"))).collect()
}

/// Returns the name of the page that has a heading, and the text under it, up to the next one.
fn chapter<'a>(pages: &'a [(String, String)], heading: &str) -> (&'a str, &'a str) {
    let found: Vec<_> = pages
        .iter()
        .filter_map(|(page, text)| {
            let start = text.find(&format!("# {heading}\n"))? + heading.len() + 3;
            let text = &text[start..];
            Some((page.as_str(), text.find("\n#").map_or(text, |end| &text[..end])))
        })
        .collect();
    let [only] = found[..] else { panic!("{} headings of docs/language are {heading:?}", found.len()) };
    only
}

/// Whether `text` contains this name as a whole word.
fn has_name(text: &str, name: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    text.match_indices(name)
        .any(|(at, _)| !text[..at].ends_with(is_letter) && !text[at + name.len()..].starts_with(is_letter))
}

/// One of the words from a row with `for` is enough.
#[test]
fn each_word_is_explained_in_its_chapter() {
    let pages = pages();
    let all = entries();
    let names_beside = |row: &Row| -> Vec<String> {
        let of_row = |entry: &&Entry| *entry.name == *row.name && entry.signature.chapter == row.chapter;
        let Some(found) = all.iter().find(of_row).filter(|entry| entry.signature.has(Mark::Family)) else {
            return vec![row.name.clone()];
        };
        let beside = |entry: &&Entry| std::ptr::eq(entry.signature, found.signature);
        all.iter().filter(beside).map(|entry| entry.name.to_string()).collect()
    };
    let is_missing = |row: &Row| {
        let (_, text) = chapter(&pages, row.chapter);
        !names_beside(row).iter().any(|name| has_name(text, name))
    };
    let missing = rows().into_iter().filter(is_missing);
    let missing: Vec<_> =
        missing.map(|row| format!("{}: {} ({})", row.chapter, row.word, row.what)).collect();
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// Returns the cells of each row in the book's table of reductions.
fn reductions(pages: &[(String, String)]) -> Vec<Vec<&str>> {
    let (_, text) = chapter(pages, "Reductions");
    let rows = text.lines().filter(|line| line.starts_with("| `reduce_"));
    rows.map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

/// Finds reductions that the book omits or lists with the wrong element types.
#[test]
fn the_book_gives_each_reduction_with_its_elements() {
    let pages = pages();
    let rows = reductions(&pages);
    for op in ReduceOp::ALL {
        let method = MapWord::Reduce(op).name();
        let row = rows.iter().find(|cells| has_name(cells[0], &method));
        let row = row.unwrap_or_else(|| panic!("the table of docs/language/tma.md has no `{method}`"));
        let takes: [fn(ReduceOp, Scalar) -> bool; 3] =
            [ReduceOp::takes_mapped, ReduceOp::takes_bulk, ReduceOp::takes_remote];
        assert_eq!(row.len(), 2 + takes.len(), "`{method}`: its row");
        for (written, takes) in row[2..].iter().zip(takes) {
            // The book lists `usize` as `u64`.
            let taken = Scalar::ALL.into_iter().filter(|&ty| takes(op, ty) && ty != Scalar::Usize);
            let taken: BTreeSet<_> = taken.map(Scalar::name).collect();
            assert_eq!(written.split(", ").collect::<BTreeSet<_>>(), taken, "`{method}`: elements");
        }
    }
}
