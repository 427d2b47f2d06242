//! What is said of a kernel: which mistake, and where.

use std::fmt;

use super::mistake::{Counterexample, Mistake, Protocol};
use super::text::Text;
use super::{Code, Note};
use crate::ir::Span;

/// A broken rule, or something that a kernel is better off without; its code tells which of the
/// two.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// What is wrong.
    pub(crate) mistake: Mistake,
    /// The place in the user's source.
    pub span: Span,
    /// The instances that have it, where others have it not.
    instances: Vec<String>,
}

impl Diagnostic {
    /// A mistake at a place.
    pub(crate) fn new(mistake: impl Into<Mistake>, span: Span) -> Self {
        Self { mistake: mistake.into(), span, instances: vec![] }
    }

    /// The same, of these instances alone.
    pub(super) fn in_instances(self, instances: Vec<String>) -> Self {
        Self { instances, ..self }
    }

    /// The rule.
    pub fn code(&self) -> Code {
        self.mistake.text().code
    }

    /// What was found, and what is wanted.
    pub fn message(&self) -> String {
        self.parts().message
    }

    /// What explains it, mostly further places.
    pub fn notes(&self) -> Vec<Note> {
        self.mistake.text().notes
    }

    /// What to write instead.
    pub fn help(&self) -> Option<String> {
        self.mistake.text().help
    }

    /// A launch that shows it, if it is about the order in which threads do things.
    pub fn counterexample(&self) -> Option<&Counterexample> {
        self.protocol().map(|protocol| &protocol.launch)
    }

    /// What is said of the protocol of barriers, if it is about that.
    pub(crate) fn protocol(&self) -> Option<&Protocol> {
        if let Mistake::Protocol(protocol) = &self.mistake { Some(protocol) } else { None }
    }

    /// All that is said of it.
    pub(super) fn parts(&self) -> Text {
        let mut text = self.mistake.text();
        if !self.instances.is_empty() {
            let noun = if self.instances.len() == 1 { "instance" } else { "instances" };
            let names: Vec<_> = self.instances.iter().map(|name| format!("`{name}`")).collect();
            text.message += &format!(" (in the {noun} {})", names.join(", "));
        }
        text
    }

    /// Another place: in the same line by its column.
    fn place_of(&self, other: Span) -> String {
        let (own, at) = (self.span.start(), other.start());
        if own.line == at.line && own.column != at.column {
            return format!("line {}, column {}", at.line, at.column + 1);
        }
        format!("line {}", at.line)
    }

    /// The whole text, on as many lines as it has parts. Where only the first place can be shown,
    /// as in a macro's error, it names the lines of the others.
    pub fn text(&self) -> String {
        let Text { code, message, notes, help } = self.parts();
        let mut text = Coded(code, message).to_string();
        for Note { span, text: note } in notes {
            text += &match span {
                Some(span) => format!("\nnote: {note}: {}", self.place_of(span)),
                None => format!("\nnote: {note}"),
            };
        }
        if let Some(help) = help {
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
