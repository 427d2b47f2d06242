//! `cargo tma explain`.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::arguments::Explain;
use crate::output::Output;
use crate::style::{bold, dim};

/// The codes with their pages, in order.
const PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// Shows the page of a code, or lists all codes.
pub(crate) fn run(options: &Explain) -> Result<Output> {
    let Some(code) = &options.code else { return Ok(list()) };
    let wanted = normal(code);
    let (code, page) = PAGES.iter().find(|(code, _)| *code == wanted).with_context(|| {
        format!("there is no error `{code}`; pass a code such as TMA0203, or none to list all")
    })?;
    let page = visible(page);
    Ok(Output::clean(rendered(&page), json!({ "code": code, "title": title(&page), "page": page })))
}

/// Normalises `tma0203`, `0203` or `203` to `TMA0203`.
fn normal(code: &str) -> String {
    let upper = code.to_ascii_uppercase();
    let digits = upper.strip_prefix("TMA").unwrap_or(&upper);
    format!("TMA{digits:0>4}")
}

fn list() -> Output {
    let text = PAGES.iter().map(|(code, page)| format!("{}  {}\n", bold(code), title(page))).collect();
    let json = PAGES.iter().map(|(code, page)| json!({ "code": code, "title": title(page) }));
    Output::clean(text, Value::Array(json.collect()))
}

/// Returns the heading's text after the code.
fn title(page: &str) -> &str {
    let heading = page.lines().next().unwrap_or_default();
    heading.split_once(": ").map_or(heading, |(_, title)| title)
}

/// Removes the page's hidden comments, which are for the tests, and the empty lines after them.
fn visible(page: &str) -> String {
    let mut lines = page.lines().peekable();
    let mut text = String::new();
    while let Some(line) = lines.next() {
        if !line.starts_with("<!-- ") {
            text.extend([line, "\n"]);
        } else {
            lines.next_if(|next| next.is_empty());
        }
    }
    text
}

/// Renders Markdown for a terminal: headings and `**..**` are bold, code is indented and dim.
fn rendered(page: &str) -> String {
    let (mut text, mut in_code) = (String::new(), false);
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
            continue;
        }
        let line = match line.strip_prefix('#') {
            _ if in_code && line.is_empty() => String::new(),
            _ if in_code => dim(format!("    {line}")),
            Some(heading) => bold(heading.trim_start_matches('#').trim()),
            None => emphasis(line).map_or_else(|| line.to_owned(), bold),
        };
        text += &format!("{line}\n");
    }
    text
}

/// Returns the text of a line that is bold as a whole.
fn emphasis(line: &str) -> Option<&str> {
    line.strip_prefix("**")?.strip_suffix("**")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_taken_as_people_write_them() {
        for code in ["TMA0203", "tma0203", "0203", "203"] {
            let output = run(&Explain { code: Some(code.to_owned()) }).unwrap();
            assert_eq!(output.json["code"], "TMA0203");
            assert!(output.text.contains("swizzle"), "{}", output.text);
        }
        let error = run(&Explain { code: Some("E0308".to_owned()) }).unwrap_err().to_string();
        assert!(error.contains("no error `E0308`") && error.contains("list all"), "{error}");
    }

    #[test]
    fn all_codes_are_listed_in_order() {
        let codes: Vec<_> = PAGES.iter().map(|(code, _)| *code).collect();
        assert!(codes.len() > 100 && codes.is_sorted(), "{codes:?}");
        let text = list().text;
        assert!(text.contains("TMA0001") && text.lines().count() == codes.len(), "{text}");
    }

    #[test]
    fn pages_are_shown_without_the_marks_of_tests() {
        for (code, _) in PAGES {
            let output = run(&Explain { code: Some((*code).to_owned()) }).unwrap();
            let text = anstream::adapter::strip_str(&output.text).to_string();
            let json = output.json["page"].as_str().unwrap_or_default().to_owned();
            for mark in ["<!--", "//~"] {
                assert!(!text.contains(mark) && !json.contains(mark), "{code}: {text}");
            }
            assert!(!text.contains("**"), "{code}: {text}");
        }
        assert_eq!(visible("a\n\n<!-- b: c -->\n<!-- d: e -->\n\nf\n"), "a\n\nf\n");
    }

    #[test]
    fn fences_become_indented_code() {
        let text =
            anstream::adapter::strip_str(&rendered("# A: b\n\nText.\n\n```rust\nlet a;\n\n# no\n```\n"))
                .to_string();
        assert_eq!(text, "A: b\n\nText.\n\n    let a;\n\n    # no\n");
    }
}
