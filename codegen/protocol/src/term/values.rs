//! The values of terms, updated as one symbol after the other gets another number.

use tma_front::quick::QuickMap;

use super::{Known, Node, Term, Terms, each_operand};

/// The values of some terms and of everything that they are computed from.
pub(crate) struct Values<'t> {
    terms: &'t Terms,
    /// Indexed by the numbers of terms.
    all: Vec<Option<Known>>,
}

impl<'t> Values<'t> {
    /// Evaluates terms with these numbers for symbols. `ordered` has operands first.
    pub(crate) fn of(terms: &'t Terms, ordered: &[Term], numbers: &QuickMap<Term, i128>) -> Self {
        let mut values = Self { terms, all: vec![None; terms.nodes.len()] };
        for &term in ordered {
            match numbers.get(&term) {
                Some(&number) => values.set(term, number),
                None => values.renew(&[term]),
            }
        }
        values
    }

    /// Returns the value of one of the terms, or `None` if it has none.
    pub(crate) fn get(&self, term: Term) -> Option<Known> {
        self.all[term.0 as usize]
    }

    /// Gives a symbol a number. Terms that depend on it keep their values until they are renewed.
    pub(crate) fn set(&mut self, symbol: Term, number: i128) {
        self.all[symbol.0 as usize] = Some(self.terms.number_of(symbol, number));
    }

    /// Evaluates terms again. `ordered` has operands first.
    pub(crate) fn renew(&mut self, ordered: &[Term]) {
        for &term in ordered {
            self.all[term.0 as usize] = self.terms.apply(term, &|operand| self.get(operand));
        }
    }
}

impl Terms {
    /// Returns a term and everything that its value is computed from, each once, operands first.
    pub(crate) fn parts(&self, term: Term) -> Vec<Term> {
        let (mut parts, mut next) = (vec![term], 0);
        while let Some(&part) = parts.get(next) {
            self.each_part(part, |operand| parts.push(operand));
            next += 1;
        }
        // Operands exist before the term that uses them, and have smaller numbers.
        parts.sort_unstable();
        parts.dedup();
        parts
    }

    /// Visits the operands that the value of a term is computed from. A symbol has none, even if it
    /// is read from memory at an index.
    pub(crate) fn each_part(&self, term: Term, visit: impl FnMut(Term)) {
        if !matches!(self.node(term), Node::Symbol(_)) {
            each_operand(self.node(term), visit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Symbol;
    use super::*;
    use tma_front::ir::BinaryOp::{Add, Lt, Mul, Rem};
    use tma_front::ir::Scalar;

    #[test]
    fn renewed_values_are_those_that_are_computed_anew() {
        let mut terms = Terms::default();
        let [p, q] = [0, 1].map(|param| terms.symbol(Symbol::Param(param), Scalar::U32));
        let read = terms.symbol(Symbol::Read(2, p), Scalar::U32);
        let [sum, product] = [Add, Mul].map(|op| terms.binary(op, p, q));
        let rest = terms.binary(Rem, product, read);
        let less = terms.binary(Lt, rest, sum);
        let parts = terms.parts(less);
        assert!(parts.is_sorted() && [p, q, read, less].iter().all(|term| parts.contains(term)));
        let dependent: Vec<Term> =
            parts.iter().copied().filter(|&part| ![p, q, read].contains(&part)).collect();
        let mut numbers = QuickMap::from_iter([(p, 3), (q, 5), (read, 0)]);
        let mut values = Values::of(&terms, &parts, &numbers);
        assert_eq!(values.get(less), None, "nothing is left over of a division by zero");
        for (symbol, number) in [(read, 4), (p, 1), (q, 7), (p, 9), (read, 2)] {
            numbers.insert(symbol, number);
            values.set(symbol, number);
            values.renew(&dependent);
            for &part in &parts {
                assert_eq!(values.get(part), terms.evaluate(part, &numbers), "{part:?} of {numbers:?}");
            }
            assert!(values.get(less).is_some());
        }
    }
}
