//! Pages of the book whose tables tests write.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// The line after which a page belongs to its test.
const MARK: &str = "<!-- What follows is written by a test. -->\n";

/// Compares the part of `docs/NAME` after its mark with `written`; `BLESS=1` writes it.
///
/// # Errors
///
/// A difference; a page that cannot be read or written, or has no mark.
pub fn ends_with(name: &str, written: &str) -> anyhow::Result<()> {
    let path = path(name);
    let page = fs::read_to_string(&path).with_context(|| format!("docs/{name}"))?;
    let (head, _) = page.split_once(MARK).with_context(|| format!("docs/{name} lacks the line `{MARK}`"))?;
    Ok(tma_golden::compare(&path, &format!("{head}{MARK}{written}"))?)
}

/// Compares `docs/NAME` with `written`; `BLESS=1` writes it.
///
/// # Errors
///
/// A difference, or a page that cannot be written.
pub fn is(name: &str, written: &str) -> anyhow::Result<()> {
    Ok(tma_golden::compare(&path(name), written)?)
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name)
}
