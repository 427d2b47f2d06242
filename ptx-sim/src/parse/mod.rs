//! Parses PTX text into syntax.
//!
//! None of the parsers on crates.io fits. `ptx-syntax` (the successor of `ptx-90-parser`) has a
//! type for each form of each instruction, 126 000 lines that a decoder would have to unfold again,
//! and brings `clap`, `serde` and `stacker` into every build. `ptx-parser` covers a fraction of the
//! ISA. The grammar of PTX itself is small: an instruction is an opcode, modifiers and operands,
//! whatever the opcode means. The meaning of modifiers must be decided in one place, where an
//! instruction is decoded (`code/`), and an unknown one must be an error with its line there.

mod cursor;
mod directive;
mod lex;
mod number;
mod statement;
pub(crate) mod syntax;

use std::fmt;

use cursor::Cursor;
use syntax::Source;
use tma_model::assertion::Remark;
use tma_model::own_ptx::OWN_LINE;
use tma_model::span::SpanMark;

/// The reason why a PTX text cannot be run: an error at a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError {
    /// The line of the PTX text, counted from 1.
    pub line: u32,
    /// The error in words.
    pub message: String,
}

impl LoadError {
    pub(crate) fn new(line: u32, message: impl Into<String>) -> LoadError {
        LoadError { line, message: message.into() }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PTX line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for LoadError {}

/// Parses a whole module.
pub(crate) fn parse(text: &str) -> Result<Source<'_>, LoadError> {
    let tokens = lex::tokens(text)?;
    let marks = (1..).zip(text.lines()).filter_map(|(line, text)| Some((line, SpanMark::in_line(text)?)));
    let mut source = directive::module(&mut Cursor::new(&tokens, marks.collect()))?;
    let remarks = (1..).zip(text.lines()).filter_map(|(line, text)| Some((line, Remark::find(text)?)));
    source.remarks = remarks.collect();
    let own = (1..).zip(text.lines()).filter(|(_, text)| text.ends_with(OWN_LINE));
    source.own_lines = own.map(|(line, _)| line).collect();
    Ok(source)
}
