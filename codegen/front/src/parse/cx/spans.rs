//! The spans of time that have begun and not ended, while a function is parsed.

use crate::ir::Span;

/// A span that has begun.
#[derive(Clone)]
pub(in crate::parse) struct OpenSpan {
    pub(in crate::parse) name: String,
    /// The place of its `trace_span!`.
    pub(in crate::parse) span: Span,
    /// The number of scopes around it.
    pub(super) scopes: usize,
    /// The number of loops and labelled blocks around it.
    pub(super) inside: usize,
}

/// The spans of a function, innermost last.
#[derive(Default)]
pub(super) struct OpenSpans(Vec<OpenSpan>);

impl OpenSpans {
    pub(super) fn open(&mut self, span: OpenSpan) {
        self.0.push(span);
    }

    /// Removes the spans of the scope with this depth, and returns them, innermost first.
    pub(super) fn close(&mut self, scopes: usize) -> Vec<OpenSpan> {
        let first = self.0.iter().position(|span| span.scopes >= scopes).unwrap_or(self.0.len());
        let mut closed = self.0.split_off(first);
        closed.reverse();
        closed
    }

    /// Returns the spans inside at least this many loops and labelled blocks, innermost first.
    pub(super) fn inside(&self, most: usize) -> Vec<OpenSpan> {
        self.0.iter().rev().filter(|span| span.inside >= most).cloned().collect()
    }
}
