//! Widening: a state comes to stand for more, such as for any number of iterations.
//!
//! Each step here keeps everything that the state stood for. Values that are not read again are
//! forgotten, counters become sums of a number of iterations, and sums that grow become symbols.
//! Decisions about them are restated in the new terms as far as possible, and otherwise forgotten.

use std::collections::BTreeMap;

use super::renamed::{in_order, replace_all};
use super::shift::shift;
use super::statics::{Precision, Statics};
use crate::check::protocol::run::Run;
use crate::check::protocol::state::Agent;
use crate::check::protocol::term::linear::Linear;
use crate::check::protocol::term::{Node, Symbol, Term, Terms};
use crate::check::protocol::value::Value;
use crate::ir::{BinaryOp, Scalar, StmtId};
use crate::limits::WARPGROUP_THREADS;
use crate::quick::QuickSet;

/// Widens a state. Returns whether any value has another term now.
pub(super) fn widen(run: &mut Run<'_, '_>, statics: &Statics) -> bool {
    forget(run, statics);
    fold(run);
    let known = settle(run);
    let counted = count(run, statics);
    let shifted = shift(run, statics);
    in_order(run) || known || counted || shifted
}

/// Forgets values that are not read again.
fn forget(run: &mut Run<'_, '_>, statics: &Statics) {
    let code = &run.input.code;
    for agent in &mut run.agents {
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
        agent.moves.heads.retain(|of, _| loops.contains(of));
    }
}

/// Merges the issues of multiplications that every further wait covers.
fn fold(run: &mut Run<'_, '_>) {
    let pending = run.input.kernel.flights().most_pending();
    for (number, block) in run.blocks.iter_mut().enumerate() {
        for (&warpgroup, core) in &mut block.tensor_cores {
            let of_core = |agent: &&Agent| {
                let first = agent.threads.first().map_or(0, |thread| thread / WARPGROUP_THREADS);
                agent.block == number && first == warpgroup && !agent.is_done
            };
            let issued = run.agents.iter().filter(of_core).map(|agent| agent.multiplications).min();
            let over = issued.unwrap_or(0).saturating_sub(pending);
            core.fold(over);
        }
    }
}

/// Replaces truth values that follow from the facts by constants. Returns whether there were any.
fn settle(run: &mut Run<'_, '_>) -> bool {
    let facts = std::mem::take(&mut run.facts);
    let mut any = false;
    replace_all(run, &mut |terms, term| {
        if terms.scalar(term) != Scalar::Bool || terms.known(term).is_some() {
            return term;
        }
        match facts.known(terms, term) {
            Some(value) => {
                any = true;
                terms.truth(value)
            }
            None => term,
        }
    });
    run.facts = facts;
    any
}

/// A number that changes in the iterations of a loop, the same for all threads of a group.
pub(super) struct Moving {
    pub(super) term: Term,
    /// The number of loops around the one that counts with it, and the iteration of that one.
    depth: usize,
    turn: u32,
    place: Place,
    counts: Counts,
}

impl Moving {
    /// Returns the group that has the number.
    fn agent(&self) -> usize {
        match self.place {
            Place::Local(agent, _) | Place::Counter(agent, _) => agent,
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
enum Place {
    Local(usize, usize),
    Counter(usize, usize),
}

/// Returns the counters of loops whose ends are free.
pub(super) fn counters(run: &Run<'_, '_>, statics: &Statics) -> Vec<Moving> {
    let (free, mut all) = (&run.choices.free, vec![]);
    for (number, agent) in run.agents.iter().enumerate().filter(|(_, agent)| !agent.is_done) {
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
                let (turn, place) = (turn(agent, depth), Place::Local(number, index));
                all.push(Moving { term, depth, turn, place, counts });
            }
        }
        for (index, counter) in agent.counters.iter().enumerate() {
            let Some(term) = counter.as_ref().and_then(|counter| counter.value.uniform()) else { continue };
            let of = statics.loops.get(&index);
            if let Some(depth) = loops.iter().position(|stmt| of == Some(stmt) && free.contains(stmt)) {
                let (turn, place) = (turn(agent, depth), Place::Counter(number, index));
                all.push(Moving { term, depth, turn, place, counts: Counts::Itself });
            }
        }
    }
    all
}

/// Whether a group has yet to reach one of the loops that these count.
fn is_awaited(run: &Run<'_, '_>, statics: &Statics, together: &[(i128, Moving)]) -> bool {
    let loops = |agent: &Agent| &run.input.code.step(agent.at).loops;
    // A group within a loop of its own that has a free end is not waited for: in
    // `if x { loop } if y { loop }` it may never arrive.
    let is_held = |agent: &Agent| loops(agent).iter().any(|of| run.choices.free.contains(of));
    let are_early = together.iter().all(|(_, moving)| moving.turn <= statics.precision.awaited);
    let mut waiting = run.agents.iter().filter(|agent| !agent.is_done && !is_held(agent));
    waiting.any(|agent| {
        are_early && statics.may_loop(agent.at)
            || together.iter().any(|(_, moving)| {
                let inside = &loops(&run.agents[moving.agent()])[..=moving.depth];
                statics.is_behind(agent.at, loops(agent), inside)
            })
    })
}

/// Returns the iteration of a group's loop.
fn turn(agent: &Agent, depth: usize) -> u32 {
    agent.turns.get(depth).map_or(0, |(_, turn)| *turn)
}

/// Replaces known counters by sums of iterations. Returns whether there were any.
fn count(run: &mut Run<'_, '_>, statics: &Statics) -> bool {
    let mut of_depth: BTreeMap<usize, Vec<(i128, Moving)>> = BTreeMap::new();
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
        let Precision { apart, past, .. } = statics.precision;
        for together in near(all, apart) {
            let have_begun = together.iter().all(|(number, moving)| {
                (*number > past || moving.counts == Counts::Follows) && moving.turn > 0
            });
            if have_begun && !is_awaited(run, statics, &together) {
                start_counting(run, &together, statics);
                any = true;
            }
        }
    }
    any
}

/// Collects counters that differ by at most `apart`, each from the next, and the numbers that
/// follow them in the same groups, at any distance.
fn near(all: Vec<(i128, Moving)>, apart: i128) -> Vec<Vec<(i128, Moving)>> {
    let (mut counters, following): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|(_, moving)| moving.counts == Counts::Itself);
    counters.sort_by_key(|(number, _)| *number);
    let mut near: Vec<Vec<(i128, Moving)>> = vec![];
    for (number, moving) in counters {
        match near.last_mut() {
            Some(last) if last.last().is_some_and(|(other, _)| number - other <= apart) => {
                last.push((number, moving));
            }
            Some(_) | None => near.push(vec![(number, moving)]),
        }
    }
    for (number, moving) in following {
        let is_of = |together: &&mut Vec<(i128, Moving)>| {
            together.iter().any(|(_, counter)| counter.agent() == moving.agent())
        };
        if let Some(together) = near.iter_mut().find(is_of) {
            together.push((number, moving));
        }
    }
    near.iter_mut().for_each(|together| together.sort_by_key(|(number, _)| *number));
    near
}

/// Whether numbers of a type count, i.e. small ones never wrap.
fn is_count(scalar: Scalar) -> bool {
    matches!(scalar, Scalar::U32 | Scalar::U64 | Scalar::Usize | Scalar::I32 | Scalar::I64)
}

/// Replaces counters that are near each other by sums with the same iterations.
fn start_counting(run: &mut Run<'_, '_>, together: &[(i128, Moving)], statics: &Statics) {
    let (Some((least, _)), Some((most, _))) = (together.first(), together.last()) else { return };
    let scalars = together.iter().map(|(_, moving)| run.terms.scalar(moving.term));
    // The widest type is used: no counter may go further than the iterations do.
    let Some(scalar) = scalars.max_by_key(|scalar| scalar.bytes()) else { return };
    let turns = run.terms.turns(scalar);
    let Statics { period, precision: Precision { past, .. }, .. } = *statics;
    let base = (least - past).max(0) / period * period;
    let becomes = |terms: &mut Terms, number: i128, scalar: Scalar| {
        let sum = terms.sum(Linear { turns, period, rest: number - base });
        terms.cast(sum, scalar)
    };
    for (number, Moving { term, place, .. }) in together {
        let Some(sum) = becomes(run.terms, *number, run.terms.scalar(*term)) else { continue };
        match *place {
            Place::Local(agent, local) => {
                run.agents[agent].locals[local] = Value::Number(super::same(sum));
            }
            Place::Counter(agent, index) => {
                if let Some(counter) = &mut run.agents[agent].counters[index] {
                    counter.value = super::same(sum);
                }
            }
        }
    }
    // Decisions about these numbers also hold for the sums, which are equal.
    for (condition, value) in run.facts.clone().decided_in_order() {
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
            _ = run.facts.assume(run.terms, same, value);
        }
    }
}
