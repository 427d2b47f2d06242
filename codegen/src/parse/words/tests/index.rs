//! The index of words in the book, `docs/words.md`, which is made of the table.

use std::collections::BTreeSet;
use std::fs;

use super::*;
use crate::ir::{ReduceOp, Scalar};

const HEAD: &str = "\
# Index of words

Every function, method, type, constant and macro of kernels, with the chapter of the
[language](language.md) that explains it. This page is made of the compiler's own table.

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
    let line = |Row { word, what, chapter, .. }: &Row| {
        let anchor = chapter.to_lowercase().replace(' ', "-");
        format!("| `{word}` | {what} | [{chapter}](language.md#{anchor}) |\n")
    };
    let mut rows: Vec<_> = rows().into_iter().collect();
    rows.sort_by_key(|row| row.name.to_lowercase());
    HEAD.to_owned() + &rows.iter().map(line).collect::<String>()
}

#[test]
fn the_index_of_the_book_is_that_of_the_table() {
    tma_golden::assert_all([(folder("docs/words.md"), index())]);
}

/// The text under a heading, up to the next.
fn chapter<'a>(book: &'a str, heading: &str) -> Option<&'a str> {
    let start = book.find(&format!("# {heading}\n"))? + heading.len() + 3;
    let text = &book[start..];
    Some(text.find("\n#").map_or(text, |end| &text[..end]))
}

/// Whether `text` has this name, and not only as a part of a longer one.
fn has_name(text: &str, name: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    text.match_indices(name)
        .any(|(at, _)| !text[..at].ends_with(is_letter) && !text[at + name.len()..].starts_with(is_letter))
}

/// Of the words that one row makes, one has to stand there.
#[test]
fn each_word_is_explained_in_its_chapter() {
    let book = fs::read_to_string(folder("docs/language.md")).expect("the book can be read");
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
        let text =
            chapter(&book, row.chapter).unwrap_or_else(|| panic!("no chapter is called {}", row.chapter));
        !names_beside(row).iter().any(|name| has_name(text, name))
    };
    let missing = rows().into_iter().filter(is_missing);
    let missing: Vec<_> =
        missing.map(|row| format!("{}: {} ({})", row.chapter, row.word, row.what)).collect();
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// The rows of the book's table of reductions, each with its cells.
fn reductions(book: &str) -> Vec<Vec<&str>> {
    let chapter = chapter(book, "Reductions").expect("there is such a chapter");
    let rows = chapter.lines().filter(|line| line.starts_with("| `reduce_"));
    rows.map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

/// A reduction that the book leaves out, or of which it gives the wrong elements.
#[test]
fn the_book_gives_each_reduction_with_its_elements() {
    let book = fs::read_to_string(folder("docs/language.md")).expect("the book can be read");
    let rows = reductions(&book);
    for op in ReduceOp::ALL {
        let method = MapWord::Reduce(op).name();
        let row = rows.iter().find(|cells| has_name(cells[0], &method));
        let row = row.unwrap_or_else(|| panic!("the table of docs/language.md has no `{method}`"));
        let takes: [fn(ReduceOp, Scalar) -> bool; 3] =
            [ReduceOp::takes_mapped, ReduceOp::takes_bulk, ReduceOp::takes_remote];
        assert_eq!(row.len(), 2 + takes.len(), "`{method}`: its row");
        for (written, takes) in row[2..].iter().zip(takes) {
            // A `usize` is a u64, as the text says.
            let taken = Scalar::ALL.into_iter().filter(|&ty| takes(op, ty) && ty != Scalar::Usize);
            let taken: BTreeSet<_> = taken.map(Scalar::name).collect();
            assert_eq!(written.split(", ").collect::<BTreeSet<_>>(), taken, "`{method}`: elements");
        }
    }
}
