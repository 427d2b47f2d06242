//! Names that others chose, in texts that are read line by line: cargo's directives, PTX's
//! comments, messages.

use std::path::Path;

/// Begins a comment that says which shared variables the threads of a source line access: the
/// line's number follows.
pub(crate) const SHARED_LINE: &str = "// shared line ";

/// `text` with control characters, line breaks among them, as Rust would write them in a string.
pub(crate) fn controls(text: &str) -> String {
    escape(text, char::is_control)
}

/// A path for a message.
pub(crate) fn path(path: &Path) -> String {
    controls(&path.to_string_lossy())
}

/// The path of a source file, for PTX's comments and strings. A string has no escapes: a quote ends
/// it (tried with ptxas 13.0).
#[cfg(feature = "llvm")]
pub(crate) fn source(path: &str) -> String {
    controls(path).replace('"', "\\u{22}")
}

/// `text` as a comment in PTX may hold it: ptxas takes nothing but ASCII, not even there.
#[cfg(feature = "llvm")]
pub(crate) fn ascii(text: &str) -> String {
    escape(text, |c| !c.is_ascii() || c.is_ascii_control())
}

fn escape(text: &str, is_escaped: impl Fn(char) -> bool) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if is_escaped(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}
