//! A preprocessor of mdBook for links that leave `docs/`, such as those to examples.
//!
//! If `git-repository-url` is set, as it is when the book is published, the links lead to that
//! repository's default branch. Otherwise they lead to the files of this checkout.
//!
//! Links to the page of a folder, `README.md`, lead to the page that mdBook makes of it,
//! `index.md`.

use std::io::{Read, Write};

use anyhow::{Context, Result};
use serde_json::Value;

/// The folder of the pages, relative to the repository's root.
const PAGES: &str = "docs";
/// The table of contents, relative to the repository's root.
const CONTENTS: &str = "docs/SUMMARY.md";

/// Reads `[context, book]` and writes the book.
pub(super) fn run(input: impl Read, output: impl Write) -> Result<()> {
    let [context, mut book]: [Value; 2] =
        serde_json::from_reader(input).context("cannot parse the input from mdBook")?;
    let root = context["root"].as_str().context("the input from mdBook has no `root`")?;
    let repository = match context["config"]["output"]["html"]["git-repository-url"].as_str() {
        // Hosts accept `blob` for folders too, and redirect.
        Some(url) => format!("{}/blob/HEAD", url.trim_end_matches('/')),
        None => format!("file://{root}"),
    };
    rewrite(&mut book, &repository);
    serde_json::to_writer(output, &book).context("cannot write the output for mdBook")
}

/// Rewrites every chapter in `value`. A chapter is an object with a text and the path of its
/// source.
fn rewrite(value: &mut Value, repository: &str) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| rewrite(item, repository)),
        Value::Object(fields) => {
            if let [Some(Value::String(text)), Some(Value::String(path))] =
                ["content", "source_path"].map(|name| fields.get(name))
            {
                let text = page(text, path, repository);
                fields.insert("content".to_owned(), text.into());
            }
            fields.values_mut().for_each(|field| rewrite(field, repository));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the text of the page at `path` (relative to `docs/`) with its links rewritten.
fn page(text: &str, path: &str, repository: &str) -> String {
    let mut in_fence = false;
    let lines = text.split_inclusive('\n').map(|line| {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
        }
        if in_fence { line.to_owned() } else { links_of_line(line, path, repository) }
    });
    lines.collect()
}

/// Returns a line with its links rewritten. `](` precedes the target of a link, except within code.
fn links_of_line(line: &str, path: &str, repository: &str) -> String {
    if let Some((name, rest)) = line.split_once("]: ")
        && name.starts_with('[')
    {
        // `[name]: target` defines the target for links that use its name.
        let (target, rest) = rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len()));
        let target = moved(target, path, repository).unwrap_or_else(|| target.to_owned());
        return format!("{name}]: {target}{rest}");
    }
    let mut written = String::new();
    for (number, part) in line.split('`').enumerate() {
        if number > 0 {
            written.push('`');
        }
        if number % 2 == 1 {
            written.push_str(part);
            continue;
        }
        let mut pieces = part.split("](");
        written.push_str(pieces.next().unwrap_or_default());
        for piece in pieces {
            let (target, rest) = piece.split_at(piece.find([')', ' ']).unwrap_or(piece.len()));
            written.push_str("](");
            written.push_str(&moved(target, path, repository).unwrap_or_else(|| target.to_owned()));
            written.push_str(rest);
        }
    }
    written
}

/// Returns the target that a link of the page at `path` must have in the book, if it differs.
fn moved(target: &str, path: &str, repository: &str) -> Option<String> {
    if target.contains("://") || target.starts_with(['#', '/']) {
        return None;
    }
    let (file, part) = target.split_at(target.find('#').unwrap_or(target.len()));
    let mut steps: Vec<_> = PAGES.split('/').chain(path.split('/')).collect();
    steps.pop();
    for step in file.split('/') {
        match step {
            "." | "" => {}
            ".." => drop(steps.pop()),
            step => steps.push(step),
        }
    }
    let resolved = steps.join("/");
    // The table of contents is not a page of the book: it is the sidebar.
    if steps.first() != Some(&PAGES) || resolved == CONTENTS {
        return Some(format!("{repository}/{resolved}{part}"));
    }
    let folder = file.strip_suffix("README.md")?;
    Some(format!("{folder}index.md{part}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "https://example.org/tma/blob/HEAD";

    #[test]
    fn links_within_the_book_are_unchanged() {
        for line in [
            "[a](host.md), [b](errors/TMA0203.md#what-to-do), [c](#part), [d](https://example.org/x)",
            "![picture](layouts/narrow.svg) and `tiles[i](../x)`",
        ] {
            assert_eq!(links_of_line(line, "simulator.md", HOST), line);
        }
        assert_eq!(links_of_line("[up](../host.md)", "errors/TMA0203.md", HOST), "[up](../host.md)");
    }

    #[test]
    fn the_page_of_a_folder_is_its_index() {
        let line = "[errors](errors/README.md) and [first](README.md#more)";
        let wanted = "[errors](errors/index.md) and [first](index.md#more)";
        assert_eq!(links_of_line(line, "host.md", HOST), wanted);
    }

    #[test]
    fn links_out_of_the_book_lead_to_the_repository() {
        let line = "[`a`](../examples/src/bin/a.rs#L3), [b](host.md), [all](SUMMARY.md)";
        let wanted =
            format!("[`a`]({HOST}/examples/src/bin/a.rs#L3), [b](host.md), [all]({HOST}/docs/SUMMARY.md)");
        assert_eq!(links_of_line(line, "x.md", HOST), wanted);
        let line = "[stream]: ../tma-runtime/src/device/stream.rs\n";
        let wanted = format!("[stream]: {HOST}/tma-runtime/src/device/stream.rs\n");
        assert_eq!(links_of_line(line, "x.md", HOST), wanted);
        let line = "[tests](../../tests/README.md \"all kinds\")";
        let wanted = format!("[tests]({HOST}/tests/README.md \"all kinds\")");
        assert_eq!(links_of_line(line, "errors/TMA0203.md", HOST), wanted);
    }

    #[test]
    fn links_are_rewritten_outside_of_code() -> Result<()> {
        let text = "[a](../b.rs)\n```rust\n// [a](../b.rs)\n```\n";
        let inside = "[b](../b.md)\n";
        let chapter = serde_json::json!({ "content": inside, "source_path": "errors/x.md", "sub_items": [
            { "Chapter": { "content": text, "source_path": "y.md" } },
            { "PartTitle": "Guide" },
        ] });
        let rewritten = |html: Value| -> Result<Value> {
            let context = serde_json::json!({ "root": "/tree", "config": { "output": { "html": html } } });
            let book = serde_json::json!([context, { "items": [{ "Chapter": chapter }] }]);
            let mut output = vec![];
            run(book.to_string().as_bytes(), &mut output)?;
            let written: Value = serde_json::from_slice(&output)?;
            Ok(written["items"][0]["Chapter"].clone())
        };
        let outer = rewritten(serde_json::json!({}))?;
        assert_eq!(outer["content"], inside);
        let inner = &outer["sub_items"][0]["Chapter"]["content"];
        assert_eq!(*inner, text.replacen("../b.rs", "file:///tree/b.rs", 1));
        let outer = rewritten(serde_json::json!({ "git-repository-url": "https://example.org/tma/" }))?;
        let inner = &outer["sub_items"][0]["Chapter"]["content"];
        assert_eq!(*inner, text.replacen("../b.rs", &format!("{HOST}/b.rs"), 1));
        Ok(())
    }
}
