//! A diagnostic: a mistake and its location.

use std::fmt;

use super::mistake::{Counterexample, Mistake, Protocol};
use super::text::Text;
use super::{Code, Note};
use crate::ir::Span;

/// A diagnostic of a kernel. Its code determines whether it is an error or a warning.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// The mistake.
    pub mistake: Mistake,
    /// Location in the user's source.
    pub span: Span,
    /// The affected instances, if not all are.
    instances: Vec<String>,
}

impl Diagnostic {
    /// Creates a diagnostic for a mistake at a location.
    pub fn new(mistake: impl Into<Mistake>, span: Span) -> Self {
        Self { mistake: mistake.into(), span, instances: vec![] }
    }

    /// Restricts the diagnostic to these instances.
    pub(super) fn in_instances(self, instances: Vec<String>) -> Self {
        Self { instances, ..self }
    }

    /// Returns the code of the broken rule.
    pub fn code(&self) -> Code {
        self.mistake.text().code
    }

    /// Returns the message: what was found, and what was expected.
    pub fn message(&self) -> String {
        self.parts().message
    }

    /// Returns the notes, most of which point at further locations.
    pub fn notes(&self) -> Vec<Note> {
        self.mistake.text().notes
    }

    /// Returns a suggestion for a correction.
    pub fn help(&self) -> Option<String> {
        self.mistake.text().help
    }

    /// Returns the reference to the rule of synchronisation that the kernel breaks, if it is one
    /// that the simulator checks as well.
    pub fn reference(&self) -> Option<String> {
        let code = self.code();
        let rule = code.rule().filter(|rule| Code::of(*rule) == code)?;
        Some(rule.reference())
    }

    /// Returns a launch that demonstrates the mistake, if it concerns the order of the threads'
    /// operations.
    pub fn counterexample(&self) -> Option<&Counterexample> {
        self.protocol().map(|protocol| &protocol.launch)
    }

    /// Returns the mistake as one in the protocol of barriers, if it is one.
    pub fn protocol(&self) -> Option<&Protocol> {
        if let Mistake::Protocol(protocol) = &self.mistake { Some(protocol) } else { None }
    }

    /// Returns all parts of the text.
    pub(super) fn parts(&self) -> Text {
        let mut text = self.mistake.text();
        if !self.instances.is_empty() {
            let noun = if self.instances.len() == 1 { "instance" } else { "instances" };
            let names: Vec<_> = self.instances.iter().map(|name| format!("`{name}`")).collect();
            text.message += &format!(" (in the {noun} {})", names.join(", "));
        }
        text
    }

    /// Describes another location: by its column if it is on the same line, otherwise by its line.
    fn describe_location(&self, other: Span) -> String {
        let (own, at) = (self.span.start(), other.start());
        if own.line == at.line && own.column != at.column {
            return format!("line {}, column {}", at.line, at.column + 1);
        }
        format!("line {}", at.line)
    }

    /// Returns the whole text, with one line for each part. Some hosts can only show the first
    /// location, for example the error of a macro, so the text contains the line numbers of the
    /// others.
    pub fn text(&self) -> String {
        let Text { code, message, notes, help } = self.parts();
        let mut text = Coded(code, message).to_string();
        for Note { span, text: note } in notes {
            text += &match span {
                Some(span) => format!("\nnote: {note}: {}", self.describe_location(span)),
                None => format!("\nnote: {note}"),
            };
        }
        if let Some(help) = help {
            text += &format!("\nhelp: {help}");
        }
        if let Some(reference) = self.reference() {
            text += &format!("\n{reference}");
        }
        text
    }
}

/// A text prefixed with its code. No other place formats the two together.
pub struct Coded<T>(pub Code, pub T);

impl<T: fmt::Display> fmt::Display for Coded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0, self.1)
    }
}
