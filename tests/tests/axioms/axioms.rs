//! The axioms of PTX's memory model.
//!
//! Source: PTX ISA 9, "Memory Consistency Model": "Ordering of Memory Operations" defines the
//! relations, and "Axioms" defines the allowed executions. D. Lustig, S. Sahasrabuddhe and O.
//! Giroux, "A Formal Analysis of the NVIDIA PTX Memory Consistency Model", ASPLOS 2019, has both as
//! formulas. All accesses here use the generic proxy, so proxy-preserved base causality is base
//! causality between operations on the same variable. The language has no `fence.sc`, so there is
//! no Fence-SC order.

use crate::events::Outline;
use crate::relation::{Events, Relation, each};

/// The write that each read reads from, among the events that occur.
#[derive(Clone, Debug)]
pub(crate) struct ReadsFrom<'o> {
    pub(crate) outline: &'o Outline<'o>,
    pub(crate) occurring: Events,
    /// From writes to reads.
    pub(crate) relation: Relation,
}

/// Causality, which reads-from determines.
#[derive(Clone, Debug)]
pub(crate) struct Causality<'o> {
    pub(crate) from: ReadsFrom<'o>,
    /// "Causality Order", between operations on the same variable.
    pub(crate) order: Relation,
}

impl<'o> ReadsFrom<'o> {
    /// Returns the write that a read reads from.
    fn source(&self, read: usize) -> Option<usize> {
        (0..self.outline.events.len()).find(|&write| self.relation.has(write, read))
    }

    /// Computes the "Observation Order": a write precedes a read that reads from it if they are
    /// morally strong, and transitively the reads that are observed through atomic operations.
    fn observation(&self) -> Relation {
        let Outline { events, morally_strong, .. } = self.outline;
        let observed = self.relation.and(morally_strong);
        let onwards =
            Relation::of(events.len(), |from, to| events[from].is_update() && observed.has(from, to));
        let mut all = observed;
        loop {
            let longer = all.union(&all.then(&onwards));
            if longer == all {
                return all;
            }
            all = longer;
        }
    }

    /// Computes "Memory Synchronization": a release pattern synchronises with an acquire pattern
    /// that observes it, if the first operation of the former and the last of the latter are
    /// morally strong.
    fn synchronises(&self, observation: &Relation) -> Relation {
        let Outline { events, morally_strong, releases, acquires, .. } = self.outline;
        let mut all = Relation::default();
        for write in each(self.occurring) {
            for read in each(observation.after(write)) {
                if events[write].thread == events[read].thread {
                    continue;
                }
                for first in each(releases[write] & self.occurring) {
                    for last in each(acquires[read] & self.occurring & morally_strong.after(first)) {
                        all.add(first, last);
                    }
                }
            }
        }
        all
    }

    /// Computes the "Causality Order". Returns `None` if the execution violates the axiom
    /// "Causality" because a read precedes the write that it reads from.
    pub(crate) fn causality(self) -> Option<Causality<'o>> {
        let Outline { program_order, rendezvous, overlapping, .. } = self.outline;
        let observation = self.observation();
        let base =
            program_order.union(rendezvous).within(self.occurring).union(&self.synchronises(&observation));
        let base = base.closure();
        let order = base.union(&observation.then(&base)).and(overlapping);
        let reads = |read: usize| {
            each(self.occurring).all(|write| !self.relation.has(write, read) || !order.has(read, write))
        };
        each(self.occurring).all(reads).then_some(Causality { from: self, order })
    }
}

impl Causality<'_> {
    /// Returns the pairs of operations of different threads on the same variable, at least one of
    /// them a write.
    pub(crate) fn conflicts(&self) -> Vec<[usize; 2]> {
        let Outline { events, overlapping, .. } = self.from.outline;
        let mut all = vec![];
        for one in each(self.from.occurring) {
            for other in each(overlapping.after(one) & self.from.occurring).filter(|other| *other > one) {
                let [first, second] = [one, other].map(|event| &events[event]);
                let differ =
                    first.thread.is_some() && second.thread.is_some() && first.thread != second.thread;
                if differ && (first.writes() || second.writes()) {
                    all.push([one, other]);
                }
            }
        }
        all
    }

    /// Returns whether operations that conflict are neither morally strong nor in causality order
    /// ("Conflict and Data-Races").
    pub(crate) fn is_race(&self, [one, other]: [usize; 2]) -> bool {
        let are_ordered = self.order.has(one, other) || self.order.has(other, one);
        !are_ordered && !self.from.outline.morally_strong.has(one, other)
    }

    /// Computes the "Coherence Order" of a variable whose writes occur in this sequence, if the
    /// axioms allow it. It relates writes that are morally strong or in causality order, and is
    /// transitive.
    pub(crate) fn coherence(&self, sequence: &[usize]) -> Option<Relation> {
        let Outline { morally_strong, events, .. } = self.from.outline;
        let mut related = Relation::default();
        for (index, &earlier) in sequence.iter().enumerate() {
            for &later in &sequence[index + 1..] {
                // The axiom "Coherence".
                if self.order.has(later, earlier) {
                    return None;
                }
                if morally_strong.has(earlier, later) || self.order.has(earlier, later) {
                    related.add(earlier, later);
                }
            }
        }
        let coherence = related.closure();
        let reads: Vec<_> = each(self.from.occurring)
            .filter(|&read| events[read].reads() && events[read].variable() == events[sequence[0]].variable())
            .filter_map(|read| Some((read, self.from.source(read)?)))
            .collect();
        // "Communication Order", from a read to the writes that follow the one it reads from.
        let mut from_reads = Relation::default();
        for &(read, source) in &reads {
            each(coherence.after(source))
                .filter(|&write| write != read)
                .for_each(|write| from_reads.add(read, write));
        }
        let is_allowed = reads.iter().all(|&(read, source)| {
            self.sees_the_last(read, &from_reads) && self.is_atomic([source, read], &coherence)
        });
        (is_allowed && self.is_sequential_by_place(&coherence, &from_reads)).then_some(coherence)
    }

    /// Checks the axiom "Causality": a read does not read from a write that precedes, in coherence
    /// order, one that precedes the read in causality order.
    fn sees_the_last(&self, read: usize, from_reads: &Relation) -> bool {
        each(from_reads.after(read)).all(|write| !self.order.has(write, read))
    }

    /// Checks the axiom "Atomicity" of an atomic operation and the write that it reads from: no
    /// morally strong write comes between the two.
    fn is_atomic(&self, [source, update]: [usize; 2], coherence: &Relation) -> bool {
        let Outline { events, morally_strong, .. } = self.from.outline;
        let between = |write: usize| coherence.has(write, update) && morally_strong.has(write, update);
        !events[update].is_update() || !each(coherence.after(source)).any(between)
    }

    /// Checks the axiom "SC-per-Location".
    fn is_sequential_by_place(&self, coherence: &Relation, from_reads: &Relation) -> bool {
        let Outline { program_order, overlapping, morally_strong, .. } = self.from.outline;
        let communication = self.from.relation.union(coherence).union(from_reads);
        let of_thread = program_order.and(overlapping).within(self.from.occurring);
        of_thread.union(&communication.and(morally_strong)).is_acyclic()
    }
}
