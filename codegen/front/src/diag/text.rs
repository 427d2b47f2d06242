//! The text of a mistake.

use super::Code;
use crate::ir::Span;

/// The text of a mistake, in parts.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    /// Code of the broken rule.
    pub(crate) code: Code,
    /// Message: what was found, and what was expected.
    pub(crate) message: String,
    /// Explanations, most of which point at further locations.
    pub(crate) notes: Vec<Note>,
    /// A suggestion for a correction.
    pub(crate) help: Option<String>,
}

/// An explanation of a mistake.
#[derive(Clone, Debug)]
pub struct Note {
    /// Location in the user's source, if the note has one.
    pub span: Option<Span>,
    /// Text of the note, such as "the barrier is declared here".
    pub text: String,
}

impl Text {
    /// Creates a text with only a message.
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), notes: vec![], help: None }
    }

    /// Sets the help.
    pub(crate) fn help(self, help: impl Into<String>) -> Self {
        self.help_if(Some(help))
    }

    /// Sets the help, if there is one.
    pub(crate) fn help_if(mut self, help: Option<impl Into<String>>) -> Self {
        self.help = help.map(Into::into);
        self
    }

    /// Adds a note with a location.
    pub(crate) fn label(mut self, span: Span, text: impl Into<String>) -> Self {
        self.notes.push(Note { span: Some(span), text: text.into() });
        self
    }

    /// Adds a note without a location.
    pub(crate) fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(Note { span: None, text: text.into() });
        self
    }
}
