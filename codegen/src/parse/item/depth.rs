//! How deeply a kernel may nest. Parsing recurses, and what calls the compiler has a stack of its
//! own choosing.

use proc_macro2::{Delimiter, TokenStream, TokenTree, token_stream};

use crate::diag::Diagnostic;
use crate::diag::mistake::{Limits, Syntax};
use crate::ir::{Expr, Span};
use crate::limits::KERNEL_OPERATIONS;
use crate::parse::cx::Cx;

/// How many expressions may stand in one another, those of the functions that are inlined included.
const LEVELS: usize = 300;

/// How many functions, constants and aliases may be entered from one another.
const FRAMES: usize = 32;

/// How many loops and inlined calls a kernel may hold.
const LABELS: u32 = 10_000;

/// What the tokens around one may weigh in all.
const WEIGHT: usize = 600;

/// A pair of brackets costs the parser more of its stack than an operator.
const GROUP_WEIGHT: usize = 8;

/// What is wrong with `tokens`, if they nest too deeply to be parsed.
///
/// No tree is made for this. The tokens before one in its statement, and those before the brackets
/// around it, bound how deep it can come to stand: `- - x`, `a + b + c`, `if a {} else if b {}`,
/// `A<B<C>>`.
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

/// Whether what follows closed brackets can belong to the same expression.
fn goes_on(token: &TokenTree) -> bool {
    match token {
        TokenTree::Ident(word) => word == "else" || word == "as",
        TokenTree::Punct(punct) => !matches!(punct.as_char(), '#' | '\''),
        TokenTree::Group(group) => group.delimiter() != Delimiter::Brace,
        TokenTree::Literal(_) => false,
    }
}

/// Whether the next token does not stand within what came before it.
fn ends(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(punct) if matches!(punct.as_char(), ';' | ','))
}

fn too_deep_at(span: Span) -> Diagnostic {
    Diagnostic::new(Syntax::TooDeep, span)
}

impl Cx<'_> {
    /// Runs `f` one level deeper, if there may be one.
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

    /// Whether one more function, constant or alias may be entered; reports if not.
    pub(in crate::parse) fn may_enter(&mut self, span: Span) -> bool {
        let may = self.frames.len() < FRAMES;
        if !may {
            self.error(Syntax::TooDeep, span);
        }
        may && self.has_room(span)
    }

    /// Whether another function may be inlined into this kernel. Functions that call each other
    /// twice each double the kernel with every level.
    fn has_room(&mut self, span: Span) -> bool {
        let room = self.labels() < LABELS && self.emitted() < KERNEL_OPERATIONS;
        if !room {
            self.error(Limits::Growth { labels: LABELS }, span);
        }
        room
    }
}
