//! Every page of `docs/errors` is true: a kernel that it shows as refused is refused, with exactly
//! the errors in the hidden comments after the block, on the lines that end with `// error`; a
//! kernel that it shows as accepted is accepted.

mod pages;

use std::fs;
use std::path::Path;

use pages::{Example, Judged, Note, Outcome, examples, folder, page};
use tma_codegen::diag::{Code, Diagnostics};

/// Codes that no kernel alone can cause: they are about the build, and about imports, which texts
/// need not have.
const PROSE_ONLY: [Code; 5] =
    [Code::MissingPrelude, Code::MissingPtx, Code::Backend, Code::Unwatchable, Code::KeptPtx];

/// An error as a page expects it.
#[derive(Debug)]
struct Expected<'a> {
    line: usize,
    code: &'a str,
    text: &'a str,
}

/// Returns the errors and the warnings of an example, or the reason why it is not an example.
fn diagnostics(example: &Example) -> Result<Diagnostics, String> {
    let Judged { accepted_kernels, diagnostics, .. } =
        pages::judge("page.rs", &example.source, example.by())?;
    match diagnostics.errors.is_empty() && accepted_kernels == 0 {
        true => Err("there is no kernel in it".to_owned()),
        false => Ok(diagnostics),
    }
}

/// Returns the numbers of the lines that end with `// error`, `// warning` or `// 2 errors`, from
/// 1, each as many times as it says.
fn marked(source: &str) -> Vec<usize> {
    let lines = source.lines().enumerate().filter_map(|(number, line)| {
        let (_, mark) = line.rsplit_once("// ")?;
        let times = match mark.split_once(' ') {
            None => ["error", "warning"].contains(&mark).then_some(1)?,
            Some((count, "errors" | "warnings")) => count.parse().ok()?,
            Some(_) => return None,
        };
        Some(std::iter::repeat_n(number + 1, times))
    });
    lines.flatten().collect()
}

/// Returns the expectations of an example's notes for its lines.
///
/// # Errors
///
/// Different numbers of notes and of marks.
fn expected(example: &Example) -> Result<Vec<Expected<'_>>, String> {
    let lines = marked(&example.source);
    if lines.len() != example.notes.len() {
        return Err(format!("{} marks `// error`, {} comments", lines.len(), example.notes.len()));
    }
    let notes = lines.into_iter().zip(&example.notes);
    Ok(notes.map(|(line, Note { code, text })| Expected { line, code, text }).collect())
}

/// Returns the problem with an example, if there is one.
fn judge(example: &Example) -> Result<(), String> {
    let expected = expected(example)?;
    if (example.outcome == Outcome::Accepted) != expected.is_empty() {
        return Err("a refused block notes its errors, an accepted one has none".to_owned());
    }
    let Diagnostics { mut errors, warnings } = diagnostics(example)?;
    if example.outcome == Outcome::Warned {
        errors.extend(warnings);
    }
    let as_noted = errors.len() == expected.len()
        && errors.iter().zip(&expected).all(|(error, note)| {
            error.code().as_str() == note.code
                && error.span.start().line == note.line
                && !note.text.is_empty()
                && error.message().contains(note.text)
        });
    if as_noted {
        return Ok(());
    }
    let found: Vec<_> =
        errors.iter().map(|error| format!("line {}: {}", error.span.start().line, error.text())).collect();
    Err(format!("expected {expected:#?}\nfound:\n{}", found.join("\n")))
}

#[test]
fn pages_show_what_is_refused_and_what_is_accepted() {
    let mut wrong = vec![];
    for code in Code::ALL.iter().filter(|code| !PROSE_ONLY.contains(code)) {
        for example in examples(&page(*code).unwrap_or_default()) {
            if let Err(why) = judge(&example) {
                wrong.push(format!("{code}.md:{}: {why}\n{}", example.before, example.source));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_code_has_a_page_with_a_flipped_pair() {
    let mut wrong = vec![];
    for &code in Code::ALL {
        let Some(page) = page(code) else {
            wrong.push(format!("{code} has no page"));
            continue;
        };
        if !page.starts_with(&format!("# {code}: ")) {
            wrong.push(format!("the title of {code}.md does not begin with `{code}: `"));
        }
        let examples = examples(&page);
        let is_pair = |pair: &[Example]| match pair {
            [a, b] => a.outcome != Outcome::Accepted && b.outcome == Outcome::Accepted,
            _ => false,
        };
        let in_pairs = examples.chunks(2).all(is_pair);
        if !in_pairs || examples.is_empty() != PROSE_ONLY.contains(&code) {
            wrong.push(format!("{code}.md does not show each refused kernel beside one that is accepted"));
        }
        let mut notes = examples.iter().flat_map(|example| &example.notes);
        if !PROSE_ONLY.contains(&code) && !notes.any(|note| note.code == code.as_str()) {
            wrong.push(format!("{code}.md has no example of {code}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Code that shows a code displays it: its text is in one file, those of rules in the model, and in
/// tests.
#[test]
fn codes_are_spelt_out_once() {
    fn spelt_out(folder: &Path, found: &mut Vec<String>) {
        for path in fs::read_dir(folder).expect("a folder of sources").flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                spelt_out(&path, found);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap_or_default();
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            let lines = code.lines().filter(|line| line.contains("TMA0") && !line.trim().starts_with("//"));
            found.extend(lines.map(|line| format!("{}: {line}", path.display())));
        }
    }
    let mut found = vec![];
    for package in ["front", "protocol", "back", "../tma-model"] {
        spelt_out(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(package).join("src"), &mut found);
    }
    let home = ["codes.rs: ", "tma-model/src/rule.rs: ", "tests.rs: ", "tests/mod.rs: "];
    assert!(found.len() >= Code::ALL.len(), "the sources were not found");
    found.retain(|line| !home.iter().any(|home| line.contains(home)));
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Returns the title of every page: the code, and a description of the error.
fn titles() -> Vec<(String, String)> {
    let pages = fs::read_dir(folder()).expect("docs/errors is a folder").flatten().map(|entry| entry.path());
    let titles = pages.filter(|path| !path.ends_with("README.md")).map(|path| {
        let page = fs::read_to_string(&path).unwrap_or_default();
        let heading = page.lines().next().and_then(|line| line.strip_prefix("# ")?.split_once(": "));
        let (code, title) = heading.unwrap_or_else(|| panic!("{} has no title", path.display()));
        assert!(
            !title.contains(['[', ']']),
            "{code}: it is the text of a link, which has no brackets: {title}"
        );
        (code.to_owned(), title.to_owned())
    });
    titles.collect()
}

#[test]
fn the_index_has_the_title_of_every_page() {
    let index = fs::read_to_string(folder().join("README.md")).unwrap_or_default();
    let rows = titles().into_iter().map(|(code, title)| format!("| [{code}]({code}.md) | {title} |"));
    let missing: Vec<_> = rows.filter(|row| !index.lines().any(|line| line == row)).collect();
    assert!(missing.is_empty(), "not in docs/errors/README.md:\n{}", missing.join("\n"));
}

/// The sidebar of the book has the titles without the article.
#[test]
fn the_table_of_contents_has_the_title_of_every_page() {
    let contents = fs::read_to_string(folder().join("../SUMMARY.md")).unwrap_or_default();
    let rows = titles().into_iter().map(|(code, title)| {
        let title =
            ["a ", "an ", "the "].iter().find_map(|article| title.strip_prefix(article)).unwrap_or(&title);
        format!("  - [{code} {title}](errors/{code}.md)")
    });
    let missing: Vec<_> = rows.filter(|row| !contents.lines().any(|line| line == row)).collect();
    assert!(missing.is_empty(), "not in docs/SUMMARY.md:\n{}", missing.join("\n"));
}

/// The pages prove nothing if `judge` accepts everything.
#[test]
fn wrong_notes_are_noticed() {
    let kernel = |line: &str, note: &str| {
        let outcome = if note.is_empty() { "accepted" } else { "refused" };
        let source = format!("#[tma_kernel(threads = 32)]\nfn k(n: u32) {{\n    {line}\n}}\n");
        examples(&format!("```rust,{outcome}\n{source}```\n\n{note}\n")).remove(0)
    };
    let m = "<!-- TMA0101: find value `m` -->";
    assert_eq!(judge(&kernel("let x = m; // error", m)), Ok(()));
    assert_eq!(judge(&kernel("let x = n;", "")), Ok(()));
    for (line, note) in [
        ("let x = m; // error", "<!-- TMA0102: find value `m` -->"),
        ("let x = m; // error", "<!-- TMA0101: find value `o` -->"),
        ("let x = m; // error", "<!-- TMA0101: -->"),
        ("let x = m;\n// error", m),
        ("let x = n; // error", "<!-- TMA0101: find value `n` -->"),
        ("let x = m + o; // error", m),
        ("let x = m; // 2 errors", m),
        ("let x = m; // error", "no note"),
        ("let x = m;", m),
        ("let x = m;", ""),
    ] {
        assert!(judge(&kernel(line, note)).is_err(), "{line} {note}");
    }
}

/// Readers see no marks of tests: the expectations are in comments that no renderer shows.
#[test]
fn pages_show_no_marks_of_tests() {
    let marks = ["//~", "// As a whole."];
    let marked = Code::ALL
        .iter()
        .filter(|code| page(**code).is_some_and(|page| marks.iter().any(|mark| page.contains(mark))));
    let marked: Vec<_> = marked.collect();
    assert!(marked.is_empty(), "{marked:?}");
}
