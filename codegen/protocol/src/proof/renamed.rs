//! Terms of a state, and their replacements.

use tma_front::ir::BinaryOp;
use tma_front::quick::{QuickMap, QuickSet};

use crate::run::Run;
use crate::term::linear::Linear;
use crate::term::{Node, Symbol, SymbolCounts, Term, Terms};

/// Replacements of terms.
#[derive(Debug, Default)]
pub(crate) struct Renaming {
    /// Terms that are replaced as a whole.
    pub(crate) whole: QuickMap<Term, Term>,
    /// Symbols of iterations. Sums of them lose this many periods, and count with another symbol.
    pub(super) fewer_periods: QuickMap<Term, (i128, Term)>,
    /// Terms that numbers are added to. The sums lose this number, and continue from another term.
    pub(super) less_added: QuickMap<Term, (i128, Term)>,
    done: QuickMap<Term, Term>,
}

impl Renaming {
    pub(super) fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.fewer_periods.is_empty() && self.less_added.is_empty()
    }

    /// Returns the replacement of a term.
    pub(crate) fn of(&mut self, terms: &mut Terms, term: Term) -> Term {
        if let Some(&done) = self.whole.get(&term).or_else(|| self.done.get(&term)) {
            return done;
        }
        let becomes = self.sum(terms, term).unwrap_or_else(|| self.rebuilt(terms, term));
        self.done.insert(term, becomes);
        becomes
    }

    /// Returns the replacement of a sum that loses a part.
    fn sum(&self, terms: &mut Terms, term: Term) -> Option<Term> {
        if let Some(sum) = terms.linear(term)
            && let Some(&(by, iterations)) = self.fewer_periods.get(&symbol_of(terms, sum.iterations))
            && sum.rest >= sum.period * by
        {
            let iterations = terms.cast(iterations, terms.scalar(sum.iterations))?;
            return Some(terms.sum(Linear { iterations, rest: sum.rest - sum.period * by, ..sum }));
        }
        let Node::Binary(BinaryOp::Add, base, number) = *terms.node(term) else { return None };
        let &(by, base) = self.less_added.get(&base)?;
        let number = terms.int(number).filter(|number| *number >= by)?;
        let number = terms.number(number - by, terms.scalar(term));
        Some(terms.binary(BinaryOp::Add, base, number))
    }

    /// Rebuilds a term from the replacements of its operands.
    fn rebuilt(&mut self, terms: &mut Terms, term: Term) -> Term {
        let scalar = terms.scalar(term);
        match terms.node(term).clone() {
            Node::Known(_)
            | Node::Symbol(
                Symbol::Param(_)
                | Symbol::Len(_)
                | Symbol::GridIndex(_)
                | Symbol::Team(_)
                | Symbol::Elected(_)
                | Symbol::Fresh(_)
                | Symbol::Iterations(_),
            ) => term,
            Node::Symbol(Symbol::Read(param, index)) => {
                let index = self.of(terms, index);
                terms.symbol(Symbol::Read(param, index), scalar)
            }
            Node::Not(a) => {
                let a = self.of(terms, a);
                terms.not(a)
            }
            Node::Unary(op, a) => {
                let a = self.of(terms, a);
                terms.unary(op, a)
            }
            Node::Binary(op, a, b) => {
                let (a, b) = (self.of(terms, a), self.of(terms, b));
                terms.binary(op, a, b)
            }
            Node::Cast(a) => {
                let a = self.of(terms, a);
                terms.cast(a, scalar).unwrap_or(term)
            }
            Node::Math(op, all) => {
                let all = all.iter().map(|&part| self.of(terms, part)).collect();
                terms.math(op, all).unwrap_or(term)
            }
            Node::Integer(op, all) => {
                let all = all.iter().map(|&part| self.of(terms, part)).collect();
                terms.integer(op, all).unwrap_or(term)
            }
        }
    }
}

/// Returns the symbol of iterations that a sum counts with.
pub(super) fn symbol_of(terms: &Terms, iterations: Term) -> Term {
    if let Node::Cast(symbol) = *terms.node(iterations) { symbol } else { iterations }
}

/// Numbers the symbols of a state again, in the order in which they appear, and forgets facts about
/// other numbered symbols, which cannot occur any more. Returns whether any term has changed.
pub(super) fn in_order(run: &mut Run<'_, '_>) -> bool {
    let Run { state, terms, .. } = run;
    let mut naming = Naming::default();
    state.for_each_term(|term| naming.name(terms, term));
    let Naming { names, counts, seen: _ } = naming;
    let is_new = names.iter().any(|(symbol, name)| symbol != name);
    let mut renaming = Renaming { whole: names, ..Renaming::default() };
    state.facts = state.facts.rewritten(terms, &mut |terms, term| {
        (!has_other(terms, term, &renaming.whole)).then(|| renaming.of(terms, term))
    });
    // A step that is about to create a symbol now creates another one, so the condition that it
    // asked about has changed.
    let are_fewer = std::mem::replace(&mut state.symbols, counts) != counts;
    if is_new {
        state.map_terms(|term| renaming.of(terms, term));
    }
    is_new || are_fewer
}

/// Names for the numbered symbols of a state.
#[derive(Default)]
struct Naming {
    names: QuickMap<Term, Term>,
    counts: SymbolCounts,
    /// The terms whose symbols have names.
    seen: QuickSet<Term>,
}

impl Naming {
    /// Names the symbols within a term that have no name yet.
    fn name(&mut self, terms: &mut Terms, term: Term) {
        if !terms.is_numbered(term) || !self.seen.insert(term) {
            return;
        }
        if let Some(kind) = terms.node(term).numbered_kind() {
            let name = terms.numbered(kind, &mut self.counts, terms.scalar(term));
            self.names.insert(term, name);
        }
        for operand in terms.operands(term) {
            self.name(terms, operand);
        }
    }
}

/// Whether a term contains a numbered symbol that has no name.
fn has_other(terms: &Terms, term: Term, names: &QuickMap<Term, Term>) -> bool {
    if !terms.is_numbered(term) {
        return false;
    }
    if terms.node(term).numbered_kind().is_some() {
        return !names.contains_key(&term);
    }
    terms.operands(term).into_iter().any(|operand| has_other(terms, operand, names))
}
