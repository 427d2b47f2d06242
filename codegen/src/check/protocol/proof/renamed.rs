//! Terms of a state, and their replacements.

use std::rc::Rc;

use crate::check::protocol::lanes::Lanes;
use crate::check::protocol::memory::global::GlobalLocation;
use crate::check::protocol::run::Run;
use crate::check::protocol::term::linear::Linear;
use crate::check::protocol::term::{Node, NumberedKind, Symbol, Term, Terms};
use crate::check::protocol::value::Value;
use crate::ir::BinaryOp;
use crate::quick::{QuickMap, QuickSet};

/// Replacements of terms.
#[derive(Debug, Default)]
pub(in crate::check::protocol) struct Renaming {
    /// Terms that are replaced as a whole.
    pub(in crate::check::protocol) whole: QuickMap<Term, Term>,
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
    pub(in crate::check::protocol) fn of(&mut self, terms: &mut Terms, term: Term) -> Term {
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

/// Replaces all terms in a state.
pub(super) fn replace_all(run: &mut Run<'_, '_>, f: &mut impl FnMut(&mut Terms, Term) -> Term) {
    let terms = &mut *run.terms;
    for agent in &mut run.agents {
        agent.locals.iter_mut().for_each(|value| replace(value, terms, f));
        for counter in agent.counters.iter_mut().flatten() {
            for lanes in [&mut counter.value, &mut counter.end, &mut counter.step] {
                replace_lanes(lanes, terms, f);
            }
        }
    }
    for block in &mut run.blocks {
        block.numbers.values_mut().for_each(|term| *term = f(terms, *term));
    }
    for record in &mut run.globals {
        match &mut record.at {
            GlobalLocation::Elements(lanes, _) => replace_lanes(lanes, terms, f),
            GlobalLocation::Box(all, _) => all.iter_mut().for_each(|term| *term = f(terms, *term)),
            GlobalLocation::Anywhere => {}
        }
    }
    let rendezvous_list = run.blocks.iter_mut().flat_map(|block| block.warps.values_mut());
    for rendezvous in rendezvous_list {
        let pairs = rendezvous.operands.iter_mut().filter_map(|(_, term)| term.as_mut());
        pairs.for_each(|term| *term = f(terms, *term));
        if rendezvous.result.iter().any(|(_, term)| term.is_some()) {
            let result =
                rendezvous.result.iter().map(|(thread, term)| (*thread, term.map(|term| f(terms, term))));
            rendezvous.result = result.collect();
        }
    }
}

fn replace(value: &mut Value, terms: &mut Terms, f: &mut impl FnMut(&mut Terms, Term) -> Term) {
    match value {
        Value::Number(lanes) => replace_lanes(lanes, terms, f),
        Value::Array(all) => {
            let mut parts = all.to_vec();
            parts.iter_mut().for_each(|part| replace(part, terms, f));
            if parts[..] != all[..] {
                *all = parts.into();
            }
        }
        Value::Address(_) | Value::OneOf { .. } | Value::Token { .. } | Value::Unknown => {}
    }
}

fn replace_lanes(lanes: &mut Lanes<Term>, terms: &mut Terms, f: &mut impl FnMut(&mut Terms, Term) -> Term) {
    match lanes {
        Lanes::Same(term) => *term = f(terms, *term),
        Lanes::Each(all) => {
            let replaced: Rc<[Term]> = all.iter().map(|&term| f(terms, term)).collect();
            if replaced != *all {
                *lanes = Lanes::of(replaced.to_vec()).unwrap_or(Lanes::Each(replaced));
            }
        }
    }
}

/// Numbers the symbols of a state again, in the order in which they appear, and forgets facts about
/// other numbered symbols, which cannot occur any more. Returns whether any term has changed.
pub(super) fn in_order(run: &mut Run<'_, '_>) -> bool {
    let (mut renaming, mut numbered_counts, mut seen) = (Renaming::default(), [0, 0], QuickSet::default());
    let mut is_new = false;
    replace_all(run, &mut |terms, term| {
        name_symbols(terms, term, (&mut seen, &mut numbered_counts), &mut |terms, symbol, (kind, number)| {
            let scalar = terms.scalar(symbol);
            let name = match kind {
                NumberedKind::Fresh => terms.symbol(Symbol::Fresh(number), scalar),
                NumberedKind::Iterations => terms.symbol(Symbol::Iterations(number), scalar),
            };
            is_new |= name != symbol;
            renaming.whole.insert(symbol, name);
        });
        term
    });
    let known: QuickSet<Term> = renaming.whole.keys().copied().collect();
    let facts = std::mem::take(&mut run.facts);
    run.facts = facts.rewritten(run.terms, &mut |terms, term| {
        (!has_other(terms, term, &known)).then(|| renaming.of(terms, term))
    });
    // A step that is about to create a symbol now creates another one, so the condition that it
    // asked about has changed.
    let are_fewer = run.terms.numbered_counts() != numbered_counts;
    run.terms.set_numbered_counts(numbered_counts);
    if is_new {
        replace_all(run, &mut |terms, term| renaming.of(terms, term));
    }
    is_new || are_fewer
}

/// Numbers the symbols within a term that have no number yet.
fn name_symbols(
    terms: &mut Terms,
    term: Term,
    (seen, numbered_counts): (&mut QuickSet<Term>, &mut [u32; 2]),
    name: &mut impl FnMut(&mut Terms, Term, (NumberedKind, u32)),
) {
    if !terms.is_numbered(term) || !seen.insert(term) {
        return;
    }
    if let Some(kind) = terms.node(term).numbered_kind() {
        let numbered_counts = &mut numbered_counts[kind as usize];
        *numbered_counts += 1;
        name(terms, term, (kind, *numbered_counts));
    }
    for operand in terms.operands(term) {
        name_symbols(terms, operand, (seen, numbered_counts), name);
    }
}

/// Whether a term contains a numbered symbol that is not among these.
fn has_other(terms: &Terms, term: Term, known: &QuickSet<Term>) -> bool {
    if !terms.is_numbered(term) {
        return false;
    }
    if terms.node(term).numbered_kind().is_some() {
        return !known.contains(&term);
    }
    terms.operands(term).into_iter().any(|operand| has_other(terms, operand, known))
}
