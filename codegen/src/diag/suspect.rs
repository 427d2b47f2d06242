//! Findings that are not errors.

use std::fmt;

use super::{Diagnostic, Why};
use crate::ir::Span;

/// A possible mistake: for all that is known, it occurs in some launches or with some data.
#[derive(Clone, Debug)]
pub struct Suspect {
    /// The reason why it is not an error.
    pub why: Why,
    /// The diagnostic that it would be.
    pub(crate) diagnostic: Box<Diagnostic>,
}

impl Suspect {
    /// Returns the location.
    pub fn span(&self) -> Span {
        self.diagnostic.span
    }
}

impl fmt::Display for Suspect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (code, message) = (self.diagnostic.code(), self.diagnostic.message());
        match self.diagnostic.counterexample().filter(|launch| !launch.numbers.is_empty()) {
            Some(launch) => {
                write!(
                    f,
                    "{code} with {launch}: {message}; if no launch has these values, state it with `assume(..)`"
                )
            }
            None => write!(f, "{code}: {message}; if this cannot happen, rule it out with `assume(..)`"),
        }
    }
}
