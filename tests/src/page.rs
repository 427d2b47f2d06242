//! Pages of the book whose tables tests write: what stands there is what was seen.

use std::path::Path;
use std::{env, fs};

use anyhow::Context;

/// The line after which a page belongs to its test.
const MARK: &str = "<!-- What follows is written by a test. -->\n";

/// The environment variable that has pages written, and its value.
const ACCEPT: (&str, &str) = ("TMA_PAGES", "accept");

/// That `docs/NAME` ends with `written`; where the environment accepts it, makes it so.
///
/// # Errors
///
/// What is there instead, with how to accept what was seen; a page that cannot be read, or has no line for it.
pub fn ends_with(name: &str, written: &str) -> anyhow::Result<()> {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs")).join(name);
    let page = fs::read_to_string(&path).with_context(|| format!("docs/{name}"))?;
    let (head, found) =
        page.split_once(MARK).with_context(|| format!("docs/{name} lacks the line `{MARK}`"))?;
    if found == written {
        return Ok(());
    }
    if env::var(ACCEPT.0).is_ok_and(|value| value == ACCEPT.1) {
        return fs::write(&path, format!("{head}{MARK}{written}")).with_context(|| format!("docs/{name}"));
    }
    anyhow::bail!("docs/{name} is not what was seen; {}={} accepts it:\n{written}", ACCEPT.0, ACCEPT.1)
}
