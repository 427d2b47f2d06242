//! Explanations of mistakes that the rule alone does not explain.

use super::{Act, Counts, Protocol, Repair, Step, Threads};

impl Protocol {
    /// Returns whether the mistake is a wait that returns immediately.
    pub(super) fn is_idle_wait(&self) -> bool {
        matches!(self.step.does, Act::WaitAgain | Act::WaitWithParity { .. })
    }

    /// Describes the wait that returns immediately, and the cause.
    pub(super) fn idle_wait(&self, barrier: &str) -> String {
        let (who, turn) = (self.step.threads.name(), self.step.turn());
        let verb = if self.step.threads.threads.len() == 1 { "waits" } else { "wait" };
        let is_ring = self.subject.as_ref().is_some_and(|subject| subject.part.is_some());
        if let Act::WaitWithParity { seen } = self.step.does
            && !is_ring
        {
            let (given, next) = (1 - (seen & 1), seen & 1);
            let nth = if seen == 0 { "first" } else { "next" };
            let waits = format!("{who} {verb} for {barrier}{turn} with");
            return if self.is_repaired_here() {
                format!(
                    "{waits} the opposite parity: it is {given}, but the {nth} phase has parity {next}, so the wait \
                     passes at once"
                )
            } else {
                format!("{waits} parity {given}, which passes at once: the {nth} phase has parity {next}")
            };
        }
        format!(
            "{who} {verb} again{turn} for a phase of {barrier} that is over: the wait passes at once, although the next \
             phase is under way or complete"
        )
    }

    /// Returns whether a different parity at this very wait makes the kernel correct.
    fn is_repaired_here(&self) -> bool {
        let Some(Repair::Parity { at, .. } | Repair::ParityOf { at, .. }) = &self.repair else {
            return false;
        };
        at.start() == self.step.at.start()
    }

    /// Describes the blocks that do not load their slices.
    pub(super) fn slices(&self, barrier: &str) -> String {
        let (blocks, verb) = match self.without.as_slice() {
            [one] => (format!("block {one}"), "does"),
            [all @ .., last] => {
                let all: Vec<_> = all.iter().map(ToString::to_string).collect();
                (format!("blocks {} and {last}", all.join(", ")), "do")
            }
            [] => ("a block".to_owned(), "does"),
        };
        let lacks = match self.counts {
            Some(Counts { phase, expected_bytes, received_bytes, .. }) if expected_bytes > 0 => {
                format!(": {barrier} gets {received_bytes} of the {expected_bytes} bytes of phase {phase}")
            }
            Some(_) | None => String::new(),
        };
        format!(
            "each block brings a part of the tile with `load_sliced`, but {blocks} of the cluster {verb} not call \
             it{lacks}"
        )
    }

    /// Describes the barrier that is invalidated too early.
    pub(super) fn under_copy(&self, barrier: &str) -> String {
        let (who, turn) = (self.step.threads.name(), self.step.turn());
        let verb = if self.step.threads.threads.len() == 1 { "invalidates" } else { "invalidate" };
        format!("{who} {verb} {barrier}{turn} while a copy under way still reports to it")
    }

    /// Describes the threads that will not arrive any more.
    pub(super) fn gone(&self) -> Option<String> {
        let gone = |step: &Step| {
            let (who, does) = (step.threads.name(), step.does);
            let has = if step.threads.threads.len() == 1 { "has" } else { "have" };
            if does == Act::Return {
                Some(format!("{who} {has} returned"))
            } else if does == Act::EndElsewhere {
                Some(format!("{who} {has} ended without it"))
            } else {
                (does == Act::BlockReturns).then(|| "another block has returned".to_owned())
            }
        };
        let all: Vec<String> = self.others.iter().filter_map(gone).collect();
        (!all.is_empty()).then(|| all.join(", and "))
    }

    /// Returns whether threads are missing because they have returned.
    pub(super) fn has_returned(&self) -> bool {
        self.others.iter().any(|other| matches!(other.does, Act::Return | Act::BlockReturns))
    }

    /// Returns the other step, if it is at the same statement.
    fn same_statement(&self) -> Option<&Step> {
        self.others.iter().find(|other| other.stmt == self.step.stmt)
    }

    /// Returns whether different threads perform the same statement once each, so that nothing can
    /// come between the two steps.
    pub(super) fn is_done_by_several(&self) -> bool {
        self.same_statement()
            .is_some_and(|other| !other.threads.are(&self.step.threads) && other.turn == self.step.turn)
    }

    /// Explains why two steps have the same location in the source.
    pub(super) fn at_one_statement(&self) -> Option<String> {
        let other = self.same_statement()?;
        let mut both = [&other.threads, &self.step.threads];
        both.sort_by_key(|threads| (threads.block, threads.threads.first()));
        let [one, another] = both.map(Threads::warp_or_name);
        if !other.threads.are(&self.step.threads) {
            return Some(format!("{one} and {another} both execute this statement"));
        }
        // The message already has the iteration of the innermost loop.
        let is_outer = other.turn == self.step.turn;
        is_outer.then(|| format!("{one} comes here again in another turn of an outer loop"))
    }
}
