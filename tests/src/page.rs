//! Pages and pictures that tests write, wholly or from a mark on.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// The line after which a page belongs to its test.
const MARK: &str = "<!-- What follows is written by a test. -->\n";

/// Compares a page, from its mark on, with `written`; `BLESS=1` writes it. `page` is a path from
/// the root of the repository.
///
/// # Errors
///
/// A difference; a page that cannot be read or written, or has no mark.
pub fn ends_with(page: &str, written: &str) -> anyhow::Result<()> {
    let path = path(page);
    let text = fs::read_to_string(&path).with_context(|| page.to_owned())?;
    let (head, _) = text.split_once(MARK).with_context(|| format!("{page} lacks the line `{MARK}`"))?;
    Ok(tma_golden::compare(&path, &format!("{head}{MARK}{written}"))?)
}

/// Compares a page with `written`; `BLESS=1` writes it. `page` is a path from the root of the
/// repository.
///
/// # Errors
///
/// A difference, or a page that cannot be written.
pub fn is(page: &str, written: &str) -> anyhow::Result<()> {
    Ok(tma_golden::compare(&path(page), written)?)
}

fn path(page: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(page)
}
