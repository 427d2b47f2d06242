//! Links to a part of a page name one of its headings. `cargo xtask book` checks the links of the
//! built book as well; this test does not need mdBook, and also covers the pages that are not in
//! the book.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use tma_tests_repository::{File, expect_none, files};

/// Returns the text of a page without its blocks of code.
fn prose(page: &str) -> String {
    let mut in_fence = false;
    let lines = page.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        in_fence ^= is_fence;
        !in_fence && !is_fence
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the anchor of each heading: its letters and digits in lower case, with hyphens for
/// spaces.
fn parts(page: &str) -> BTreeSet<String> {
    let headings = prose(page);
    let headings = headings.lines().filter(|line| line.starts_with('#'));
    let name = |heading: &str| {
        let text = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(name).collect()
}

/// Resolves the path of a link of the page at `from`. Both are relative to the root.
fn resolved(from: &str, file: &str) -> String {
    let mut path = PathBuf::from(from);
    if !file.is_empty() {
        path.pop();
        for component in Path::new(file).components() {
            match component {
                Component::ParentDir => drop(path.pop()),
                component => path.push(component),
            }
        }
    }
    path.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/")
}

/// Returns the links of a page to parts that are not headings, if the target page is known.
fn broken(page: &File, pages: &[File]) -> Vec<String> {
    // Every second piece between backquotes is code, and `a[i](x)` in code is not a link.
    let text: String = prose(&page.text).split('`').step_by(2).collect();
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    let is_broken = |target: &str| {
        let (file, part) = target.split_once('#')?;
        let path = resolved(&page.path, file);
        let linked = pages.iter().find(|page| page.path == path)?;
        let known = parts(&linked.text).contains(part);
        (!known).then(|| format!("{}: {path} has no heading `#{part}`", page.path))
    };
    targets.filter(|target| !target.contains("://")).filter_map(is_broken).collect()
}

#[test]
fn links_to_parts_of_pages_name_headings() {
    let mut pages = files();
    pages.retain(|file| file.path.ends_with(".md"));
    expect_none(pages.iter().flat_map(|page| broken(page, &pages)));
}

#[test]
fn links_to_no_heading_are_found() {
    let page = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
    let pages = [
        page(
            "docs/a.md",
            "[x](b.md#the-hosts-side), [y](b.md#no), [z](#top) `m[i](b.md#no)`\n# Top\n```\n# no\n```\n",
        ),
        page("docs/b.md", "# The host's side\n[up](../README.md#x-y_z) [none](a.md#no)\n"),
        page("README.md", "## `X` y_z!\n"),
    ];
    assert_eq!(broken(&pages[0], &pages), ["docs/a.md: docs/b.md has no heading `#no`"]);
    assert_eq!(broken(&pages[1], &pages), ["docs/b.md: docs/a.md has no heading `#no`"]);
}
