//! The messages that the book and the README quote are those of the compiler: a block
//! `rust,refused`, and the block `text` after it.

use std::fs;
use std::path::{Path, PathBuf};

use tma_codegen::{Failure, check_protocol};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the pages of the book except for those of the errors, and the README.
fn pages() -> Vec<PathBuf> {
    let folder = fs::read_dir(root().join("docs")).expect("there is a book").flatten();
    let mut pages: Vec<_> = folder.map(|entry| entry.path()).collect();
    pages.push(root().join("README.md"));
    pages.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages
}

/// A block of code: the words after its fence, and its text.
type Block = (String, String);

fn blocks(page: &str) -> Vec<Block> {
    let mut found = vec![];
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(info) = line.strip_prefix("```") {
            let code: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
            found.push((info.to_owned(), code.join("\n")));
        }
    }
    found
}

/// Whether the text has each line of a quote, in this order, at any indentation; `...` is for lines
/// that are left out.
fn is_quoted(quote: &str, text: &str) -> bool {
    let mut lines = text.lines().map(str::trim);
    quote.lines().map(str::trim).filter(|line| *line != "...").all(|line| lines.any(|other| other == line))
}

#[test]
fn refused_kernels_are_refused_in_these_words() {
    let (mut quoted, mut wrong) = (0, vec![]);
    for path in pages() {
        let text = fs::read_to_string(&path).expect("a page can be read");
        for pair in blocks(&text).windows(2).filter(|pair| pair[0].0 == "rust,refused" && pair[1].0 == "text")
        {
            quoted += 1;
            let said = match check_protocol("kernel.rs", &pair[0].1) {
                Ok(_) => "nothing".to_owned(),
                Err(Failure::Rules { rendered, .. }) => rendered,
                Err(other) => other.to_string(),
            };
            if !is_quoted(&pair[1].1, &said) {
                wrong.push(format!("{}:\n{}\nThe compiler says:\n{said}", path.display(), pair[1].1));
            }
        }
    }
    assert!(quoted >= 5, "{quoted} quotes were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// A kernel that a page shows to be wrong is refused with the error of the protocol that the
/// paragraph before it names. If the paragraph names none, the kernel is accepted, and only the
/// simulator finds the error.
#[test]
fn wrong_kernels_are_refused_as_their_paragraphs_say() {
    let (mut refused, mut wrong) = (0, vec![]);
    for path in pages() {
        let text = fs::read_to_string(&path).expect("a page can be read");
        for (at, _) in text.match_indices("\n```rust,finding\n") {
            let before = text[..at].trim_end().rsplit("\n\n").next().unwrap_or_default();
            let named = before.find("TMA07").and_then(|at| before.get(at..at + 7));
            let code = text[at..].split_once("finding\n").and_then(|(_, rest)| rest.split("```").next());
            let said = match check_protocol("kernel.rs", code.unwrap_or_default()) {
                Ok(_) => None,
                Err(error) => Some(error.to_string()),
            };
            refused += usize::from(named.is_some());
            let is_so = match (named, &said) {
                (Some(code), Some(said)) => said.contains(code),
                (None, None) => true,
                _ => false,
            };
            if !is_so {
                wrong.push(format!("{}: {before}\nThe compiler says: {said:?}", path.display()));
            }
        }
    }
    assert!(refused >= 8, "{refused} wrong kernels with an error were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn wrong_quotes_are_noticed() {
    assert!(is_quoted("a\n...\n  c", "a\nb\nc"));
    assert!(!is_quoted("a\nd", "a\nb\nc"));
    assert!(!is_quoted("c\na", "a\nb\nc"));
}
