//! Checks the links of the built book: each must lead to an existing file, and to a part that
//! exists in it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Component, Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

/// The links of a page, and the parts of it that others can link to.
struct Page {
    targets: Vec<String>,
    parts: BTreeSet<String>,
}

/// Checks every local link of every page in `folder`, and returns their number.
pub(super) fn check(folder: &Path) -> Result<usize> {
    let mut pages = BTreeMap::new();
    read(folder, &mut pages)?;
    // The page for unknown addresses is served at any address, so its links cannot be resolved.
    pages.remove(&folder.join("404.html"));
    ensure!(!pages.is_empty(), "{} has no pages", folder.display());

    let mut followed = 0;
    let mut broken = vec![];
    for (path, page) in &pages {
        for target in page.targets.iter().filter(|target| is_local(target)) {
            followed += 1;
            if let Some(why) = problem(path, target, &pages) {
                broken.push(format!("{}: {target}: {why}", path.display()));
            }
        }
    }
    ensure!(broken.is_empty(), "{} links of the book are broken:\n{}", broken.len(), broken.join("\n"));
    Ok(followed)
}

/// Reads every `.html` file in `folder` and its subfolders.
fn read(folder: &Path, pages: &mut BTreeMap<PathBuf, Page>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            read(&path, pages)?;
        } else if path.extension().is_some_and(|extension| extension == "html") {
            let text =
                fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            pages.insert(path, Page::of(&text));
        }
    }
    Ok(())
}

impl Page {
    fn of(html: &str) -> Self {
        let targets = ["href", "src"].into_iter().flat_map(|name| attributes(html, name));
        Self {
            targets: targets.map(str::to_owned).collect(),
            parts: attributes(html, "id").map(str::to_owned).collect(),
        }
    }
}

/// Returns all values of an attribute. mdBook quotes all values, and escapes `"` in text.
fn attributes<'a>(html: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let start = format!(" {name}=\"");
    let starts: Vec<_> = html.match_indices(&start).map(|(at, _)| at + start.len()).collect();
    starts.into_iter().filter_map(|at| html[at..].split('"').next())
}

fn is_local(target: &str) -> bool {
    !["http:", "https:", "mailto:", "data:", "javascript:"].iter().any(|scheme| target.starts_with(scheme))
}

/// Describes the problem of a link on the page at `path`, if there is one.
fn problem(path: &Path, target: &str, pages: &BTreeMap<PathBuf, Page>) -> Option<String> {
    let (file, part) = target.split_once('#').map_or((target, None), |(file, part)| (file, Some(part)));
    let linked = match file.strip_prefix("file://") {
        Some(file) => PathBuf::from(file),
        None if file.is_empty() => path.to_owned(),
        None => normal(&path.parent()?.join(file)),
    };
    if !linked.exists() {
        return Some("no such file".to_owned());
    }
    let part = part.filter(|part| !part.is_empty())?;
    let known = pages.get(&linked).is_none_or(|page| page.parts.contains(part));
    (!known).then(|| format!("the page has no anchor `{part}`"))
}

/// Removes `..` from the path as a browser does: without access to the disk.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(normal.pop()),
            component => normal.push(component),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_links_are_found() -> Result<()> {
        let folder = std::env::temp_dir().join(format!("tma-book-{}", std::process::id()));
        fs::create_dir_all(folder.join("sub"))?;
        let index = "<h1 id=\"top\"></h1><a href=\"sub/x.html#there\">x</a><a href=\"#top\">y</a>\
                     <a href=\"https://example.org/none\">z</a>";
        fs::write(folder.join("index.html"), index)?;
        fs::write(folder.join("sub/x.html"), "<p id=\"there\"><a href=\"../index.html\">up</a></p>")?;
        let followed = check(&folder)?;

        let wrong = "<a href=\"gone.html\">a</a><img src=\"no.svg\"><a href=\"../index.html#no\">b</a>";
        fs::write(folder.join("sub/y.html"), wrong)?;
        let broken = check(&folder).expect_err("three links are broken").to_string();
        fs::remove_dir_all(&folder)?;

        assert_eq!(followed, 3);
        assert!(broken.starts_with("3 links of the book are broken"), "{broken}");
        for target in ["gone.html: no such file", "no.svg: no such", "the page has no anchor `no`"] {
            assert!(broken.contains(target), "{broken}");
        }
        Ok(())
    }
}
