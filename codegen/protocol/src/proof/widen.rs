//! Widening: a state comes to stand for more, such as for any number of iterations.
//!
//! Each step here keeps everything that the state stood for. Values that are not read again are
//! forgotten, counters become sums of a number of iterations, and sums that grow become symbols.
//! Decisions about them are restated in the new terms as far as possible, and otherwise forgotten.

use std::collections::BTreeMap;

use tma_front::ir::{BinaryOp, Scalar, StmtId};
use tma_front::limits::WARPGROUP_THREADS;
use tma_front::quick::QuickSet;

use super::renamed::in_order;
use super::shift::shift;
use super::statics::{Precision, Statics};
use crate::run::Run;
use crate::state::Agent;
use crate::term::linear::Linear;
use crate::term::{Node, NumberedKind, Symbol, Term, Terms};
use crate::value::Value;

/// Widens a state. Returns whether any value has another term now.
pub(super) fn widen(run: &mut Run<'_, '_>, statics: &Statics) -> bool {
    forget(run, statics);
    fold(run);
    let known = fold_known_truths(run);
    let counted = count(run, statics);
    let shifted = shift(run, statics);
    in_order(run) || known || counted || shifted
}

/// Forgets values that are not read again.
fn forget(run: &mut Run<'_, '_>, statics: &Statics) {
    let code = &run.input.code;
    for agent in &mut run.state.agents {
        let loops: &[StmtId] = if agent.is_done { &[] } else { &code.step(agent.at).loops };
        for (local, value) in code.variables.iter().zip(&mut agent.locals) {
            if agent.is_done || !statics.is_live(agent.at, *local) {
                *value = Value::Unknown;
            }
        }
        for (counter, value) in agent.counters.iter_mut().enumerate() {
            if !statics.loops.get(&counter).is_some_and(|of| loops.contains(of)) {
                *value = None;
            }
        }
        agent.loop_changes.heads.retain(|of, _| loops.contains(of));
    }
}

/// Merges the issues of multiplications that every further wait covers.
fn fold(run: &mut Run<'_, '_>) {
    let pending = run.input.kernel.flights().most_pending();
    for (number, block) in run.state.blocks.iter_mut().enumerate() {
        for (&warpgroup, core) in &mut block.tensor_cores {
            let of_core = |agent: &&Agent| {
                let first = agent.threads.first().map_or(0, |thread| thread / WARPGROUP_THREADS);
                agent.block == number && first == warpgroup && !agent.is_done
            };
            let issued = run.state.agents.iter().filter(of_core).map(|agent| agent.multiplications).min();
            let over = issued.unwrap_or(0).saturating_sub(pending);
            core.fold(over);
        }
    }
}

/// Replaces truth values that follow from the facts by constants. Returns whether there were any.
fn fold_known_truths(run: &mut Run<'_, '_>) -> bool {
    let (facts, mut any) = (std::mem::take(&mut run.state.facts), false);
    run.state.map_terms(|term| {
        if run.terms.scalar(term) != Scalar::Bool || run.terms.known(term).is_some() {
            return term;
        }
        let known = facts.known(run.terms, term);
        any |= known.is_some();
        known.map_or(term, |value| run.terms.truth(value))
    });
    run.state.facts = facts;
    any
}

/// A number that changes in the iterations of a loop, the same for all threads of a group.
pub(super) struct ChangingNumber {
    pub(super) term: Term,
    /// The number of loops around the one that counts with it, and the iteration of that one.
    depth: usize,
    iteration: u32,
    location: NumberLocation,
    counts: Counts,
}

impl ChangingNumber {
    /// Returns the group that has the number.
    fn agent(&self) -> usize {
        match self.location {
            NumberLocation::Local(agent, _) | NumberLocation::Counter(agent, _) => agent,
        }
    }
}

/// Whether a number counts iterations itself, or differs from such a number by a constant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counts {
    Itself,
    Follows,
}

/// The location of a number, by group and index.
enum NumberLocation {
    Local(usize, usize),
    Counter(usize, usize),
}

/// Returns the counters of loops whose ends are free.
pub(super) fn counters(run: &Run<'_, '_>, statics: &Statics) -> Vec<ChangingNumber> {
    let (free, mut all) = (&run.findings.free_loops, vec![]);
    for (number, agent) in run.state.agents.iter().enumerate().filter(|(_, agent)| !agent.is_done) {
        let loops = &run.input.code.step(agent.at).loops;
        for (index, (&local, value)) in run.input.code.variables.iter().zip(&agent.locals).enumerate() {
            let Value::Number(lanes) = value else { continue };
            let Some(term) = lanes.uniform() else { continue };
            let counts = |of: &StmtId| {
                let follows = statics.follows(local, *of).then_some(Counts::Follows);
                let counts = if statics.counts(local, *of) { Some(Counts::Itself) } else { follows };
                counts.filter(|_| free.contains(of))
            };
            let found = loops.iter().enumerate().find_map(|(depth, of)| Some((depth, counts(of)?)));
            if let Some((depth, counts)) = found {
                let (iteration, location) = (iteration(agent, depth), NumberLocation::Local(number, index));
                all.push(ChangingNumber { term, depth, iteration, location, counts });
            }
        }
        for (index, counter) in agent.counters.iter().enumerate() {
            let Some(term) = counter.as_ref().and_then(|counter| counter.value.uniform()) else { continue };
            let of = statics.loops.get(&index);
            if let Some(depth) = loops.iter().position(|stmt| of == Some(stmt) && free.contains(stmt)) {
                let (iteration, location) = (iteration(agent, depth), NumberLocation::Counter(number, index));
                all.push(ChangingNumber { term, depth, iteration, location, counts: Counts::Itself });
            }
        }
    }
    all
}

/// Whether a group has yet to reach one of the loops that these count.
fn is_awaited(run: &Run<'_, '_>, statics: &Statics, group: &[(i128, ChangingNumber)]) -> bool {
    let loops = |agent: &Agent| &run.input.code.step(agent.at).loops;
    // A group within a loop of its own that has a free end is not waited for: in
    // `if x { loop } if y { loop }` it may never arrive.
    let is_held = |agent: &Agent| loops(agent).iter().any(|of| run.findings.free_loops.contains(of));
    let are_early = group.iter().all(|(_, moving)| moving.iteration <= statics.precision.awaited);
    let mut waiting = run.state.agents.iter().filter(|agent| !agent.is_done && !is_held(agent));
    waiting.any(|agent| {
        are_early && statics.may_loop(agent.at)
            || group.iter().any(|(_, moving)| {
                let inside = &loops(&run.state.agents[moving.agent()])[..=moving.depth];
                statics.is_behind(agent.at, loops(agent), inside)
            })
    })
}

/// Returns the iteration of a group's loop.
fn iteration(agent: &Agent, depth: usize) -> u32 {
    agent.iterations.get(depth).map_or(0, |(_, iteration)| *iteration)
}

/// Replaces known counters by sums of iterations. Returns whether there were any.
fn count(run: &mut Run<'_, '_>, statics: &Statics) -> bool {
    let mut of_depth: BTreeMap<usize, Vec<(i128, ChangingNumber)>> = BTreeMap::new();
    let mut counted = QuickSet::default();
    for moving in counters(run, statics) {
        let scalar = run.terms.scalar(moving.term);
        match run.terms.int(moving.term) {
            Some(number) if is_count(scalar) => {
                of_depth.entry(moving.depth).or_default().push((number, moving));
            }
            Some(_) => {}
            None => _ = counted.insert(moving.depth),
        }
    }
    let mut any = false;
    for (depth, all) in of_depth {
        // Some counters are in other iterations of the loop around it.
        if depth > 0 && counted.contains(&depth) {
            continue;
        }
        let Precision { max_distance, past, .. } = statics.precision;
        for group in near(all, max_distance) {
            let have_begun = group.iter().all(|(number, moving)| {
                (*number > past || moving.counts == Counts::Follows) && moving.iteration > 0
            });
            if have_begun && !is_awaited(run, statics, &group) {
                start_counting(run, &group, statics);
                any = true;
            }
        }
    }
    any
}

/// Collects counters that differ by at most `max_distance`, each from the next, and the numbers
/// that follow them in the same groups, at any distance.
fn near(all: Vec<(i128, ChangingNumber)>, max_distance: i128) -> Vec<Vec<(i128, ChangingNumber)>> {
    let (mut counters, following): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|(_, moving)| moving.counts == Counts::Itself);
    counters.sort_by_key(|(number, _)| *number);
    let mut near: Vec<Vec<(i128, ChangingNumber)>> = vec![];
    for (number, moving) in counters {
        match near.last_mut() {
            Some(last) if last.last().is_some_and(|(other, _)| number - other <= max_distance) => {
                last.push((number, moving));
            }
            Some(_) | None => near.push(vec![(number, moving)]),
        }
    }
    for (number, moving) in following {
        let is_of = |group: &&mut Vec<(i128, ChangingNumber)>| {
            group.iter().any(|(_, counter)| counter.agent() == moving.agent())
        };
        if let Some(group) = near.iter_mut().find(is_of) {
            group.push((number, moving));
        }
    }
    near.iter_mut().for_each(|group| group.sort_by_key(|(number, _)| *number));
    near
}

/// Whether numbers of a type count, i.e. small ones never wrap.
fn is_count(scalar: Scalar) -> bool {
    matches!(scalar, Scalar::U32 | Scalar::U64 | Scalar::Usize | Scalar::I32 | Scalar::I64)
}

/// Replaces counters that are near each other by sums with the same iterations.
fn start_counting(run: &mut Run<'_, '_>, group: &[(i128, ChangingNumber)], statics: &Statics) {
    let (Some((least, _)), Some((most, _))) = (group.first(), group.last()) else { return };
    let scalars = group.iter().map(|(_, moving)| run.terms.scalar(moving.term));
    // The widest type is used: no counter may go further than the iterations do.
    let Some(scalar) = scalars.max_by_key(|scalar| scalar.bytes()) else { return };
    let iterations = run.terms.numbered(NumberedKind::Iterations, &mut run.state.symbols, scalar);
    let Statics { period, precision: Precision { past, .. }, .. } = *statics;
    let base = (least - past).max(0) / period * period;
    let becomes = |terms: &mut Terms, number: i128, scalar: Scalar| {
        let sum = terms.sum(Linear { iterations, period, rest: number - base });
        terms.cast(sum, scalar)
    };
    for (number, ChangingNumber { term, location, .. }) in group {
        let Some(sum) = becomes(run.terms, *number, run.terms.scalar(*term)) else { continue };
        match *location {
            NumberLocation::Local(agent, local) => {
                run.state.agents[agent].locals[local] = Value::Number(super::same(sum));
            }
            NumberLocation::Counter(agent, index) => {
                if let Some(counter) = &mut run.state.agents[agent].counters[index] {
                    counter.value = super::same(sum);
                }
            }
        }
    }
    // Decisions about these numbers also hold for the sums, which are equal.
    for (condition, value) in run.state.facts.clone().decided_in_order() {
        let Node::Binary(op @ (BinaryOp::Lt | BinaryOp::Eq), a, b) = *run.terms.node(condition) else {
            continue;
        };
        // The number of a lane does not count iterations.
        if [a, b].iter().any(|side| matches!(run.terms.node(*side), Node::Symbol(Symbol::Elected(_)))) {
            continue;
        }
        let near = (least - past - 1).max(base)..=most + 1;
        let both = [a, b].map(|side| match run.terms.int(side) {
            Some(number) if near.contains(&number) => becomes(run.terms, number, run.terms.scalar(side)),
            Some(_) | None => Some(side),
        });
        if let [Some(one), Some(other)] = both
            && (one, other) != (a, b)
        {
            let same = run.terms.binary(op, one, other);
            _ = run.state.facts.assume(run.terms, same, value);
        }
    }
}
