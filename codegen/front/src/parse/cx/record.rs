//! The names that a kernel uses and declares, for the expansion.

use crate::ir::Local;
use crate::parse::names::{self, WordUse};

/// The names in the source of a kernel.
#[derive(Default)]
pub(in crate::parse) struct Record {
    /// The variables that the source names.
    pub(super) variables: Vec<Local>,
    /// The built-in names that the kernel uses.
    pub(super) words: Vec<WordUse>,
}

impl Record {
    pub(super) fn variable(&mut self, variable: Local) {
        self.variables.push(variable);
    }

    /// Records the use of a built-in, unless it is there already.
    pub(in crate::parse) fn word(&mut self, word: WordUse) {
        names::note(&mut self.words, word);
    }
}
