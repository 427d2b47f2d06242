//! The nesting of the expression being parsed, and its limits. Parsing recurses, and the caller of
//! the compiler decides the size of the stack.

use super::Cx;
use super::builder::LABELS;
use crate::diag::mistake::{Limits, Syntax};
use crate::ir::{Block, Expr, Span};

/// The maximum nesting of expressions, including those of inlined functions.
const LEVELS: usize = 300;

/// The maximum nesting of functions, constants and aliases.
const FRAMES: usize = 32;

/// The code around the expression being parsed, across all inlined functions.
#[derive(Default)]
pub(in crate::parse) struct Nesting {
    /// The number of loops and branches.
    branches: u32,
    /// The number of expressions.
    expressions: usize,
    /// The inlined calls around the expression, with the number of loops and branches around each.
    calls: Vec<(Span, u32)>,
    is_left_out: bool,
    in_constant: bool,
}

impl Nesting {
    /// Whether the expression may be evaluated any number of times.
    pub(in crate::parse) fn in_branch(&self) -> bool {
        self.branches > 0
    }

    /// Returns the outermost call within the innermost loop or branch, if a call is.
    pub(in crate::parse) fn call_in_branch(&self) -> Option<Span> {
        self.calls.iter().find(|(_, branches)| *branches == self.branches).map(|(span, _)| *span)
    }

    /// Whether a constant condition removes the expression from the instance. Values of constants
    /// are not checked there.
    pub(in crate::parse) fn is_left_out(&self) -> bool {
        self.is_left_out
    }

    /// Whether the expression belongs to a constant.
    pub(in crate::parse) fn in_constant(&self) -> bool {
        self.in_constant
    }
}

impl Cx<'_> {
    /// Like [`Cx::block`], for code that may run any number of times: a branch or the body of a
    /// loop.
    pub(in crate::parse) fn branch<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> (Block, T) {
        self.nesting.branches += 1;
        let result = self.block(f);
        self.nesting.branches -= 1;
        result
    }

    /// Runs `f` for a call that is inlined.
    pub(in crate::parse) fn in_call<T>(&mut self, span: Span, f: impl FnOnce(&mut Self) -> T) -> T {
        self.nesting.calls.push((span, self.nesting.branches));
        let value = f(self);
        self.nesting.calls.pop();
        value
    }

    /// Runs `f` for a branch that a constant condition may remove from this instance.
    pub(in crate::parse) fn left_out<T>(&mut self, is_left_out: bool, f: impl FnOnce(&mut Self) -> T) -> T {
        let around = self.nesting.is_left_out;
        self.nesting.is_left_out |= is_left_out;
        let value = f(self);
        self.nesting.is_left_out = around;
        value
    }

    /// Runs `f` for a constant.
    pub(in crate::parse) fn in_constant<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        let around = std::mem::replace(&mut self.nesting.in_constant, true);
        let value = f(self);
        self.nesting.in_constant = around;
        value
    }

    /// Runs `f` one level deeper, unless the limit is reached.
    pub(in crate::parse) fn deeper(&mut self, span: Span, f: impl FnOnce(&mut Self) -> Expr) -> Expr {
        if self.nesting.expressions >= LEVELS {
            self.error(Syntax::TooDeep, span);
            return Expr::error(span);
        }
        self.nesting.expressions += 1;
        let value = f(self);
        self.nesting.expressions -= 1;
        value
    }

    /// Returns whether one more function, constant or alias may be entered. Reports the limit if
    /// not.
    pub(in crate::parse) fn may_enter(&mut self, span: Span) -> bool {
        if self.frames.depth() >= FRAMES {
            self.error(Syntax::TooDeep, span);
            return false;
        }
        let has_room = self.builder.has_room();
        if !has_room {
            self.error(Limits::Growth { labels: LABELS }, span);
        }
        has_room
    }
}
