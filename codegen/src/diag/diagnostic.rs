//! What is said of a kernel: which rule, where, what was found and wanted, and what to do.

use std::fmt;

use super::Code;
use crate::ir::Span;

/// A broken rule, or something that a kernel is better off without; its code tells which of the
/// two.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// The rule.
    pub code: Code,
    /// The place in the user's source.
    pub span: Span,
    /// What was found, and what is wanted.
    pub message: String,
    /// What explains it, mostly further places.
    pub notes: Vec<Note>,
    /// What to write instead.
    pub help: Option<String>,
}

/// What explains a [`Diagnostic`].
#[derive(Clone, Debug)]
pub struct Note {
    /// The place in the user's source that it is about, if there is one.
    pub span: Option<Span>,
    /// What is to be said, such as "the barrier is declared here".
    pub text: String,
}

impl Diagnostic {
    /// One with a place and a message only.
    pub fn new(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self { code, span, message: message.into(), notes: vec![], help: None }
    }

    /// Adds a place that explains it.
    pub fn label(&mut self, span: Span, text: impl Into<String>) -> &mut Self {
        self.notes.push(Note { span: Some(span), text: text.into() });
        self
    }

    /// Adds what explains it.
    pub fn note(&mut self, text: impl Into<String>) -> &mut Self {
        self.notes.push(Note { span: None, text: text.into() });
        self
    }

    /// Adds what to write instead.
    pub fn help(&mut self, help: impl Into<String>) {
        self.help = Some(help.into());
    }

    /// The whole text, on as many lines as it has parts. Where only the first place can be shown,
    /// as in a macro's error, it names the lines of the others.
    pub fn text(&self) -> String {
        let mut text = Coded(self.code, &self.message).to_string();
        for Note { span, text: note } in &self.notes {
            text += &match span {
                Some(span) => format!("\nnote: {note}: line {}", span.start().line),
                None => format!("\nnote: {note}"),
            };
        }
        if let Some(help) = &self.help {
            text += &format!("\nhelp: {help}");
        }
        text
    }
}

/// A text with the code that it is about in front: the one place that writes both.
pub(crate) struct Coded<T>(pub(crate) Code, pub(crate) T);

impl<T: fmt::Display> fmt::Display for Coded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0, self.1)
    }
}
