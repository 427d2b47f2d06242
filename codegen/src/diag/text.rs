//! What is said of a mistake.

use super::Code;
use crate::ir::Span;

/// The text of a mistake.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    /// The rule.
    pub(crate) code: Code,
    /// What was found, and what is wanted.
    pub(crate) message: String,
    /// What explains it, mostly further places.
    pub(crate) notes: Vec<Note>,
    /// What to write instead.
    pub(crate) help: Option<String>,
}

/// What explains a mistake.
#[derive(Clone, Debug)]
pub struct Note {
    /// The place in the user's source that it is about, if there is one.
    pub span: Option<Span>,
    /// What is to be said, such as "the barrier is declared here".
    pub text: String,
}

impl Text {
    /// One with a message only.
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), notes: vec![], help: None }
    }

    /// Adds what to write instead.
    pub(crate) fn help(self, help: impl Into<String>) -> Self {
        self.help_if(Some(help))
    }

    /// Adds what to write instead, if that is known.
    pub(crate) fn help_if(mut self, help: Option<impl Into<String>>) -> Self {
        self.help = help.map(Into::into);
        self
    }

    /// Adds a place that explains it.
    pub(crate) fn label(mut self, span: Span, text: impl Into<String>) -> Self {
        self.notes.push(Note { span: Some(span), text: text.into() });
        self
    }

    /// Adds what explains it.
    pub(crate) fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(Note { span: None, text: text.into() });
        self
    }
}
