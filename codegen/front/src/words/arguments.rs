//! The number of arguments of a built-in.

use super::{Entry, Word};
use crate::diag::mistake;
use crate::infer::Typing;
use crate::ir::{Expr, Span};

/// Returns `values` as an array if their number is that of the word's parameters.
pub(super) fn counted<const N: usize>(
    typing: &mut Typing<'_>,
    word: impl Word,
    values: Vec<Expr>,
    span: Span,
) -> Option<[Expr; N]> {
    let (found, is_sound) = (values.len(), !values.iter().any(Expr::is_error));
    let exact = <[Expr; N]>::try_from(values).ok();
    if exact.is_none() {
        let entry = Entry::of(word);
        let (usage, note) = (entry.usage(), entry.note());
        let word = entry.name;
        typing.error(mistake::Argument::Count { word, wanted: N, found, usage, note }, span);
    }
    exact.filter(|_| is_sound)
}
