//! Reasons why a kernel cannot be rewritten.

use std::fmt;

/// The reason why a kernel cannot have probes, or be watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeError {
    /// The text has no kernel of this name whose body begins as the compiler writes it.
    NoBody(String),
    /// The launch has no threads.
    Empty,
    /// The call of `vprintf` in this line, counted from 1, is not as the compiler writes it; or,
    /// for line 0, the ring is too small for a record.
    Print(usize),
}

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoBody(entry) => write!(f, "the PTX has no kernel `{entry}` as this compiler writes it"),
            Self::Print(0) => write!(f, "the ring is smaller than one printed record"),
            Self::Print(line) => write!(f, "line {line} does not print as this compiler does"),
            Self::Empty => write!(f, "the launch has no threads"),
        }
    }
}

impl std::error::Error for ProbeError {}
