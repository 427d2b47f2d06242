//! Spans of the user's source.

use proc_macro2::LineColumn;
use quote::ToTokens;

/// A range of tokens in the source, kept as its first and last token. On stable Rust a macro cannot
/// join spans, but an error whose first and last token carry these is shown as one range.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    first: proc_macro2::Span,
    last: proc_macro2::Span,
}

/// The place of a span, by which spans are compared: they have no equality of their own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The file. Outside of rustc it is a name that each parsed text has of its own.
    file: String,
    start: LineColumn,
    end: LineColumn,
}

impl Span {
    /// Returns the span from the first to the last of `tokens`.
    pub fn of(tokens: &impl ToTokens) -> Self {
        let mut all = tokens.to_token_stream().into_iter();
        let Some(first) = all.next() else { return Self::call_site() };
        let last = all.last().map_or(first.span(), |last| last.span());
        Self { first: first.span(), last }
    }

    /// Returns the span from the beginning of `first` to the end of `last`.
    pub(crate) fn between(first: Self, last: Self) -> Self {
        Self { first: first.first, last: last.last }
    }

    /// Returns the span of the macro invocation, for items without one of their own.
    pub fn call_site() -> Self {
        proc_macro2::Span::call_site().into()
    }

    /// Returns the span of the first token.
    pub fn first(self) -> proc_macro2::Span {
        self.first
    }

    /// Returns the span of the last token.
    pub fn last(self) -> proc_macro2::Span {
        self.last
    }

    /// Returns the text of the first token, if the source is known.
    pub fn first_text(self) -> Option<String> {
        self.first.source_text()
    }

    /// Returns line (from 1) and column (from 0) of the beginning.
    pub fn start(self) -> LineColumn {
        self.first.start()
    }

    /// Returns the line (from 1) of the first token.
    pub fn first_line(self) -> usize {
        self.first.start().line
    }

    /// Returns the line (from 1) of the last token.
    pub fn last_line(self) -> usize {
        self.last.end().line
    }

    /// Returns line (from 1) and column (from 0) of the end.
    pub fn end(self) -> LineColumn {
        self.last.end()
    }

    /// Returns the place in the source.
    pub fn place(self) -> Place {
        Place { file: self.first.file(), start: self.start(), end: self.end() }
    }
}

impl From<proc_macro2::Span> for Span {
    fn from(span: proc_macro2::Span) -> Self {
        Self { first: span, last: span }
    }
}
