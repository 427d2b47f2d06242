//! Sums that all have grown since a state was met begin again, with other turns or another symbol.

use std::collections::BTreeMap;

use super::renamed::{Renaming, replace_all, symbol_of};
use super::statics::Statics;
use super::widen::counters;
use crate::check::protocol::code::{Op, Step};
use crate::check::protocol::facts::parted;
use crate::check::protocol::run::Run;
use crate::check::protocol::term::{Node, Term, Terms};
use crate::check::protocol::value::Value;
use crate::ir::{BinaryOp, Scalar};
use crate::quick::QuickSet;

/// How much the sums of a state have in common.
#[derive(Default)]
struct Common {
    /// Of each symbol of turns, how many periods.
    periods: BTreeMap<Term, i128>,
    /// Of each other term, what is added to it.
    added: BTreeMap<Term, i128>,
    /// What variables hold that change in the turns of a loop, and what that is added to.
    changing: QuickSet<Term>,
}

/// Whether any sum begins again.
pub(super) fn shift(run: &mut Run<'_, '_>, statics: &Statics) -> bool {
    let mut common = common(run, statics);
    // What was decided of the turns before is kept.
    let past = (statics.precision.past + statics.period - 1) / statics.period;
    common.periods.values_mut().for_each(|by| *by -= past);
    let mut renaming = renaming(run.terms, &common);
    if renaming.is_empty() {
        return false;
    }
    let facts = std::mem::take(&mut run.facts);
    run.facts = facts.rewritten(run.terms, &mut |terms, term| Some(renaming.of(terms, term)));
    replace_all(run, &mut |terms, term| renaming.of(terms, term));
    true
}

fn common(run: &mut Run<'_, '_>, statics: &Statics) -> Common {
    let mut all = vec![];
    replace_all(run, &mut |_, term| {
        all.push(term);
        term
    });
    let mut moving: QuickSet<Term> = counters(run, statics).into_iter().map(|moving| moving.term).collect();
    moving.extend(moved(run));
    let mut common = Common::default();
    for term in all {
        let is_moving = moving.contains(&term);
        if let Some(sum) = run.terms.linear(term) {
            let least = common.periods.entry(symbol_of(run.terms, sum.turns)).or_insert(i128::MAX);
            *least = (*least).min(sum.rest / sum.period);
        } else if run.terms.known(term).is_none() && run.terms.scalar(term) != Scalar::Bool {
            let (base, number) = parted(run.terms, term);
            let least = common.added.entry(base).or_insert(i128::MAX);
            *least = (*least).min(number);
            common.changing.extend(is_moving.then_some(base));
        }
        common.changing.extend(is_moving.then_some(term));
    }
    common
}

fn renaming(terms: &mut Terms, common: &Common) -> Renaming {
    let mut renaming = Renaming::default();
    for (&symbol, &by) in common.periods.iter().filter(|(_, by)| **by > 0) {
        let turns = terms.turns(terms.scalar(symbol));
        renaming.fewer.insert(symbol, (by, turns));
    }
    for (&base, &by) in &common.added {
        // What nothing is added to has changed if it is an operation on what stays as it is.
        let is_other = by > 0
            || !matches!(terms.node(base), Node::Symbol(_))
                && !contains_any(terms, base, &common.changing, true);
        if !common.changing.contains(&base) || !is_other {
            continue;
        }
        let scalar = terms.scalar(base);
        // Sums may wrap: nothing is known of what they have come to.
        let symbol = terms.fresh(scalar);
        if by == 0 {
            renaming.whole.insert(base, symbol);
            continue;
        }
        renaming.less.insert(base, (by, symbol));
        let number = terms.number(by, scalar);
        let sum = terms.binary(BinaryOp::Add, base, number);
        renaming.whole.insert(sum, symbol);
    }
    renaming
}

/// Terms that variables have which were others at the turn before.
fn moved(run: &Run<'_, '_>) -> Vec<Term> {
    let mut all = vec![];
    for agent in run.agents.iter().filter(|agent| !agent.is_done) {
        let step: &Step<'_> = run.input.code.step(agent.at);
        if !step.loops.iter().any(|of| run.choices.free.contains(of)) {
            continue;
        }
        for (value, moving) in agent.locals.iter().zip(&agent.moves.moving) {
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
        Value::Place(_) | Value::OneOf { .. } | Value::Token { .. } | Value::Unknown => {}
    }
}

/// Whether a term contains one of these, other than itself if it is the outermost.
fn contains_any(terms: &Terms, term: Term, of: &QuickSet<Term>, outermost: bool) -> bool {
    !outermost && of.contains(&term)
        || terms.operands(term).into_iter().any(|operand| contains_any(terms, operand, of, false))
}
