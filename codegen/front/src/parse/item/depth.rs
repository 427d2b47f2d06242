//! Limits on the nesting of a kernel. Parsing recurses, and the caller of the compiler decides the
//! size of the stack.

use proc_macro2::{Delimiter, TokenStream, TokenTree, token_stream};

use crate::diag::Diagnostic;
use crate::diag::mistake::Syntax;
use crate::ir::Span;

/// The maximum total weight of the tokens around a token.
const WEIGHT: usize = 600;

/// The weight of a pair of brackets. The parser needs more stack for it than for an operator.
const GROUP_WEIGHT: usize = 8;

/// Returns an error if `tokens` nest too deeply to be parsed.
///
/// This does not build a tree. The depth of a token is bounded by the number of tokens before it in
/// its statement, plus those before each enclosing pair of brackets: `- - x`, `a + b + c`, `if a {}
/// else if b {}`, `A<B<C>>`.
pub fn too_deep(tokens: &TokenStream) -> Option<Diagnostic> {
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
