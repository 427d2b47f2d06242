//! Proofs for any number of iterations: a kernel is followed with the progress of its loops as
//! symbols, until no new state occurs.
//!
//! A state is everything that the rest of an execution depends on. At a free condition, the state
//! is *widened*: counters of loops that continue become `period * turns + rest`, and sums that grow
//! by a number of the launch become symbols. It is then compared with the states that occurred
//! before. A known state is not followed again, since everything that can follow from it has been
//! or will be explored. So a loop is followed until its iterations repeat, and what holds for the
//! states holds for any number of iterations. `docs/protocol.md` has the argument.
//!
//! Groups take turns in another order than in the search for mistakes: the group that has taken the
//! fewest iterations of its loops goes first. So a producer is at most a slot ahead, and there are
//! few states. The order makes no difference to what is proved.

mod key;
mod renamed;
mod shift;
mod size;
mod statics;
mod walk;
mod widen;

use std::cmp::Ordering;

use tma_model::sync::Acquirer;

pub(super) use self::renamed::Renaming;
pub(super) use self::size::size;
pub(super) use self::statics::{Precision, Statics};
use super::choices::Choices;
use super::explore::allowance::{Allowance, BYTES_OF_WORK, MOST_BYTES};
use super::explore::elections::Elections;
use super::explore::input::Input;
use super::facts::Facts;
use super::lanes::Lanes;
use super::memory::global::GlobalRecord;
use super::run::{Run, Step, Stop, Went};
use super::state::{Agent, Block, Meeting};
use super::term::{Term, Terms};
use crate::ir::StmtId;
use crate::quick::QuickSet;

/// The outcome of an attempt.
#[derive(Debug)]
pub(super) enum Outcome {
    /// Right in every launch, with any data, for any number of iterations.
    Proved,
    /// Not proved: something may be wrong, or was not followed.
    Open,
    /// These threads have to be split first.
    Split(Vec<Vec<u32>>),
    /// There are more states than the budget allows.
    Budget,
}

/// How many numbers of a state's normal form cost as much as a step.
const NUMBERS_OF_A_STEP: usize = 64;

/// A state to continue from, and the facts there.
struct Snapshot {
    facts: Facts,
    agents: Vec<Agent>,
    blocks: Vec<Block>,
    globals: Vec<GlobalRecord>,
    meetings: [Meeting; 2],
    components: u32,
    current: usize,
    given: [u32; 2],
}

/// Tries to prove a kernel within a budget, and counts the states and steps that this takes.
pub(super) fn prove(
    (input, statics): (&Input<'_>, &Statics),
    terms: &mut Terms,
    elections: &mut Elections,
    (left, states): (&mut Allowance, &mut u32),
) -> Outcome {
    if Run::bytes_at_start(input) > MOST_BYTES {
        return Outcome::Budget;
    }
    let choices = Choices { forks: true, ..Choices::default() };
    terms.count_in(statics.period);
    let mut run = Run::new(input, terms, choices, *left);
    let outcome = all_states(&mut run, statics, states);
    *left = run.budget;
    elections.note(&run.electing, &run.named.take());
    outcome
}

fn all_states(run: &mut Run<'_, '_>, statics: &Statics, states: &mut u32) -> Outcome {
    let (mut seen, mut open, mut has_ended) = (QuickSet::default(), vec![], false);
    loop {
        let end = follow(run, statics);
        if !run.doubts.is_empty() {
            return Outcome::Open;
        }
        match end {
            Err(Stop::Fork(condition)) => {
                if widen::widen(run, statics) {
                    continue;
                }
                let key = key::of(run);
                let numbers = key.len();
                let Ok(bytes) = charge(run, numbers) else { return Outcome::Budget };
                if seen.insert(key) {
                    *states += 1;
                    run.held_beside += bytes + bytes_of(numbers);
                    open.push((save(run), condition, bytes));
                    run.acquirer = Acquirer::default();
                    if run.facts.assume(run.terms, condition, false) {
                        continue;
                    }
                }
            }
            Ok(()) => has_ended = true,
            Err(Stop::Over) => {}
            Err(Stop::Split { classes, alone: true }) => return Outcome::Split(classes),
            Err(Stop::Split { classes, alone: false }) => return Outcome::Split(alike(run, classes)),
            Err(Stop::Budget | Stop::Size) => return Outcome::Budget,
            Err(Stop::Found(_) | Stop::Unknown(_) | Stop::Cut) => return Outcome::Open,
        }
        loop {
            let Some((state, condition, bytes)) = open.pop() else {
                // If no execution ends, only its beginning was explored.
                return if has_ended { Outcome::Proved } else { Outcome::Open };
            };
            run.held_beside -= bytes;
            restore(run, state);
            if run.facts.assume(run.terms, condition, true) {
                break;
            }
        }
    }
}

/// Charges the comparison and the storage of a state whose normal form has this many numbers.
/// Returns the memory that the state takes until it is followed again. The normal form is kept for
/// good.
fn charge(run: &mut Run<'_, '_>, numbers: usize) -> Step<u64> {
    run.budget.take_steps((numbers / NUMBERS_OF_A_STEP) as u64)?;
    let bytes = size::of_state(run);
    run.budget.take_work(bytes / BYTES_OF_WORK)?;
    if run.held_beside + bytes + bytes_of(numbers) > MOST_BYTES { Err(Stop::Size) } else { Ok(bytes) }
}

/// Returns the size of a normal form of this many numbers, in bytes.
fn bytes_of(numbers: usize) -> u64 {
    (numbers * size_of::<u32>()) as u64
}

/// Adds the corresponding classes of other groups to those that a group is split into. Such groups
/// are in the same loops and have as many threads, so they will arrive here as well.
fn alike(run: &Run<'_, '_>, mut classes: Vec<Vec<u32>>) -> Vec<Vec<u32>> {
    let me = run.me();
    let Some(&first) = me.threads.first() else { return classes };
    let loops = |agent: &Agent| &run.input.code.step(agent.at).loops;
    let parted = classes.clone();
    for other in &run.agents {
        let is_alike = other.block == me.block
            && other.threads.len() == me.threads.len()
            && !other.is_done
            && loops(other) == loops(me);
        let Some(&others) = other.threads.first() else { continue };
        let moved = |thread: &u32| (thread + others).checked_sub(first);
        if is_alike && others != first {
            let same = parted.iter().map(|class| class.iter().filter_map(moved).collect());
            classes.extend(same);
        }
    }
    classes
}

/// Continues until all groups have ended or a condition is free. The current group goes first, and
/// then always the one that has taken the fewest iterations.
fn follow(run: &mut Run<'_, '_>, statics: &Statics) -> Step {
    // For each waiting group, the value of `news` at its last attempt.
    let mut waits = vec![None; run.agents.len()];
    loop {
        let (mut any, mut turns) = (false, false);
        while !turns {
            let given = run.terms.given();
            match run.one() {
                Ok(Went::On { turn }) => (any, turns) = (true, turn),
                Ok(Went::Nowhere { came }) => {
                    any |= came;
                    break;
                }
                Err(stop) => {
                    // The step will be taken again, with the same symbols.
                    if let Stop::Fork(_) = stop {
                        run.terms.set_given(given);
                    }
                    return Err(stop);
                }
            }
        }
        waits[run.current] = (!any).then_some(run.news);
        let ready = (0..run.agents.len())
            .filter(|&agent| !run.agents[agent].is_done && waits[agent] != Some(run.news));
        let next = ready.min_by(|&a, &b| order(run, statics, &run.agents[a], &run.agents[b]));
        match next {
            Some(next) => run.current = next,
            None if run.agents.iter().all(|agent| agent.is_done) => return Ok(()),
            None => return Err(run.deadlock()),
        }
    }
}

/// Compares the progress of two groups. The one that has yet to reach the other's loop comes first,
/// or else the one that has taken fewer iterations.
fn order(run: &Run<'_, '_>, statics: &Statics, a: &Agent, b: &Agent) -> Ordering {
    let loops = |agent: &Agent| &run.input.code.step(agent.at).loops;
    let is_behind = |a: &Agent, b: &Agent| statics.is_behind(a.at, loops(a), loops(b));
    let turns = |(_, turn): &(StmtId, u32)| *turn;
    match (is_behind(a, b), is_behind(b, a)) {
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (true, true) | (false, false) => a.turns.iter().map(turns).cmp(b.turns.iter().map(turns)),
    }
}

fn save(run: &Run<'_, '_>) -> Snapshot {
    Snapshot {
        facts: run.facts.clone(),
        agents: run.agents.clone(),
        blocks: run.blocks.clone(),
        globals: run.globals.clone(),
        meetings: [run.cluster.clone(), run.grid.clone()],
        components: run.components,
        current: run.current,
        given: run.terms.given(),
    }
}

fn restore(run: &mut Run<'_, '_>, state: Snapshot) {
    (run.facts, run.agents, run.blocks) = (state.facts, state.agents, state.blocks);
    run.globals = state.globals;
    [run.cluster, run.grid] = state.meetings;
    (run.components, run.current) = (state.components, state.current);
    run.terms.set_given(state.given);
    run.acquirer = Acquirer::default();
}

/// Returns a number that all threads of a group share.
fn same(term: Term) -> Lanes<Term> {
    Lanes::Same(term)
}
