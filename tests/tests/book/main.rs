//! The book as a whole: every page is in the table of contents, and every block of code is covered
//! by a test. [`HELD`] lists the tests of single pages.

#[cfg(feature = "llvm")]
mod code;
mod commands;
mod names;
mod parts;
mod training;

use std::fs;

use tma_tests::sources::{CodeBlock, code_blocks};
use tma_tests_repository::{File, expect_none, files, root};

/// Blocks that a test compiles, runs or compares: prefixes of paths of pages, the words after the
/// fence, and the test. Blocks that quote a file, `LANGUAGE,from:PATH`, are compared here, and
/// commands in [`commands`].
const HELD: &[(&str, &str, &str)] = &[
    ("docs/errors/", "rust,refused", "codegen/back/tests/error_pages.rs"),
    ("docs/errors/", "rust,accepted", "codegen/back/tests/error_pages.rs"),
    ("docs/errors/", "rust,warned", "codegen/back/tests/error_pages.rs"),
    ("", "rust,refused", "codegen/back/tests/book.rs"),
    ("docs/language/", "rust,kernel", "tests/tests/rustc.rs"),
    ("docs/language/modules.md", "rust", "codegen/back/tests/templates.rs"),
    ("docs/pipelines.md", "rust,kernel", "tests/tests/rustc.rs"),
    ("docs/protocol.md", "rust,kernel", "tests/tests/rustc.rs"),
    ("docs/tutorial.md", "rust,kernel", "tests/tests/rustc.rs"),
    ("docs/tutorial-store.md", "rust,kernel", "tests/tests/rustc.rs"),
    ("docs/tutorial-tensor-cores.md", "rust,kernel", "tests/tests/tutorials.rs"),
    ("docs/tutorial-tensor-cores.md", "rust,finding", "tests/tests/tutorials.rs"),
    ("docs/tutorial-tensor-cores.md", "rust,rustc:", "tests/tests/tutorials.rs"),
    ("docs/tutorial-tensor-cores.md", "rust,example:", "tests/tests/tutorials.rs"),
    ("docs/tutorial-tensor-cores.md", "text,picture", "tests/tests/tutorials.rs"),
    ("docs/tutorial-multicast.md", "rust,kernel", "tests/tests/tutorials.rs"),
    ("docs/tutorial-multicast.md", "rust,finding", "tests/tests/tutorials.rs"),
    ("docs/blocks.md", "rust,finding", "tests/tests/blocks.rs"),
    ("docs/host.md", "rust", "tests/tests/host.rs"),
    ("docs/debugging.md", "rust,finding", "ptx-sim/tests/book.rs"),
    ("docs/README.md", "cpp", "ptx-sim/tests/book.rs"),
    ("docs/beside.md", "rust", "beside/tests/programs.rs"),
    ("docs/beside.md", "python", "beside/tests/programs.rs"),
    ("docs/cargo-tma.md", "rust", "cargo-tma/tests/pages.rs"),
    ("docs/simulator.md", "text", "ptx-sim/tests/book.rs"),
    ("docs/getting-started.md", "rust", "tests/tests/getting_started.rs"),
    ("docs/getting-started.md", "toml", "tests/tests/getting_started.rs"),
];

/// Pages whose remaining Rust consists of parts of programs, most of them about an error on the
/// host. It must parse, but nothing compiles it.
const FRAGMENTS: [&str; 4] = ["docs/errors/", "docs/convolution.md", "docs/gemm", "docs/kept-ptx.md"];

/// Output, notation and settings. If output follows code of a kind in [`HELD`], that test compares
/// it; [`commands`] has the shell's.
const TEXT: [&str; 4] = ["text", "json", "sh", "toml"];

/// Returns the pages: the README, and all Markdown of the book.
fn pages(files: &[File]) -> impl Iterator<Item = &File> {
    let is_page = |path: &str| path == "README.md" || path.starts_with("docs/") && path.ends_with(".md");
    files.iter().filter(move |file| is_page(&file.path))
}

#[test]
fn the_table_of_contents_has_every_page_once() {
    let files = files();
    let contents = files.iter().find(|file| file.path == "docs/SUMMARY.md").expect("there is a SUMMARY.md");
    let book =
        pages(&files).filter_map(|page| page.path.strip_prefix("docs/")).filter(|path| *path != "SUMMARY.md");
    let wrong = book.filter_map(|path| {
        let rows = contents.text.matches(&format!("]({path})")).count();
        (rows != 1).then(|| format!("docs/SUMMARY.md links {rows} times to {path}: add or remove a row"))
    });
    expect_none(wrong);
}

/// A longer README belongs in the book.
#[test]
fn the_readme_is_short() {
    let files = files();
    let readme = files.iter().find(|file| file.path == "README.md").expect("there is a README");
    assert!(readme.text.lines().count() <= 150, "{} lines", readme.text.lines().count());
}

#[test]
fn every_block_is_held_by_a_test() {
    let files = files();
    expect_none(pages(&files).flat_map(|page| unheld(&page.path, &page.text)));
}

/// Each kernel has a text that says whether it is refused, not only the colour of the bar at its
/// side: a caption before the block, or the message that follows.
#[test]
fn what_is_refused_is_called_so() {
    let files = files();
    expect_none(pages(&files).flat_map(|page| uncaptioned(&page.path, &page.text)));
    let one = "**Refused:**\n\n```rust,refused\nx\n```\n";
    assert!(uncaptioned("docs/errors/a.md", one).is_empty());
    assert_eq!(uncaptioned("docs/errors/a.md", &one.replace("Refused", "Accepted")).len(), 1);
    assert_eq!(uncaptioned("docs/a.md", one).len(), 1);
    assert!(uncaptioned("docs/a.md", &format!("{one}Says:\n```text\nerror\n```\n")).is_empty());
}

/// Returns the blocks of a page without a text that says what happens to them.
fn uncaptioned(path: &str, text: &str) -> Vec<String> {
    let blocks = code_blocks(text);
    let outcome = |block: &CodeBlock| {
        let outcomes = [
            ("refused", "Refused:"),
            ("accepted", "Accepted:"),
            ("warned", "Accepted, with a warning:"),
            ("finding", ""),
        ];
        let word = block.info.split(',').nth(1)?;
        outcomes.into_iter().find(|(name, _)| *name == word).map(|(_, caption)| caption)
    };
    let wrong = blocks.iter().enumerate().filter_map(|(index, block)| {
        let caption = outcome(block)?;
        // The fence is the line before the block's first.
        let before: Vec<_> = text.lines().take(block.line - 2).filter(|line| !line.is_empty()).collect();
        let is_captioned = match path.starts_with("docs/errors/") {
            true => before.last() == Some(&&*format!("**{caption}**")),
            false => {
                let mut next = blocks[index + 1..].iter().take_while(|next| !next.info.starts_with("rust"));
                next.any(|next| next.info == "text")
            }
        };
        (!is_captioned).then(|| format!("{path}:{}: no words say what becomes of this", block.line))
    });
    wrong.collect()
}

#[test]
fn blocks_that_nothing_holds_are_found() {
    let page = "```rust\nlet x = 1;\n```\n```rust,ignore\nx\n```\n```\nx\n```\n```text\nx\n```\n```rust,from:gone.rs\nx\n```\n";
    assert_eq!(unheld("docs/new.md", page).len(), 4);
    assert_eq!(unheld("docs/errors/TMA0501.md", "```rust\nlet x = = 1;\n```\n").len(), 1);
    assert!(unheld("docs/errors/TMA0501.md", "```rust\nlet x = 1;\n```\n").is_empty());
}

/// Returns the problems with the blocks of a page.
fn unheld(path: &str, text: &str) -> Vec<String> {
    let wrong = code_blocks(text).into_iter().filter_map(|block| {
        let why = problem(path, &block)?;
        Some(format!("{path}:{}: `{}`: {why}", block.line, block.info))
    });
    wrong.collect()
}

fn problem(path: &str, block: &CodeBlock) -> Option<String> {
    if let Some((_, from)) = block.info.split_once(",from:") {
        return misquoted(&block.code, from);
    }
    let is_of = |(page, info, _): &&(&str, &str, &str)| {
        let is_whole = block.info == *info || block.info.starts_with(&format!("{info},"));
        path.starts_with(page) && (is_whole || info.ends_with(':') && block.info.starts_with(info))
    };
    if let Some((_, _, test)) = HELD.iter().find(is_of) {
        return (!root().join(test).exists()).then(|| format!("there is no {test}"));
    }
    if block.info == "rust" && FRAGMENTS.iter().any(|page| path.starts_with(page)) {
        return (!is_rust(&block.code)).then(|| "it is not Rust".to_owned());
    }
    if TEXT.contains(&&*block.info) {
        return None;
    }
    Some("no test holds blocks of this kind on this page; see `HELD` in tests/tests/book".to_owned())
}

/// Whether the text is Rust: a file, statements, parameters of a function, fields of a value, an
/// attribute, or one expression per line.
fn is_rust(code: &str) -> bool {
    let lines = code.lines().map(|line| line.split("//").next().unwrap_or(line).trim());
    let expressions: Vec<_> =
        lines.filter(|line| !line.is_empty()).map(|line| format!("({line});")).collect();
    let forms = [
        code.to_owned(),
        format!("fn f() {{\n{code}\n}}"),
        format!("fn f(\n{code}\n) {{}}"),
        format!("fn f() {{ S {{\n{code}\n}} }}"),
        format!("{code}\nfn f() {{}}"),
        format!("fn f() {{ {} }}", expressions.join(" ")),
    ];
    forms.iter().any(|form| syn::parse_file(form).is_ok())
}

/// Returns the problem with a quote, unless the file has its lines in sequence, at any indentation.
/// Lines may be left out if the quote has `// ..`.
fn misquoted(quote: &str, from: &str) -> Option<String> {
    let Ok(text) = fs::read_to_string(root().join(from)) else {
        return Some(format!("there is no {from}"));
    };
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    let wanted: Vec<_> = quote.lines().map(str::trim).collect();
    let mut start = 0;
    for part in wanted.split(|line| *line == "// ..").filter(|part| !part.is_empty()) {
        let Some(at) = (start..lines.len()).find(|&at| lines[at..].starts_with(part)) else {
            return Some(format!("{from} does not have\n{}", part.join("\n")));
        };
        start = at + part.len();
    }
    None
}
