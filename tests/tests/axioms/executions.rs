//! All executions of a program that the axioms allow, by brute force.

use std::collections::{BTreeMap, BTreeSet};

use tma_model::sync::Memory;

use crate::axioms::{Causality, ReadsFrom};
use crate::events::{Kind, Outline};
use crate::program::{Action, Program, Step};
use crate::relation::{Events, Relation, each};

/// The value of a register whose load has not been executed.
pub(crate) const NOT_READ: u32 = 99;

/// The number of executions in which two steps both occur, and of those in which they race.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Meetings {
    pub(crate) together: usize,
    pub(crate) racing: usize,
}

/// The results of the axioms for a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Judgement {
    /// The number of combinations of reads-from that the axioms allow.
    pub(crate) executions: usize,
    /// The values of the steps that read, and the last values of the variables in global memory.
    /// Each outcome has a flag for whether some execution of it is consistent with a global order
    /// in time, in which program order, reads-from and coherence have no cycle. All executions of
    /// the simulator are.
    pub(crate) outcomes: BTreeMap<Vec<u32>, bool>,
    /// The pairs of conflicting steps.
    pub(crate) pairs: BTreeMap<[usize; 2], Meetings>,
}

impl Judgement {
    /// Returns the pairs of steps that race in some execution.
    pub(crate) fn races(&self) -> Vec<[usize; 2]> {
        self.pairs.iter().filter(|(_, meetings)| meetings.racing > 0).map(|(pair, _)| *pair).collect()
    }

    /// Whether two steps race in each execution in which both occur.
    pub(crate) fn always_races(&self) -> bool {
        self.pairs.values().any(|meetings| meetings.together > 0 && meetings.together == meetings.racing)
    }
}

/// Returns the writes that each read may read from: those to its variable that do not follow it.
fn sources(outline: &Outline<'_>) -> Vec<(usize, Vec<usize>)> {
    let reads = (0..outline.events.len()).filter(|&event| outline.events[event].reads());
    let of = |read: usize| {
        let variable = outline.events[read].variable()?;
        let writes = outline.writes(variable);
        let sources = writes.filter(|&write| write != read && !outline.program_order.has(read, write));
        Some((read, sources.collect()))
    };
    reads.filter_map(of).collect()
}

/// Returns the number of combinations of reads-from of a program.
pub(crate) fn combinations(program: &Program) -> usize {
    sources(&Outline::of(program)).iter().map(|(_, sources)| sources.len()).product()
}

/// Judges all executions of a program.
pub(crate) fn judge(program: &Program) -> Judgement {
    let outline = Outline::of(program);
    let sources = sources(&outline);
    let mut judgement = Judgement::default();
    let mut chosen = vec![0; sources.len()];
    loop {
        execution(&outline, &sources, &chosen, &mut judgement);
        // The next combination.
        let Some(next) = (0..chosen.len()).find(|&read| chosen[read] + 1 < sources[read].1.len()) else {
            return judgement;
        };
        chosen[next] += 1;
        chosen[..next].fill(0);
    }
}

/// Adds the execution of a combination of reads-from, if there is one.
fn execution(
    outline: &Outline<'_>,
    sources: &[(usize, Vec<usize>)],
    chosen: &[usize],
    judgement: &mut Judgement,
) {
    let mut from = vec![None; outline.events.len()];
    for ((read, sources), &chosen) in sources.iter().zip(chosen) {
        from[*read] = Some(sources[chosen]);
    }
    let Some(values) = Values::of(outline, &from) else { return };
    // One combination is enough for reads that do not occur.
    if sources.iter().zip(chosen).any(|((read, _), chosen)| *chosen > 0 && !values.occurs(*read)) {
        return;
    }
    let occurring = (0..outline.events.len()).filter(|&event| values.occurs(event));
    let occurring: Events = occurring.fold(0, |all, event| all | 1 << event);
    let mut relation = Relation::default();
    for read in each(occurring) {
        if let Some(source) = from[read] {
            relation.add(source, read);
        }
    }
    let Some(causality) = (ReadsFrom { outline, occurring, relation }).causality() else { return };
    let orders: Vec<_> =
        (0..outline.program.variables.len()).map(|variable| coherence_orders(&causality, variable)).collect();
    if orders.iter().any(Vec::is_empty) {
        return;
    }
    judgement.executions += 1;
    let steps = |pair: [usize; 2]| pair.map(|event| outline.events[event].step.unwrap_or(usize::MAX));
    let mut met = BTreeMap::new();
    for pair in causality.conflicts() {
        *met.entry(steps(pair)).or_insert(false) |= causality.is_race(pair);
    }
    for (pair, is_race) in met {
        let meetings = judgement.pairs.entry(pair).or_default();
        meetings.together += 1;
        meetings.racing += usize::from(is_race);
    }
    let registers = outline.program.reads().into_iter().map(|step| {
        let event = outline.event_of(step);
        event.and_then(|event| values.read[event]).unwrap_or(NOT_READ)
    });
    let in_time = outline.program_order.within(occurring).union(&causality.from.relation);
    outcomes(&orders, &values, (registers.collect(), in_time), judgement);
}

/// A coherence order of a variable, and the last write.
type Coherence = (Relation, usize);

/// Returns the coherence orders of a variable that the axioms allow.
fn coherence_orders(causality: &Causality<'_>, variable: usize) -> Vec<Coherence> {
    let occurs = |write: &usize| causality.from.occurring & 1 << write != 0;
    let mut writes: Vec<_> = causality.from.outline.writes(variable).filter(occurs).collect();
    let mut all = vec![];
    // The initial write comes first.
    permutations(&mut writes, 1, &mut |sequence| {
        if let (Some(order), Some(&last)) = (causality.coherence(sequence), sequence.last()) {
            all.push((order, last));
        }
    });
    all
}

/// Visits all permutations of the items from an index on.
fn permutations(items: &mut Vec<usize>, from: usize, visit: &mut impl FnMut(&[usize])) {
    if from >= items.len() {
        return visit(items);
    }
    for index in from..items.len() {
        items.swap(from, index);
        permutations(items, from + 1, visit);
        items.swap(from, index);
    }
}

/// Adds the outcomes of all combinations of coherence orders: the values of the reads are known,
/// and the last values follow.
fn outcomes(
    orders: &[Vec<Coherence>],
    values: &Values<'_>,
    (seen, in_time): (Vec<u32>, Relation),
    judgement: &mut Judgement,
) {
    let Some((first, rest)) = orders.split_first() else {
        *judgement.outcomes.entry(seen).or_default() |= in_time.is_acyclic();
        return;
    };
    for (order, last) in first {
        let mut seen = seen.clone();
        // Shared memory no longer exists at the end.
        let variables = &values.outline.program.variables;
        if variables[variables.len() - orders.len()].memory == Memory::Global {
            seen.push(values.written[*last].unwrap_or(0));
        }
        outcomes(rest, values, (seen, in_time.union(order)), judgement);
    }
}

/// The values of an execution.
struct Values<'o> {
    outline: &'o Outline<'o>,
    from: &'o [Option<usize>],
    /// The values of reads and of writes, or `None` for those that do not occur.
    read: Vec<Option<u32>>,
    written: Vec<Option<u32>>,
    is_known: Events,
    /// The events whose values are being computed.
    open: BTreeSet<usize>,
    present: Events,
}

impl<'o> Values<'o> {
    /// Returns `None` if the values contradict each other, or depend on themselves.
    fn of(outline: &'o Outline<'o>, from: &'o [Option<usize>]) -> Option<Self> {
        let none = vec![None; outline.events.len()];
        let (read, written) = (none.clone(), none);
        let mut values =
            Self { outline, from, read, written, is_known: 0, open: BTreeSet::new(), present: 0 };
        (0..outline.events.len()).try_for_each(|event| values.find(event))?;
        Some(values)
    }

    fn occurs(&self, event: usize) -> bool {
        self.present & 1 << event != 0
    }

    /// Computes the values of an event, after those that it depends on. A value that depends on
    /// itself comes "out of thin air" (PTX ISA, "No Thin Air").
    fn find(&mut self, event: usize) -> Option<()> {
        if self.is_known & 1 << event != 0 {
            return Some(());
        }
        if !self.open.insert(event) {
            return None;
        }
        if self.is_to_occur(event)? {
            self.present |= 1 << event;
            match self.outline.events[event].kind {
                Kind::Initial(_) => self.written[event] = Some(0),
                Kind::Access(access) => {
                    let old = match self.from[event] {
                        Some(source) => Some(self.value_of(source)?),
                        None => None,
                    };
                    self.read[event] = old;
                    self.written[event] = match access.action {
                        Action::Load => None,
                        Action::Await(value) if old == Some(value) => None,
                        Action::Await(_) => return None,
                        Action::Store(value) => Some(value),
                        Action::Update(update) => Some(update.new_value(old?)),
                    };
                }
                Kind::MissedPoll(_) | Kind::Fence | Kind::Barrier => {}
            }
        }
        self.is_known |= 1 << event;
        self.open.remove(&event);
        Some(())
    }

    /// Computes the value of a write that something reads from.
    fn value_of(&mut self, source: usize) -> Option<u32> {
        self.find(source)?;
        self.written[source]
    }

    /// Returns whether the guard of an event holds.
    fn is_to_occur(&mut self, event: usize) -> Option<bool> {
        let Some(step) = self.outline.events[event].step else { return Some(true) };
        match self.outline.program.steps[step] {
            Step::Of { guard: Some(guard), .. } => {
                let read = self.outline.event_of(guard.step)?;
                self.find(read)?;
                Some(self.read[read] == Some(guard.value))
            }
            Step::Of { guard: None, .. } | Step::Barrier(_) => Some(true),
        }
    }
}
