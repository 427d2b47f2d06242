//! The pages of `docs/errors`, and the kernels that they show.

use std::fs;
use std::path::{Path, PathBuf};

use tma_codegen::diag::{Code, Diagnostics};
use tma_codegen::{Failure, Target, check, check_for, check_protocol};

/// A fenced block of a page.
pub(crate) struct Example {
    /// The page's line (from 1) before the block's first.
    #[allow(dead_code, reason = "not every test names the line")]
    pub(crate) before: usize,
    pub(crate) outcome: Outcome,
    /// The target, if the block names one: ```` ```rust,refused,sm_90 ````.
    pub(crate) target: Option<Target>,
    /// Whether the block is a whole kernel, whose protocol is judged too:
    /// ```` ```rust,refused,whole ````. Most pages show parts of kernels; those about the protocol
    /// show all of it.
    pub(crate) whole: bool,
    pub(crate) source: String,
    /// The expected diagnostics, in the order of their lines, from the hidden comments after the
    /// block: `<!-- CODE: a part of the message -->`.
    #[allow(dead_code, reason = "not every test compares them")]
    pub(crate) notes: Vec<Note>,
}

/// An error or a warning that a page expects.
#[derive(Debug)]
pub(crate) struct Note {
    #[allow(dead_code, reason = "not every test compares it")]
    pub(crate) code: String,
    /// A part of the message.
    #[allow(dead_code, reason = "not every test compares it")]
    pub(crate) text: String,
}

/// The outcome that a page shows for a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Accepted,
    /// Accepted, with warnings.
    Warned,
    Refused,
}

/// The diagnostics of a text that is Rust.
pub(crate) struct Judged {
    #[allow(dead_code, reason = "not every test counts them")]
    pub(crate) accepted_kernels: usize,
    #[allow(dead_code, reason = "not every test takes it apart")]
    pub(crate) diagnostics: Diagnostics,
    /// The diagnostics as they are shown.
    #[allow(dead_code, reason = "not every test reads it")]
    pub(crate) rendered: String,
}

impl Outcome {
    fn named(name: &str) -> Option<Self> {
        match name {
            "accepted" => Some(Self::Accepted),
            "warned" => Some(Self::Warned),
            "refused" => Some(Self::Refused),
            _ => None,
        }
    }
}

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors")
}

pub(crate) fn page(code: Code) -> Option<String> {
    fs::read_to_string(folder().join(format!("{code}.md"))).ok()
}

/// Returns the blocks that are kernels.
pub(crate) fn examples(page: &str) -> Vec<Example> {
    let mut found: Vec<Example> = vec![];
    let mut open = false;
    for (number, line) in page.lines().enumerate() {
        if let Some(begun) = line.strip_prefix("```rust,").and_then(|words| begin(words, number + 1)) {
            found.push(begun);
            open = true;
            continue;
        }
        let Some(example) = found.last_mut() else { continue };
        match line {
            "```" => open = false,
            line if open => example.source.extend([line, "\n"]),
            line => example.notes.extend(note(line)),
        }
    }
    found
}

/// Returns the example that a block begins: the words after the language are the outcome, and
/// optionally `whole` or a target.
fn begin(words: &str, before: usize) -> Option<Example> {
    let (outcome, more) = words.split_once(',').map_or((words, None), |(word, more)| (word, Some(more)));
    let whole = more == Some("whole");
    let target = more.filter(|_| !whole).map(|name| name.parse().expect("the target of a block"));
    let outcome = Outcome::named(outcome)?;
    Some(Example { before, outcome, target, whole, source: String::new(), notes: vec![] })
}

/// Parses the note in a hidden comment.
fn note(line: &str) -> Option<Note> {
    let (code, text) = line.strip_prefix("<!-- ")?.strip_suffix(" -->")?.split_once(": ")?;
    Some(Note { code: code.to_owned(), text: text.to_owned() })
}

/// The rules that a text is judged by.
#[derive(Clone, Copy, Debug)]
pub(crate) enum By {
    /// The rules for statements.
    Statements,
    /// The rules for statements and those of the protocol, as in the macro.
    Protocol,
    /// The rules for statements and those of a target, as in the build script.
    Target(Target),
}

impl Example {
    /// Returns the rules under which the page shows the example.
    pub(crate) fn by(&self) -> By {
        match self.target {
            Some(target) => By::Target(target),
            None if self.whole => By::Protocol,
            None => By::Statements,
        }
    }
}

/// Returns the errors and the warnings of a text. A text that is not Rust is an error.
pub(crate) fn judge(path: &str, source: &str, by: By) -> Result<Judged, String> {
    let result =
        match by {
            By::Protocol => check_protocol(path, source)
                .map(|found| (found.kernels.len(), found.warnings, found.rendered)),
            By::Statements => {
                check(path, source).map(|found| (found.kernels.len(), found.warnings, found.rendered))
            }
            By::Target(target) => check_for(path, source, target)
                .map(|found| (found.kernels.len(), found.warnings, found.rendered)),
        };
    let (accepted_kernels, diagnostics, rendered) = match result {
        Ok((kernels, warnings, rendered)) => (kernels, Diagnostics { errors: vec![], warnings }, rendered),
        Err(Failure::Rules { errors, warnings, rendered }) => (0, Diagnostics { errors, warnings }, rendered),
        Err(other) => return Err(other.to_string()),
    };
    Ok(Judged { accepted_kernels, diagnostics, rendered })
}
