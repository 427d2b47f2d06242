//! Pages of the book with tables that tests write from observed results.

use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::Context;

/// The line after which a page belongs to its test.
const MARK: &str = "<!-- What follows is written by a test. -->\n";

/// The environment variable that lets tests write pages, and its value.
const ACCEPT: (&str, &str) = ("TMA_PAGES", "accept");

/// Checks that `docs/NAME` ends with `written`, or writes it if the environment accepts changes.
///
/// # Errors
///
/// The observed text, with how to accept it; or a page that cannot be read, or lacks the mark.
pub fn ends_with(name: &str, written: &str) -> anyhow::Result<()> {
    let path = path(name);
    let page = fs::read_to_string(&path).with_context(|| format!("docs/{name}"))?;
    let (head, found) =
        page.split_once(MARK).with_context(|| format!("docs/{name} lacks the line `{MARK}`"))?;
    if found == written {
        return Ok(());
    }
    let text = format!("{head}{MARK}{written}");
    accept(&path, &text).with_context(|| format!("docs/{name} is not what was seen:\n{written}"))
}

/// Checks that `docs/NAME` is `written`, or writes it if the environment accepts changes.
///
/// # Errors
///
/// The errors of [`ends_with`].
pub fn is(name: &str, written: &str) -> anyhow::Result<()> {
    let path = path(name);
    if fs::read_to_string(&path).is_ok_and(|found| found == written) {
        return Ok(());
    }
    accept(&path, written).with_context(|| format!("docs/{name} is not what was made"))
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name)
}

/// Writes the page if the environment accepts changes.
fn accept(path: &Path, text: &str) -> anyhow::Result<()> {
    let (variable, value) = ACCEPT;
    anyhow::ensure!(
        env::var(variable).is_ok_and(|found| found == value),
        "{variable}={value} accepts what is new"
    );
    Ok(fs::write(path, text)?)
}
