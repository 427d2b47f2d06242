//! Diagnostics with file positions, for a build script: it can show lines but no spans.

use std::fmt;
use std::path::{Path, PathBuf};

use super::{Code, Diagnostic};
use crate::escape;

/// A diagnostic of a source file. It is displayed on one line:
/// `src/lib.rs:12:9: TMA0015: ..; help: ..`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// Path of the file.
    pub path: PathBuf,
    /// Line, counted from 1.
    pub line: usize,
    /// Column, counted from 1.
    pub column: usize,
    /// Code of the broken rule.
    pub code: Code,
    /// The whole text, including the code, with one line for each part.
    pub text: String,
}

impl Located {
    /// Locates `diagnostic` in the file at `path`.
    pub fn new(path: &Path, diagnostic: &Diagnostic) -> Self {
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
