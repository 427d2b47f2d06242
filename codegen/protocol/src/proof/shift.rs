//! Restarts sums that have all grown since a state occurred, with another symbol.

use std::collections::BTreeMap;

use tma_front::ir::{BinaryOp, Scalar};
use tma_front::quick::QuickSet;

use super::renamed::{Renaming, symbol_of};
use super::statics::Statics;
use super::widen::counters;
use crate::code::{Op, Step};
use crate::facts::split_sum;
use crate::run::Run;
use crate::term::{Node, NumberedKind, SymbolCounts, Term, Terms};
use crate::value::Value;

/// The common part of the sums of a state.
#[derive(Default)]
struct Common {
    /// For each symbol of iterations, the periods that all its sums contain.
    periods: BTreeMap<Term, i128>,
    /// For each other term, the number that is added to it at least.
    added: BTreeMap<Term, i128>,
    /// The terms of variables that change in the iterations of a loop, and the terms that these add
    /// to.
    changing: QuickSet<Term>,
}

/// Restarts sums. Returns whether there were any.
pub(super) fn shift(run: &mut Run<'_, '_>, statics: &Statics) -> bool {
    let mut common = common(run, statics);
    // Decisions about earlier iterations are kept.
    let past = (statics.precision.past + statics.period - 1) / statics.period;
    common.periods.values_mut().for_each(|by| *by -= past);
    let Run { state, terms, .. } = run;
    let mut renaming = renaming(terms, &mut state.symbols, &common);
    if renaming.is_empty() {
        return false;
    }
    state.facts = state.facts.rewritten(terms, &mut |terms, term| Some(renaming.of(terms, term)));
    state.map_terms(|term| renaming.of(terms, term));
    true
}

fn common(run: &mut Run<'_, '_>, statics: &Statics) -> Common {
    let mut all = vec![];
    run.state.for_each_term(|term| all.push(term));
    let mut moving: QuickSet<Term> = counters(run, statics).into_iter().map(|moving| moving.term).collect();
    moving.extend(moved(run));
    let mut common = Common::default();
    for term in all {
        let is_moving = moving.contains(&term);
        if let Some(sum) = run.terms.linear(term) {
            let least = common.periods.entry(symbol_of(run.terms, sum.iterations)).or_insert(i128::MAX);
            *least = (*least).min(sum.rest / sum.period);
        } else if run.terms.known(term).is_none() && run.terms.scalar(term) != Scalar::Bool {
            let (base, number) = split_sum(run.terms, term);
            let least = common.added.entry(base).or_insert(i128::MAX);
            *least = (*least).min(number);
            common.changing.extend(is_moving.then_some(base));
        }
        common.changing.extend(is_moving.then_some(term));
    }
    common
}

fn renaming(terms: &mut Terms, symbols: &mut SymbolCounts, common: &Common) -> Renaming {
    let mut renaming = Renaming::default();
    for (&symbol, &by) in common.periods.iter().filter(|(_, by)| **by > 0) {
        let iterations = terms.numbered(NumberedKind::Iterations, symbols, terms.scalar(symbol));
        renaming.fewer_periods.insert(symbol, (by, iterations));
    }
    for (&base, &by) in &common.added {
        // A term that nothing is added to has changed if it is an operation on terms that have not.
        let is_other = by > 0
            || !matches!(terms.node(base), Node::Symbol(_))
                && !contains_any(terms, base, &common.changing, true);
        if !common.changing.contains(&base) || !is_other {
            continue;
        }
        let scalar = terms.scalar(base);
        // Sums may wrap, so nothing is known about the new symbol.
        let symbol = terms.numbered(NumberedKind::Fresh, symbols, scalar);
        if by == 0 {
            renaming.whole.insert(base, symbol);
            continue;
        }
        renaming.less_added.insert(base, (by, symbol));
        let number = terms.number(by, scalar);
        let sum = terms.binary(BinaryOp::Add, base, number);
        renaming.whole.insert(sum, symbol);
    }
    renaming
}

/// Returns the terms of variables that were different in the iteration before.
fn moved(run: &Run<'_, '_>) -> Vec<Term> {
    let mut all = vec![];
    for agent in run.state.agents.iter().filter(|agent| !agent.is_done) {
        let step: &Step<'_> = run.input.code.step(agent.at);
        if !step.loops.iter().any(|of| run.findings.free_loops.contains(of)) {
            continue;
        }
        for (value, moving) in agent.locals.iter().zip(&agent.loop_changes.has_changed) {
            if *moving {
                uniform_terms(value, &mut all);
            }
        }
        debug_assert!(!matches!(step.op, Op::End) || step.loops.is_empty());
    }
    all.retain(|term| run.terms.known(*term).is_none());
    all
}

fn uniform_terms(value: &Value, into: &mut Vec<Term>) {
    match value {
        Value::Number(lanes) => into.extend(lanes.uniform()),
        Value::Array(all) => all.iter().for_each(|part| uniform_terms(part, into)),
        Value::Address(_) | Value::OneOf { .. } | Value::Token { .. } | Value::Unknown => {}
    }
}

/// Whether a term contains one of these. The term itself does not count if it is the outermost.
fn contains_any(terms: &Terms, term: Term, of: &QuickSet<Term>, outermost: bool) -> bool {
    !outermost && of.contains(&term)
        || terms.operands(term).into_iter().any(|operand| contains_any(terms, operand, of, false))
}
