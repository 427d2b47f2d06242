//! Findings that are no errors.

use std::fmt;

use super::{Diagnostic, Why};
use crate::ir::Span;

/// Something that goes wrong in some launches or with some data, for all that is known.
#[derive(Clone, Debug)]
pub struct Suspect {
    /// Why it is no error.
    pub why: Why,
    /// What it would be.
    pub(crate) diagnostic: Box<Diagnostic>,
}

impl Suspect {
    /// Where.
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
