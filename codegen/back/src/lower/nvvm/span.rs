//! Marks of spans: comments, which ptxas ignores.

use std::borrow::Cow;

use tma_model::span::SpanMark;

use super::{Effect, Instruction};

/// Marks an end of a span.
pub(in crate::lower) fn mark(mark: SpanMark<'_>) -> Instruction {
    Instruction {
        // LLVM parses a dollar sign as the start of an operand.
        text: Cow::Owned(mark.to_string().replace('$', "$$")),
        result: None,
        operands: Cow::Borrowed(&[]),
        effect: Effect::Mark,
        ptx: 0,
    }
}
