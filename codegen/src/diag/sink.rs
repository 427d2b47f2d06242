//! Collects the errors of a stage, so that the user sees all of them at once.

use super::Code;
use crate::ir::Span;

/// A broken rule: which, where, what was found and wanted, and what to do.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// The rule.
    pub code: Code,
    /// The place in the user's source.
    pub span: Span,
    /// What was found, and what is wanted.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
}

impl Diagnostic {
    /// Adds what to write instead.
    pub fn help(&mut self, help: impl Into<String>) {
        self.help = Some(help.into());
    }

    /// The whole text, on as many lines as it has parts.
    pub fn text(&self) -> String {
        match &self.help {
            Some(help) => format!("{}: {}\nhelp: {help}", self.code, self.message),
            None => format!("{}: {}", self.code, self.message),
        }
    }

    /// What makes it the same error as another.
    fn key(&self) -> (Code, String, String) {
        (self.code, format!("{:?}", self.span), self.message.clone())
    }
}

/// The errors so far.
#[derive(Debug, Default)]
#[must_use = "errors that nobody reads are errors that nobody sees"]
pub struct Sink {
    errors: Vec<Diagnostic>,
}

impl Sink {
    /// Adds an error; a help may be put on what it returns.
    pub fn error(&mut self, code: Code, span: Span, message: impl Into<String>) -> &mut Diagnostic {
        self.errors.push(Diagnostic { code, span, message: message.into(), help: None });
        let last = self.errors.len() - 1;
        &mut self.errors[last]
    }

    /// Adds an error that is made already.
    pub fn push(&mut self, error: Diagnostic) {
        self.errors.push(error);
    }

    /// How many errors there are.
    pub fn len(&self) -> usize {
        self.errors.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// All errors, in order, without repetitions: each instance of a kernel, and each call of a device
    /// function, reports the same mistake again.
    pub fn into_errors(self) -> Vec<Diagnostic> {
        let mut seen = std::collections::HashSet::new();
        self.errors.into_iter().filter(|error| seen.insert(error.key())).collect()
    }
}
