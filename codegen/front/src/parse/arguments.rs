//! The values of the arguments of built-ins.

use super::cx::Cx;
use super::device::Argument;
use super::order::spill_if_changed;
use crate::diag::mistake::Mismatch;
use crate::ir::{Compound, Expr, Type};
use crate::words::Entry;

impl Cx<'_> {
    /// Evaluates arguments in order. `word` is the built-in that is called, if it is one: its
    /// signature says which arguments are `&mut`.
    pub(super) fn argument_values<'s>(
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
            spill_if_changed(&mut self.builder, &mut values, &effects);
            self.builder.append(effects);
            values.push(value);
        }
        values
    }

    /// Evaluates `&mut phase`, for a built-in that modifies the phase.
    fn phase_by_mut(&mut self, word: &str, arg: &syn::Expr) -> Expr {
        let (phase, by_mut) = match self.argument(arg) {
            Argument::Reference { value, mutable } => (value, mutable),
            Argument::Value(value) => (value, false),
        };
        if phase.is_error() {
            return phase;
        }
        if self.infer.resolve(&phase.ty) != Type::Compound(Compound::Phase) {
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
