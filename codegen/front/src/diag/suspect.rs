//! Findings that are not errors.

use std::fmt;

use super::{Diagnostic, UndecidedReason};
use crate::ir::Span;

/// A possible mistake: for all that is known, it occurs in some launches or with some data.
#[derive(Clone, Debug)]
pub struct Suspect {
    /// The reason why it is not an error.
    pub reason: UndecidedReason,
    /// The diagnostic that it would be.
    pub diagnostic: Box<Diagnostic>,
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
                let excluded = self.diagnostic.protocol().and_then(|protocol| protocol.excluded.as_ref());
                let add = match excluded {
                    Some(condition) => format!("add `assume({condition})`"),
                    None => "rule them out with `assume(..)`".to_owned(),
                };
                write!(f, "{code} with {launch}: {message}; if no launch has these values, {add}")
            }
            None => write!(f, "{code}: {message}; if this cannot happen, rule it out with `assume(..)`"),
        }
    }
}
