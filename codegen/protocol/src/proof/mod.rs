//! Proofs for any number of iterations: a kernel is followed with the progress of its loops as
//! symbols, until no new state occurs.
//!
//! A state is everything that the rest of an execution depends on. At a free condition, the state
//! is *widened*: counters of loops that continue become `period * iterations + rest`, and sums that
//! grow by a number of the launch become symbols. It is then compared with the states that occurred
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
mod widen;

use std::cmp::Ordering;

use tma_front::ir::StmtId;
use tma_front::quick::QuickSet;

use super::choices::Policy;
use super::explore::allowance::{Allowance, BYTES_PER_WORK, MAX_BYTES};
use super::explore::elections::Elections;
use super::explore::input::Input;
use super::lanes::Lanes;
use super::run::{Run, StepResult, Stop, Transition};
use super::state::{Agent, Execution};
use super::term::{Term, Terms};

pub(super) use self::renamed::Renaming;
pub(super) use self::size::of_state;
pub(super) use self::statics::{Precision, Statics};

/// The outcome of an attempt.
#[derive(Debug)]
pub(super) enum ProofOutcome {
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
const NUMBERS_PER_STEP: usize = 64;

/// The cost of attempts to prove a kernel: the limit, and the cost so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProofCost {
    pub(super) left: Allowance,
    /// The states that were compared.
    pub(super) states: u32,
}

/// Tries to prove a kernel.
pub(super) fn prove(
    input: &Input<'_>,
    statics: &Statics,
    terms: &mut Terms,
    elections: &mut Elections,
    cost: &mut ProofCost,
) -> ProofOutcome {
    if Run::bytes_at_start(input) > MAX_BYTES {
        return ProofOutcome::Budget;
    }
    terms.count_in(statics.period);
    let mut run = Run::new(input, terms, Policy::proof(cost.left));
    let outcome = all_states(&mut run, statics, &mut cost.states);
    cost.left = run.policy.budget;
    elections.note(&run.findings);
    outcome
}

/// A state whose other branch has yet to be followed.
struct OpenState {
    state: Execution,
    /// The condition, which does not hold in the branch that was followed.
    condition: Term,
    /// The memory of the state.
    bytes: u64,
}

fn all_states(run: &mut Run<'_, '_>, statics: &Statics, states: &mut u32) -> ProofOutcome {
    let (mut seen, mut open, mut has_ended) = (QuickSet::default(), vec![], false);
    loop {
        let end = follow(run, statics);
        if !run.findings.undecided.is_empty() {
            return ProofOutcome::Open;
        }
        match end {
            Err(Stop::Fork(condition)) => {
                if widen::widen(run, statics) {
                    continue;
                }
                let key = key::of(run.input, &mut run.state);
                let numbers = key.len();
                let Ok(bytes) = charge(run, numbers) else { return ProofOutcome::Budget };
                if seen.insert(key) {
                    *states += 1;
                    run.policy.other_held_bytes += bytes + bytes_of(numbers);
                    open.push(OpenState { state: run.state.clone(), condition, bytes });
                    if run.state.facts.assume(run.terms, condition, false) {
                        continue;
                    }
                }
            }
            Ok(()) => has_ended = true,
            Err(Stop::Discarded) => {}
            Err(Stop::Split { classes, alone: true }) => return ProofOutcome::Split(classes),
            Err(Stop::Split { classes, alone: false }) => return ProofOutcome::Split(alike(run, classes)),
            Err(Stop::Budget | Stop::Size) => return ProofOutcome::Budget,
            Err(Stop::Violation(_) | Stop::Undecided(_) | Stop::IterationLimit) => return ProofOutcome::Open,
        }
        loop {
            let Some(OpenState { state, condition, bytes }) = open.pop() else {
                // If no execution ends, only its beginning was explored.
                return if has_ended { ProofOutcome::Proved } else { ProofOutcome::Open };
            };
            run.policy.other_held_bytes -= bytes;
            run.state = state;
            if run.state.facts.assume(run.terms, condition, true) {
                break;
            }
        }
    }
}

/// Charges the comparison and the storage of a state whose normal form has this many numbers.
/// Returns the memory that the state takes until it is followed again. The normal form is kept for
/// good.
fn charge(run: &mut Run<'_, '_>, numbers: usize) -> StepResult<u64> {
    run.policy.budget.take_steps((numbers / NUMBERS_PER_STEP) as u64)?;
    let bytes = of_state(&mut run.state);
    run.policy.budget.take_work(bytes / BYTES_PER_WORK)?;
    if run.policy.other_held_bytes + bytes + bytes_of(numbers) > MAX_BYTES {
        Err(Stop::Size)
    } else {
        Ok(bytes)
    }
}

/// Returns the size of a normal form of this many numbers, in bytes.
fn bytes_of(numbers: usize) -> u64 {
    (numbers * size_of::<u32>()) as u64
}

/// Adds the corresponding classes of other groups to those that a group is split into. Such groups
/// are in the same loops and have as many threads, so they will arrive here as well.
fn alike(run: &Run<'_, '_>, mut classes: Vec<Vec<u32>>) -> Vec<Vec<u32>> {
    let me = run.agent();
    let Some(&first) = me.threads.first() else { return classes };
    let loops = |agent: &Agent| &run.input.code.step(agent.at).loops;
    let own_classes = classes.clone();
    for other in &run.state.agents {
        let is_alike = other.block == me.block
            && other.threads.len() == me.threads.len()
            && !other.is_done
            && loops(other) == loops(me);
        let Some(&others) = other.threads.first() else { continue };
        let moved = |thread: &u32| (thread + others).checked_sub(first);
        if is_alike && others != first {
            let same = own_classes.iter().map(|class| class.iter().filter_map(moved).collect());
            classes.extend(same);
        }
    }
    classes
}

/// Continues until all groups have ended or a condition is free. The current group goes first, and
/// then always the one that has taken the fewest iterations.
fn follow(run: &mut Run<'_, '_>, statics: &Statics) -> StepResult {
    // For each waiting group, the value of `event_count` at its last attempt.
    let mut waits = vec![None; run.state.agents.len()];
    loop {
        let (mut any, mut iterations) = (false, false);
        while !iterations {
            let symbols = run.state.symbols;
            match run.single_step() {
                Ok(Transition::Advanced { began_iteration }) => (any, iterations) = (true, began_iteration),
                Ok(Transition::Blocked { arrived }) => {
                    any |= arrived;
                    break;
                }
                Err(stop) => {
                    // The step will be taken again, with the same symbols.
                    if let Stop::Fork(_) = stop {
                        run.state.symbols = symbols;
                    }
                    return Err(stop);
                }
            }
        }
        waits[run.state.current] = (!any).then_some(run.state.event_count);
        let ready = (0..run.state.agents.len())
            .filter(|&agent| !run.state.agents[agent].is_done && waits[agent] != Some(run.state.event_count));
        let next = ready.min_by(|&a, &b| order(run, statics, &run.state.agents[a], &run.state.agents[b]));
        match next {
            Some(next) => run.state.current = next,
            None if run.state.agents.iter().all(|agent| agent.is_done) => return Ok(()),
            None => return Err(run.deadlock()),
        }
    }
}

/// Compares the progress of two groups. The one that has yet to reach the other's loop comes first,
/// or else the one that has taken fewer iterations.
fn order(run: &Run<'_, '_>, statics: &Statics, a: &Agent, b: &Agent) -> Ordering {
    let loops = |agent: &Agent| &run.input.code.step(agent.at).loops;
    let is_behind = |a: &Agent, b: &Agent| statics.is_behind(a.at, loops(a), loops(b));
    let iterations = |(_, iteration): &(StmtId, u32)| *iteration;
    match (is_behind(a, b), is_behind(b, a)) {
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (true, true) | (false, false) => {
            a.iterations.iter().map(iterations).cmp(b.iterations.iter().map(iterations))
        }
    }
}

/// Returns a number that all threads of a group share.
fn same(term: Term) -> Lanes<Term> {
    Lanes::Same(term)
}
