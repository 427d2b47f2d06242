//! A position among the tokens of a module, and the parsing steps that the whole grammar shares.

use std::collections::VecDeque;

use tma_model::span::SpanMark;

use super::LoadError;
use super::lex::{Kind, Token};

/// The greatest nesting depth of blocks and vectors. A text with more levels is an error, and
/// cannot overflow the stack.
const DEEPEST: u32 = 64;

pub(crate) struct Cursor<'t, 's> {
    tokens: &'t [Token<'s>],
    /// The marks of spans that have not been passed, each with its line.
    marks: VecDeque<(u32, SpanMark<'s>)>,
    at: usize,
    depth: u32,
}

impl<'t, 's> Cursor<'t, 's> {
    pub(crate) fn new(tokens: &'t [Token<'s>], marks: VecDeque<(u32, SpanMark<'s>)>) -> Self {
        Cursor { tokens, marks, at: 0, depth: 0 }
    }

    /// Takes the next mark of a span if it is in a line before that of the next token.
    pub(crate) fn take_span_mark(&mut self) -> Option<(u32, SpanMark<'s>)> {
        let line = self.line();
        self.marks.pop_front_if(|(mark, _)| *mark < line)
    }

    pub(crate) fn peek(&self) -> Token<'s> {
        self.peek_at(0)
    }

    /// Returns the token `ahead` positions further on, or the end.
    pub(crate) fn peek_at(&self, ahead: usize) -> Token<'s> {
        const END: Token<'_> = Token { kind: Kind::End, text: "the end of the text", line: 0, joined: false };
        self.tokens.get(self.at + ahead).or(self.tokens.last()).copied().unwrap_or(END)
    }

    pub(crate) fn next(&mut self) -> Token<'s> {
        let token = self.peek();
        self.at += 1;
        token
    }

    pub(crate) fn line(&self) -> u32 {
        self.peek().line
    }

    pub(crate) fn is_mark(&self, mark: u8) -> bool {
        self.peek().kind == Kind::Mark(mark)
    }

    /// Takes `mark` if it is next.
    pub(crate) fn take(&mut self, mark: u8) -> bool {
        let found = self.is_mark(mark);
        self.at += usize::from(found);
        found
    }

    pub(crate) fn expect(&mut self, mark: u8) -> Result<(), LoadError> {
        if self.take(mark) { Ok(()) } else { Err(self.wanted(&format!("`{}`", mark as char))) }
    }

    /// Takes the directive or modifier `.word` if it is next.
    pub(crate) fn take_dotted(&mut self, word: &str) -> bool {
        let token = self.peek();
        let found = token.kind == Kind::Dotted && token.text == word;
        self.at += usize::from(found);
        found
    }

    pub(crate) fn dotted(&mut self) -> Result<&'s str, LoadError> {
        if self.peek().kind == Kind::Dotted {
            Ok(self.next().text)
        } else {
            Err(self.wanted("a word with a dot"))
        }
    }

    pub(crate) fn name(&mut self) -> Result<&'s str, LoadError> {
        if self.peek().kind == Kind::Name { Ok(self.next().text) } else { Err(self.wanted("a name")) }
    }

    /// Returns the error that `noun` was expected but something else was found.
    pub(crate) fn wanted(&self, noun: &str) -> LoadError {
        let found = self.peek();
        let dot = if found.kind == Kind::Dotted { "." } else { "" };
        LoadError::new(found.line, format!("expected {noun}, found `{dot}{}`", found.text))
    }

    /// Parses one level deeper, or fails if that is too deep.
    pub(crate) fn nested<R>(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<R, LoadError>,
    ) -> Result<R, LoadError> {
        if self.depth == DEEPEST {
            return Err(LoadError::new(self.line(), format!("more than {DEEPEST} levels of nesting")));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    /// Parses `item, item, …` up to and including `close`.
    pub(crate) fn list<R>(
        &mut self,
        close: u8,
        mut item: impl FnMut(&mut Self) -> Result<R, LoadError>,
    ) -> Result<Vec<R>, LoadError> {
        let mut items = Vec::new();
        if self.take(close) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.take(close) {
                return Ok(items);
            }
            self.expect(b',')?;
        }
    }
}
