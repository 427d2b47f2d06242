//! Waits of warps whose time was over.

use std::fmt;

/// The waits of the warps of a kernel whose time was over. Displays one line for each wait
/// and its warps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadlockReport {
    /// The waits, as lines of text.
    pub waiting: Vec<String>,
    /// The number of warps that waited.
    pub warps: usize,
}

impl fmt::Display for DeadlockReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.waiting.iter().map(|line| format!("  {line}"));
        write!(f, "{}", lines.collect::<Vec<_>>().join("\n"))
    }
}
