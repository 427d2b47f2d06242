//! Words and idioms that comments and pages do not use, so that a reader who knows CUDA, LLVM or
//! Miri meets none that only this project has.

use tma_tests_repository::{File, expect_none, files};

/// Phrases that are not used, in lower case, each with its replacement. They match whole words.
const BANNED: &[(&str, &str)] = &[
    ("world", "path, execution"),
    ("worlds", "paths, executions"),
    ("meeting", "barrier, rendezvous"),
    ("meetings", "barriers, rendezvous"),
    ("told apart", "split, distinguished"),
    ("parted", "split, diverged"),
    ("anew", "again, from scratch"),
    ("in vain", "without effect"),
    ("lies between", "comes between, separates"),
    ("do it together", "synchronise"),
];

/// Pages that tests write, from results and from the names of kernels.
const WRITTEN_BY_TESTS: [&str; 3] =
    ["lab/mutations.md", "lab/mutations-library.md", "lab/protocol-mutants.md"];

/// Returns the prose of a file, by line number: comments of Rust, and Markdown outside fences and
/// code.
fn prose(file: &File) -> Vec<(usize, String)> {
    let mut is_code = false;
    let lines = file.text.lines().enumerate();
    let of_line = |(index, line): (usize, &str)| {
        let line = line.trim_start();
        let comment = if file.is_rust() { line.strip_prefix("//")? } else { line };
        let text = comment.trim_start_matches(['/', '!']).trim_start();
        if text.starts_with("```") {
            is_code = !is_code;
        }
        // Every other piece is in backquotes.
        let words = text.split('`').step_by(2).collect::<Vec<_>>().join(" ");
        (!is_code).then_some((index + 1, words))
    };
    lines.filter_map(of_line).collect()
}

/// Whether `text` has a phrase as whole words.
fn has_phrase(text: &str, phrase: &str) -> bool {
    let is_letter =
        |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
    text.match_indices(phrase).any(|(start, _)| {
        let end = start + phrase.len();
        !is_letter(text[..start].chars().next_back()) && !is_letter(text[end..].chars().next())
    })
}

fn checked(files: &[File]) -> impl Iterator<Item = &File> {
    files.iter().filter(|file| {
        let is_page = file.path.ends_with(".md") && !WRITTEN_BY_TESTS.contains(&&*file.path);
        (file.is_rust() || is_page) && file.path != "tests/repository/tests/prose.rs"
    })
}

#[test]
fn prose_uses_the_words_of_the_field() {
    let files = files();
    expect_none(checked(&files).flat_map(|file| {
        prose(file).into_iter().flat_map(move |(line, text)| {
            let text = text.to_lowercase();
            let found = BANNED.iter().filter(move |(phrase, _)| has_phrase(&text, phrase));
            found.map(move |(phrase, instead)| format!("{}:{line}: not `{phrase}`, but {instead}", file.path))
        })
    }));
}

#[test]
fn doc_comments_begin_with_a_noun_or_a_verb() {
    const RELATIVE: [&str; 3] = ["What ", "Which ", "Who "];
    let files = files();
    expect_none(files.iter().filter(|file| file.is_rust()).flat_map(|file| {
        let mut is_first = true;
        file.text.lines().enumerate().filter_map(move |(index, line)| {
            let line = line.trim_start();
            let text = line.strip_prefix("/// ").or_else(|| line.strip_prefix("//! "));
            let begins =
                is_first && text.is_some_and(|text| RELATIVE.iter().any(|word| text.starts_with(word)));
            is_first = !line.starts_with("///") && !line.starts_with("//!") || line.len() == 3;
            begins.then(|| format!("{}:{}: {line}", file.path, index + 1))
        })
    }));
}

#[test]
fn phrases_match_whole_words() {
    assert!(has_phrase("in this world", "world"));
    assert!(!has_phrase("a worldly matter", "world"));
    assert!(!has_phrase("departed", "parted"));
    let page = File { path: "docs/a.md".into(), text: "one `world`\n```text\nworld\n```\ntwo\n".into() };
    let lines: Vec<_> = prose(&page).into_iter().map(|(line, _)| line).collect();
    assert_eq!(lines, [1, 4, 5]);
}
