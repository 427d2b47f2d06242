//! Escapes foreign names in texts that are read line by line: directives for cargo, comments in
//! PTX, and messages.

use std::path::Path;

/// The start of a comment that lists the shared variables accessed in a source line. The line
/// number follows.
pub const SHARED_LINE: &str = "// shared line ";

/// Escapes control characters, including line breaks, as in Rust strings.
pub fn controls(text: &str) -> String {
    escape(text, char::is_control)
}

/// Formats a path for a message.
pub fn path(path: &Path) -> String {
    controls(&path.to_string_lossy())
}

/// Formats the path of a source file for comments and strings in PTX. PTX strings have no escapes,
/// so a quote would end one (tested with ptxas 13.0).
pub fn source(path: &str) -> String {
    controls(path).replace('"', "\\u{22}")
}

/// Escapes `text` for a comment in PTX. ptxas accepts only ASCII, even there.
pub fn ascii(text: &str) -> String {
    escape(text, |c| !c.is_ascii() || c.is_ascii_control())
}

fn escape(text: &str, is_escaped: impl Fn(char) -> bool) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if is_escaped(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}
