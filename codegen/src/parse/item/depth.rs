//! Limits on the nesting of a kernel. Parsing recurses, and the caller of the compiler decides the
//! size of the stack.

use proc_macro2::{Delimiter, TokenStream, TokenTree, token_stream};

use crate::diag::Diagnostic;
use crate::diag::mistake::{Limits, Syntax};
use crate::ir::{Expr, Span};
use crate::limits::KERNEL_OPERATIONS;
use crate::parse::cx::Cx;

/// The maximum nesting of expressions, including those of inlined functions.
const LEVELS: usize = 300;

/// The maximum nesting of functions, constants and aliases.
const FRAMES: usize = 32;

/// The maximum number of loops and inlined calls in a kernel.
const LABELS: u32 = 10_000;

/// The maximum total weight of the tokens around a token.
const WEIGHT: usize = 600;

/// The weight of a pair of brackets. The parser needs more stack for it than for an operator.
const GROUP_WEIGHT: usize = 8;

/// Returns an error if `tokens` nest too deeply to be parsed.
///
/// This does not build a tree. The depth of a token is bounded by the number of tokens before it in
/// its statement, plus those before each enclosing pair of brackets: `- - x`, `a + b + c`, `if a {}
/// else if b {}`, `A<B<C>>`.
pub(crate) fn too_deep(tokens: &TokenStream) -> Option<Diagnostic> {
    let mut open: Vec<(token_stream::IntoIter, usize, usize)> = vec![(tokens.clone().into_iter(), 0, 0)];
    let mut after_block = false;
    while let Some((rest, base, weight)) = open.last_mut() {
        let Some(token) = rest.next() else {
            open.pop();
            after_block = true;
            continue;
        };
        if (after_block && !goes_on(&token)) || ends(&token) {
            *weight = *base;
        }
        after_block = false;
        match token {
            TokenTree::Literal(_) => {}
            TokenTree::Ident(_) | TokenTree::Punct(_) => *weight += 1,
            TokenTree::Group(group) => {
                *weight += 1;
                let inner = *weight + GROUP_WEIGHT;
                if inner > WEIGHT {
                    return Some(too_deep_at(group.span_open().into()));
                }
                open.push((group.stream().into_iter(), inner, inner));
                continue;
            }
        }
        if *weight > WEIGHT {
            return Some(too_deep_at(token.span().into()));
        }
    }
    None
}

/// Whether the token after a closing bracket can belong to the same expression.
fn goes_on(token: &TokenTree) -> bool {
    match token {
        TokenTree::Ident(word) => word == "else" || word == "as",
        TokenTree::Punct(punct) => !matches!(punct.as_char(), '#' | '\''),
        TokenTree::Group(group) => group.delimiter() != Delimiter::Brace,
        TokenTree::Literal(_) => false,
    }
}

/// Whether the next token is not nested in those before this one.
fn ends(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(punct) if matches!(punct.as_char(), ';' | ','))
}

fn too_deep_at(span: Span) -> Diagnostic {
    Diagnostic::new(Syntax::TooDeep, span)
}

impl Cx<'_> {
    /// Runs `f` one level deeper, unless the limit is reached.
    pub(in crate::parse) fn deeper(&mut self, span: Span, f: impl FnOnce(&mut Self) -> Expr) -> Expr {
        if self.depth >= LEVELS {
            self.error(Syntax::TooDeep, span);
            return Expr::error(span);
        }
        self.depth += 1;
        let value = f(self);
        self.depth -= 1;
        value
    }

    /// Returns whether one more function, constant or alias may be entered. Reports the limit if
    /// not.
    pub(in crate::parse) fn may_enter(&mut self, span: Span) -> bool {
        let may = self.frames.len() < FRAMES;
        if !may {
            self.error(Syntax::TooDeep, span);
        }
        may && self.has_room(span)
    }

    /// Whether another function may be inlined into this kernel. If each function calls the next
    /// one twice, every level doubles the kernel.
    fn has_room(&mut self, span: Span) -> bool {
        let room = self.labels() < LABELS && self.emitted() < KERNEL_OPERATIONS;
        if !room {
            self.error(Limits::Growth { labels: LABELS }, span);
        }
        room
    }
}
