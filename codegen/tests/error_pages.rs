//! Every page of `docs/errors` holds what it says: what it shows as refused is refused with just
//! the errors noted on its lines, and what it shows as accepted is accepted.

mod pages;

use std::fs;
use std::path::Path;

use pages::{Example, Judged, Outcome, examples, folder, page};
use tma_codegen::diag::{Code, Diagnostics};

/// Codes that no kernel alone brings about: they are about the build, and about imports, which
/// texts need not have.
const PROSE_ONLY: [Code; 5] =
    [Code::MissingPrelude, Code::MissingPtx, Code::Backend, Code::Unwatchable, Code::KeptPtx];

/// An error, as noted with `//~ CODE text`, or as reported.
#[derive(Debug)]
struct Expected<'a> {
    line: usize,
    code: &'a str,
    text: &'a str,
}

/// The errors and the warnings of an example, or why it is none.
fn diagnostics(example: &Example) -> Result<Diagnostics, String> {
    let Judged { accepted_kernels, diagnostics, .. } =
        pages::judge("page.rs", &example.source, example.target)?;
    match diagnostics.errors.is_empty() && accepted_kernels == 0 {
        true => Err("there is no kernel in it".to_owned()),
        false => Ok(diagnostics),
    }
}

/// What the comments of `source` say of it.
fn expected(source: &str) -> Vec<Expected<'_>> {
    let notes = source
        .lines()
        .enumerate()
        .flat_map(|(number, line)| line.split("//~ ").skip(1).map(move |note| (number + 1, note.trim())));
    notes
        .map(|(line, note)| {
            let (code, text) = note.split_once(' ').unwrap_or((note, ""));
            Expected { line, code, text }
        })
        .collect()
}

/// What is wrong with an example, if anything is.
fn judge(example: &Example) -> Result<(), String> {
    let expected = expected(&example.source);
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
        let notes = examples.iter().flat_map(|example| expected(&example.source));
        if !PROSE_ONLY.contains(&code) && !notes.into_iter().any(|note| note.code == code.as_str()) {
            wrong.push(format!("{code}.md has no example of {code}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whoever shows a code displays it: it is spelt out in one file, and in tests.
#[test]
fn codes_are_spelt_out_in_one_place() {
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
    spelt_out(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    let home = ["codes.rs: ", "tests.rs: "];
    assert!(found.len() >= Code::ALL.len(), "the sources were not found");
    found.retain(|line| !home.iter().any(|home| line.contains(home)));
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Of each page its title, which says what is wrong.
#[test]
fn the_index_has_the_title_of_every_page() {
    let index = fs::read_to_string(folder().join("README.md")).unwrap_or_default();
    let pages = fs::read_dir(folder()).expect("docs/errors is a folder").flatten().map(|entry| entry.path());
    let rows = pages.filter(|path| !path.ends_with("README.md")).map(|path| {
        let page = fs::read_to_string(&path).unwrap_or_default();
        let heading = page.lines().next().and_then(|line| line.strip_prefix("# ")?.split_once(": "));
        let (code, title) = heading.unwrap_or_else(|| panic!("{} has no title", path.display()));
        format!("| [{code}]({code}.md) | {title} |")
    });
    let missing: Vec<_> = rows.filter(|row| !index.lines().any(|line| line == row)).collect();
    assert!(missing.is_empty(), "not in docs/errors/README.md:\n{}", missing.join("\n"));
}

/// The pages prove nothing if `judge` takes anything.
#[test]
fn wrong_notes_are_noticed() {
    let kernel = |line: &str, refused| Example {
        before: 1,
        outcome: if refused { Outcome::Refused } else { Outcome::Accepted },
        target: None,
        source: format!("#[tma_kernel(threads = 32)]\nfn k(n: u32) {{\n    {line}\n}}\n"),
    };
    assert_eq!(judge(&kernel("let x = m; //~ TMA0101 is called `m`", true)), Ok(()));
    assert_eq!(judge(&kernel("let x = n;", false)), Ok(()));
    for (line, refused) in [
        ("let x = m; //~ TMA0102 is called `m`", true),
        ("let x = m; //~ TMA0101 is called `o`", true),
        ("let x = m; //~ TMA0101", true),
        ("let x = m;\n//~ TMA0101 is called `m`", true),
        ("let x = n; //~ TMA0101 is called `n`", true),
        ("let x = m + o; //~ TMA0101 is called `m`", true),
        ("let x = m;", true),
        ("let x = m;", false),
    ] {
        assert!(judge(&kernel(line, refused)).is_err(), "{line}");
    }
}
