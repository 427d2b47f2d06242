//! Explanations of mistakes that the rule alone does not explain.

use tma_model::rule::Rule;

use super::{Counts, Protocol, ThreadAct, ThreadSet, ThreadStep};
use crate::ir::Span;

impl Protocol {
    /// Returns whether the mistake is a wait that returns immediately.
    pub(super) fn is_idle_wait(&self) -> bool {
        matches!(self.step.does, ThreadAct::WaitAgain | ThreadAct::WaitWithParity { .. })
    }

    /// Describes a wait that returns immediately, or that nothing orders before the next phase.
    pub(super) fn overrun(&self, barrier: &str) -> String {
        if self.is_parity_elsewhere() {
            return "wrong parity: this wait may return before its phase completes".to_owned();
        }
        let rule = if self.wrong_parity().is_some() || self.names_parity().is_some() {
            "wrong parity"
        } else if self.is_idle_wait() {
            "wait for a past phase"
        } else {
            "wait overrun"
        };
        format!("{rule}: {}", self.reported_wait(barrier, ""))
    }

    /// Describes the wait that is overrun, and the cause.
    pub(super) fn reported_wait(&self, barrier: &str, here: &str) -> String {
        let (threads, iteration) = (self.step.threads.name(), self.step.iteration());
        let verb = if self.step.threads.threads.len() == 1 { "waits" } else { "wait" };
        if let Some(seen) = self.names_parity() {
            let (given, next) = (1 - (seen & 1), seen & 1);
            let nth = if seen == 0 { "first" } else { "next" };
            return format!(
                "{threads} {verb} for {barrier} with parity {given}{here}{iteration}, but the {nth} phase \
                 has parity {next}, so the wait returns at once"
            );
        }
        if self.is_idle_wait() {
            return format!(
                "{threads} {verb} again for {barrier}{here}{iteration}, and the wait returns at once, \
                 although the next phase is in progress or complete"
            );
        }
        let rest = "and nothing orders this before the next phase completes";
        format!("{threads} {verb} for {barrier}{here}{iteration}, {rest}")
    }

    /// Returns the number of phases that the waiting threads have seen complete, if they name a
    /// parity themselves and it is the wrong one. A pipeline keeps track of its parities.
    fn names_parity(&self) -> Option<u32> {
        let is_ring = self.subject.as_ref().is_some_and(|subject| subject.role.is_some());
        if let ThreadAct::WaitWithParity { seen } = self.step.does {
            (!is_ring).then_some(seen)
        } else {
            None
        }
    }

    /// Returns the wait whose parity has to change, if that makes the kernel correct.
    fn wrong_parity(&self) -> Option<Span> {
        self.repair.as_ref().filter(|_| self.rule == Rule::Overrun)?.wrong_parity()
    }

    /// Returns whether a different parity at a wait other than the overrun one makes the kernel
    /// correct.
    pub(super) fn is_parity_elsewhere(&self) -> bool {
        self.wrong_parity().is_some_and(|at| at.start() != self.step.at.start())
    }

    /// Describes two accesses that nothing orders.
    pub(super) fn race(&self, subject: &str) -> String {
        let (step, iteration) = (&self.step, self.step.iteration());
        let other = match self.others.first() {
            Some(other) if other.does.operation().is_none() && other.threads.is_same_set(&step.threads) => {
                format!("the {} by other threads", other.does.access())
            }
            Some(other) => format!("the {}", other.access()),
            None => "another access".to_owned(),
        };
        format!("race on {subject}: nothing orders this {}{iteration} after {other}", step.access())
    }

    /// Describes accesses by threads and by an operation that no proxy fence separates.
    pub(super) fn fence(&self, subject: &str) -> String {
        let (step, iteration) = (&self.step, self.step.iteration());
        let operation = step.does.operation().unwrap_or("access");
        let Some(other) = self.others.first() else {
            return format!(
                "missing proxy fence: the {operation}{iteration} may not see all writes to {subject}"
            );
        };
        let (threads, writes) = (other.threads.name(), step.does.access() == "write");
        let many = other.threads.threads.len() != 1;
        let of = match other.threads.is_same_set(&step.threads) {
            true => String::new(),
            false => format!(" of {}", step.threads.name()),
        };
        let what = match (writes, other.does == ThreadAct::Read) {
            (true, true) => {
                format!("overwrite {subject} before {threads} {} read it", if many { "have" } else { "has" })
            }
            (true, false) => format!("write {subject} before {threads} {}", if many { "do" } else { "does" }),
            (false, _) => format!("not see what {threads} wrote to {subject}"),
        };
        format!("missing proxy fence: the {operation}{of}{iteration} may {what}")
    }

    /// Describes the use of a barrier that is not initialised, or not visibly.
    pub(super) fn not_visible(&self, barrier: &str) -> String {
        let (threads, using, iteration) =
            (self.step.threads.name(), self.using(barrier), self.step.iteration());
        if self.others.is_empty() {
            return format!(
                "mbarrier not initialised: {threads} {using}{iteration}, but no thread has initialised it"
            );
        }
        let what = match self.step.does == ThreadAct::IssueCopyThere {
            true => "but the copy may not see the barrier's initialisation",
            false => "but may not see its initialisation",
        };
        format!("mbarrier not visible: {threads} {using}{iteration}, {what}")
    }

    /// Describes threads that do not synchronise in the same way.
    pub(super) fn diverged(&self) -> String {
        let (threads, does, iteration) = (self.step.threads.name(), self.step.verb(), self.step.iteration());
        if matches!(
            self.step.does,
            ThreadAct::ArriveAgain | ThreadAct::ArriveTwice | ThreadAct::WaitUnarrived
        ) {
            return format!("divergent barrier: {threads} {does}{iteration}");
        }
        let others = match self.others.first() {
            Some(other) if other.does == ThreadAct::ReachElsewhere => {
                let is_here = other.stmt == self.step.stmt;
                let (other, verb) = (other.threads.name(), other.verb());
                let differs = match is_here {
                    true => "in another iteration of a loop",
                    false => "at another statement, or with another count",
                };
                format!("{other} {verb} {differs}")
            }
            Some(_) | None => self.gone().unwrap_or("the other threads do not".to_owned()),
        };
        format!("divergent barrier: {threads} {does}{iteration}, but {others}")
    }

    /// Describes the blocks that do not load their slices.
    pub(super) fn slices(&self, barrier: &str) -> String {
        let (blocks, verb, their) = match self.without.as_slice() {
            [one] => (format!("block {one}"), "does", "its part"),
            [all @ .., last] => {
                let all: Vec<_> = all.iter().map(ToString::to_string).collect();
                (format!("blocks {} and {last}", all.join(", ")), "do", "their parts")
            }
            [] => ("a block".to_owned(), "does", "its part"),
        };
        let lacks = match self.counts {
            Some(Counts { phase, expected_bytes: all, received_bytes: some, .. }) if all > 0 => {
                format!("{barrier} gets {some} of the {all} bytes of phase {phase}, since ")
            }
            Some(_) | None => String::new(),
        };
        format!(
            "wrong transaction bytes: {lacks}{blocks} of the cluster {verb} not load {their} of the tile \
             with `load_sliced`"
        )
    }

    /// Describes the barrier that is invalidated too early.
    pub(super) fn under_copy(&self, barrier: &str) -> String {
        let (threads, iteration) = (self.step.threads.name(), self.step.iteration());
        let verb = if self.step.threads.threads.len() == 1 { "invalidates" } else { "invalidate" };
        format!(
            "leaked copy: {threads} {verb} {barrier}{iteration} while a copy that completes on it is in \
             flight"
        )
    }

    /// Describes the threads that will not arrive any more.
    pub(super) fn gone(&self) -> Option<String> {
        let gone = |step: &ThreadStep| {
            let (threads, does) = (step.threads.name(), step.does);
            let verb = |one: &'static str, all| if step.threads.threads.len() == 1 { one } else { all };
            if does == ThreadAct::Return {
                Some(format!("{threads} {} returned", verb("has", "have")))
            } else if does == ThreadAct::EndElsewhere {
                Some(format!("{threads} {} the end of the kernel without it", verb("reaches", "reach")))
            } else {
                (does == ThreadAct::BlockReturns).then(|| "another block has returned".to_owned())
            }
        };
        let all: Vec<String> = self.others.iter().filter_map(gone).collect();
        (!all.is_empty()).then(|| all.join(", and "))
    }

    /// Returns whether threads are missing because they have returned.
    pub(super) fn has_returned(&self) -> bool {
        self.others.iter().any(|other| matches!(other.does, ThreadAct::Return | ThreadAct::BlockReturns))
    }

    /// Returns the other step, if it is at the same statement.
    fn same_statement(&self) -> Option<&ThreadStep> {
        self.others.iter().find(|other| other.stmt == self.step.stmt)
    }

    /// Returns whether different threads perform the same statement once each, so that nothing can
    /// come between the two steps.
    pub(super) fn is_done_by_several(&self) -> bool {
        self.same_statement().is_some_and(|other| {
            !other.threads.is_same_set(&self.step.threads) && other.iteration == self.step.iteration
        })
    }

    /// Explains why two steps have the same location in the source.
    pub(super) fn at_one_statement(&self) -> Option<String> {
        let other = self.same_statement()?;
        let mut both = [&other.threads, &self.step.threads];
        both.sort_by_key(|threads| (threads.block, threads.threads.first()));
        let [one, another] = both.map(ThreadSet::warp_or_name);
        if !other.threads.is_same_set(&self.step.threads) {
            return Some(format!("{one} and {another} both execute this statement"));
        }
        // The message already has the iteration of the innermost loop.
        let is_outer = other.iteration == self.step.iteration;
        is_outer.then(|| format!("{one} executes this statement again in another iteration of an outer loop"))
    }
}
