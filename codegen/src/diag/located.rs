//! Diagnostics of files, for a build script: it has no spans to show, only lines.

use std::fmt;
use std::path::{Path, PathBuf};

use super::{Code, Diagnostic};
use crate::escape;

/// A diagnostic of a source file. It is displayed in one line: `src/lib.rs:12:9: TMA0015: ..; help:
/// ..`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The file.
    pub path: PathBuf,
    /// The line, counted from 1.
    pub line: usize,
    /// The column, counted from 1.
    pub column: usize,
    /// The rule.
    pub code: Code,
    /// The whole text, with the code; its parts are lines.
    pub text: String,
}

impl Located {
    /// `diagnostic`, of the file at `path`.
    pub(crate) fn new(path: &Path, diagnostic: &Diagnostic) -> Self {
        let start = diagnostic.span.start();
        Self {
            path: path.to_owned(),
            line: start.line,
            column: start.column + 1,
            code: diagnostic.code(),
            text: diagnostic.text(),
        }
    }
}

impl fmt::Display for Located {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.text.replace('\n', "; ");
        write!(f, "{}:{}:{}: {text}", escape::path(&self.path), self.line, self.column)
    }
}
