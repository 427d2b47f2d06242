//! The arguments of built-ins: their values and their number.

use super::{Entry, Word};
use crate::diag::mistake::{self, Mismatch};
use crate::ir::{Compound, Expr, ExprKind, Span, Type};
use crate::parse::cx::Cx;
use crate::parse::device::Argument;

impl Cx<'_> {
    /// Evaluates arguments in order. `word` is the built-in that is called, if it is one: its
    /// signature says which arguments are `&mut`.
    pub(in crate::parse) fn argument_values<'s>(
        &mut self,
        word: Option<&Entry>,
        args: impl IntoIterator<Item = &'s syn::Expr>,
    ) -> Vec<Expr> {
        let parameters = word.map(|word| word.signature.parameters).unwrap_or_default();
        let mut values = vec![];
        for (i, arg) in args.into_iter().enumerate() {
            let by_mut = parameters.get(i).is_some_and(|parameter| parameter.by_mut);
            let (effects, value) = self.block(|cx| match word {
                Some(word) if by_mut => cx.phase_by_mut(&word.name, arg),
                Some(_) | None => cx.expr(arg),
            });
            self.spill_if_changed(&mut values, &effects);
            self.append(effects);
            values.push(value);
        }
        values
    }

    /// Returns `values` as an array if their number is that of the word's parameters.
    pub(in crate::parse) fn counted<const N: usize>(
        &mut self,
        word: impl Word,
        values: Vec<Expr>,
        span: Span,
    ) -> Option<[Expr; N]> {
        let (found, is_sound) = (values.len(), !values.iter().any(is_error));
        let exact = <[Expr; N]>::try_from(values).ok();
        if exact.is_none() {
            let entry = Entry::of(word);
            let (usage, note) = (entry.usage(), entry.note());
            let word = entry.name;
            self.error(mistake::Argument::Count { word, wanted: N, found, usage, note }, span);
        }
        exact.filter(|_| is_sound)
    }

    /// Evaluates `&mut phase`, for a built-in that modifies the phase.
    fn phase_by_mut(&mut self, word: &str, arg: &syn::Expr) -> Expr {
        let (phase, by_mut) = match self.argument(arg) {
            Argument::Reference { value, mutable } => (value, mutable),
            Argument::Value(value) => (value, false),
        };
        if is_error(&phase) {
            return phase;
        }
        if self.resolve(&phase.ty) != Type::Compound(Compound::Phase) {
            let (word, found) = (word.to_owned().into(), self.infer.partial(&phase.ty));
            self.error(Mismatch::NoPhase { word, found }, phase.span);
            return Expr::error(phase.span);
        }
        if !by_mut {
            self.error(Mismatch::PhaseByValue { word: word.to_owned().into() }, phase.span);
            return Expr::error(phase.span);
        }
        phase
    }
}

fn is_error(value: &Expr) -> bool {
    matches!(value.kind, ExprKind::Error)
}
