//! Waits that may be overrun: a wait for a phase of an mbarrier has to come before the phase after that completes.
//!
//! An mbarrier tells its current phase from the one before, and no more (PTX ISA, "mbarrier.test_wait"). Whoever waits so late
//! that one more phase has completed waits for a phase that has the same parity and is two later, or for ever. Whether it is so
//! late is a matter of time, unless something orders the wait before the completion: the thread arrives after it, or meets
//! one that does. So each completion has to know of the waits that have seen the phase before it complete, and a wait finds no
//! phase complete that its thread does not know of, but the one that it waits for.
//!
//! A completion knows what its arrivals tell, and of copies that count there what had happened when they were issued. The
//! latter is knowledge of the *past*, which orders phases and no access to memory; relaxed arrivals tell as much, and relaxed
//! waits learn it.

use super::Machine;
use super::access::Access;
use super::clock::{Clock, Component, Epoch, KEPT, View};
use super::mbarrier::Mbarrier;
use super::types::{Phase, Site, ThreadId};
use crate::report::{Finding, FindingKind};

const HELP: &str = "a wait tells two phases apart, and no more: one that comes when the next phase is complete too waits for the phase \
                    after that. Let the threads that wait arrive afterwards, or meet, [[`sync_threads()`||`bar.sync`]], before anything \
                    completes the next phase";

/// A wait for a phase that was complete.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    /// The thread's step.
    pub(super) step: Epoch,
    /// Its PTX line.
    pub(super) line: u32,
}

/// What made a phase complete.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    /// The complete phases, with this one.
    phase: u32,
    who: ThreadId,
    site: Site,
    does: &'static str,
}

/// What had happened when a copy was issued, or at a relaxed arrival: the waits that the thread knows of, and its own up to the
/// step of the last.
#[derive(Clone, Debug, Default)]
pub(super) struct Issue {
    knows: Clock,
    waited: (Component, u32),
}

impl Issue {
    fn of(view: &View, waited: u32) -> Self {
        Self { knows: view.knows.past().clone(), waited: (view.me, waited) }
    }
}

/// Several of them, of the copies that have counted at an mbarrier.
#[derive(Clone, Debug, Default)]
pub(super) struct Issues {
    told: Vec<Clock>,
    waited: Vec<(Component, u32)>,
}

impl Issues {
    pub(super) fn add(&mut self, issue: &Issue) {
        if !self.told.iter().any(|told| told.same(&issue.knows)) {
            self.told.push(issue.knows.clone());
            if self.told.len() >= KEPT {
                self.join();
            }
        }
        if self.waited.last() != Some(&issue.waited) {
            self.waited.push(issue.waited);
        }
    }

    /// All of it. It stays gathered, in short.
    pub(super) fn join(&mut self) -> Clock {
        let mut all = self.told.pop().unwrap_or_default();
        for told in self.told.drain(..) {
            all = all.join(&told);
        }
        for (component, step) in self.waited.drain(..) {
            all.learn(component, step);
        }
        self.told.push(all.clone());
        all
    }
}

impl Machine {
    /// What a copy that `who` issues now tells the mbarrier that it counts at.
    pub(super) fn issue_of(&self, who: ThreadId) -> Issue {
        let thread = &self.threads[self.index(who)];
        Issue::of(&thread.view, thread.passed.map_or(0, |passed| passed.step))
    }

    /// A thread asks for a phase: reports it if a later one is complete already.
    pub(super) fn check_not_overrun(&mut self, access: Access, rank: usize, at: u32, phase: Phase) {
        if !self.config.checks.order {
            return;
        }
        let view = &self.threads[self.index(access.who)].view;
        let Some(mbarrier) = self.blocks[rank].mbarriers.look(at) else { return };
        let awaited = Mbarrier::awaited(phase, view.knows.past().get(mbarrier.component));
        if mbarrier.phase > awaited {
            let turned = mbarrier.turned.filter(|turned| turned.phase == awaited.saturating_add(1));
            self.overrun(access.who, access.site, (rank, at), awaited, turned);
        }
    }

    /// Something was done to the mbarrier at `at` of block `rank`, which may have completed a phase.
    pub(super) fn counted_at(&mut self, access: Access, rank: usize, at: u32) {
        self.record_phase(rank, at);
        let Some(mbarrier) = self.blocks[rank].mbarriers.at(at) else { return };
        let Access { who, site, does } = access;
        let phase = mbarrier.phase;
        if mbarrier.turned.map_or(0, |turned| turned.phase) != phase {
            mbarrier.turned = Some(Turn { phase, who, site, does });
        }
        let turned = mbarrier.turned;
        if let Some(wait) = mbarrier.take_overrun()
            && let Some(waited) = self.thread_of(wait.step)
        {
            self.overrun(waited, self.site_of(wait.line), (rank, at), phase.saturating_sub(1), turned);
        }
    }

    /// Reports a wait of `who`, for `awaited` phases to be complete, which may come after one more.
    #[cold]
    fn overrun(
        &mut self,
        who: ThreadId,
        site: Site,
        (rank, at): (usize, u32),
        awaited: u32,
        turned: Option<Turn>,
    ) {
        let place = format!("the mbarrier at {}{}", self.spot(at), self.of_block(rank));
        // Phases count from 0: with one complete, phase 0 is, and phase 1 is the next.
        let what = match awaited.checked_sub(1) {
            Some(phase) => format!("a wait for phase {phase} of {place}"),
            None => format!("a wait that passes before phase 0 of {place} is complete"),
        };
        let message = format!("{what} may be overrun: nothing orders it before phase {awaited} completes");
        let mut finding = Finding::new(FindingKind::Overrun, message).with(self.party(who, site, "waits"));
        if let Some(Turn { who, site, does, .. }) = turned {
            finding = finding.with(self.party(who, site, does));
        }
        self.report(finding.help(HELP));
    }
}
