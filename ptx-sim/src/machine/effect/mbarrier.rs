//! Instructions on mbarriers: the checks on their use, and the order that they establish.

use tma_model::help::Help;
use tma_model::limits::BARRIER_ARRIVALS;
use tma_model::sync::{Issue, MbarrierCount, MbarrierFault, Memory, View, Wait};

use crate::machine::Machine;
use crate::machine::barrier::{BYTES, CompletedWait, Mbarrier, MbarrierRefusal};
use crate::machine::diagnostics::LaterAccess;
use crate::machine::index::ThreadId;
use crate::machine::memory::{AccessLayout, SharedLocation, ThreadAccess};
use crate::machine::sizes::Sizes;
use crate::machine::types::{Action, Actor, Arrive, PhaseWait, Pointer, Space, TryWait};
use crate::report::{Finding, FindingKind, Stop};

/// Size and alignment of an mbarrier.
pub(super) const MBARRIER: AccessLayout = AccessLayout::natural(BYTES);

/// The invariant that an mbarrier still exists when the instruction that found it uses it.
const UNKNOWN_BARRIER: &str = "an mbarrier disappeared during an instruction";

impl Machine {
    /// `mbarrier.init`.
    ///
    /// # Errors
    ///
    /// If the address is out of bounds or misaligned, or the count is not 1 to 2^20 - 1.
    pub fn mbarrier_init(&mut self, actor: Actor, pointer: Pointer, count: u32) -> Result<(), Stop> {
        let action = actor.does("initialises");
        let location = self.locate_shared(action, pointer, MBARRIER)?;
        let Ok(counts) = MbarrierCount::new(count) else {
            let message = format!(
                "an mbarrier is initialised with a count of {count}; counts are 1 to \
                    {BARRIER_ARRIVALS}"
            );
            let help = "use the number of arrivals that complete a phase";
            return self.refuse_with_help(action, FindingKind::BarrierMisuse, message, help);
        };
        let SharedLocation { rank, at } = location;
        let component = self.order.new_component();
        let (view, line) = (self.order.view(actor.thread), actor.site.ptx_line);
        let mbarrier = Mbarrier::new(component, counts, actor, view.epoch());
        let old = self.barriers.mbarriers[rank].put(at, mbarrier);
        if self.order.is_checked() {
            match old {
                Some(old) => self.report_reinitialisation(action, location, old.init),
                None => {
                    let shadow = &mut self.memory.shared[rank].shadow;
                    let access = ThreadAccess { view, line, sizes: Sizes::WEAK };
                    if let Some(conflict) = shadow.write(at, BYTES, access, &|_| false) {
                        self.conflict(action, LaterAccess::Write, rank, conflict);
                    }
                }
            }
            self.memory.shared[rank].shadow.set_opaque(at, BYTES, line);
        }
        self.record_phase(location);
        Ok(())
    }

    /// `mbarrier.inval`.
    ///
    /// # Errors
    ///
    /// If there is no mbarrier.
    pub fn mbarrier_inval(&mut self, actor: Actor, pointer: Pointer) -> Result<(), Stop> {
        let location = self.locate_mbarrier(actor.does("invalidates"), pointer)?;
        let SharedLocation { rank, at } = location;
        if let Some(mbarrier) = self.barriers.mbarriers[rank].take(at)
            && let Some(finding) = self.unsettled(location, &mbarrier)
        {
            self.report(finding);
        }
        self.record_phase(location);
        self.memory.shared[rank].shadow.clear(at, BYTES);
        Ok(())
    }

    /// `mbarrier.arrive` and `mbarrier.arrive_drop`, with or without `.expect_tx`. Returns the
    /// state before the arrival.
    ///
    /// # Errors
    ///
    /// If there is no mbarrier, or more arrivals or bytes than it can count.
    pub fn mbarrier_arrive(&mut self, actor: Actor, pointer: Pointer, arrive: Arrive) -> Result<u64, Stop> {
        let (action, thread) = (actor.does("arrives"), actor.thread);
        let location = self.locate_mbarrier(action, pointer)?;
        self.note_remote_access(&actor, location.rank);
        let own_block = location.rank == thread.block;
        let relaxed = (!arrive.semantics.order.releases()).then(|| self.issue_of(thread));
        let Some(mbarrier) = self.barriers.mbarrier_mut(location) else {
            return Err(self.diagnostics.bug(action, UNKNOWN_BARRIER));
        };
        mbarrier.remote |= pointer.space == Space::SharedCluster || !own_block;
        let (state, unobserved) = (mbarrier.state(), mbarrier.is_unobserved());
        match relaxed {
            None => self.order.release(thread, mbarrier.order.arrivals(own_block, arrive.semantics.scope)),
            Some(issue) => mbarrier.order.note_issue(&issue),
        }
        let arrived = mbarrier.change(|count| count.arrive(arrive.arrival));
        self.counted_at(action, location);
        if unobserved {
            self.unobserved(action, location, state);
        }
        self.accepted(action, location, arrived).map(|()| state)
    }

    /// `mbarrier.expect_tx`.
    ///
    /// # Errors
    ///
    /// If there is no mbarrier, or more bytes than it can count.
    pub fn mbarrier_expect_tx(&mut self, actor: Actor, pointer: Pointer, bytes: u32) -> Result<(), Stop> {
        let action = actor.does("expects bytes");
        self.mbarrier_count(action, pointer, None, |count| count.expect_tx(bytes))
    }

    /// `mbarrier.complete_tx`.
    ///
    /// # Errors
    ///
    /// If there is no mbarrier, or more bytes than it can count.
    pub fn mbarrier_complete_tx(&mut self, actor: Actor, pointer: Pointer, bytes: u32) -> Result<(), Stop> {
        let action = actor.does("completes bytes");
        let issue = self.issue_of(actor.thread);
        self.mbarrier_count(action, pointer, Some(issue), |count| count.complete_tx(bytes))
    }

    /// Changes the counts of an mbarrier.
    fn mbarrier_count(
        &mut self,
        action: Action,
        pointer: Pointer,
        issue: Option<Issue>,
        change: impl FnOnce(&mut MbarrierCount) -> Result<(), MbarrierFault>,
    ) -> Result<(), Stop> {
        let location = self.locate_mbarrier(action, pointer)?;
        self.note_remote_access(&Actor { thread: action.thread, site: action.site }, location.rank);
        let Some(mbarrier) = self.barriers.mbarrier_mut(location) else {
            return Err(self.diagnostics.bug(action, UNKNOWN_BARRIER));
        };
        if let Some(issue) = issue {
            mbarrier.order.note_issue(&issue);
        }
        let changed = mbarrier.change(change);
        self.counted_at(action, location);
        self.accepted(action, location, changed)
    }

    /// `mbarrier.test_wait`.
    ///
    /// # Errors
    ///
    /// If there is no mbarrier.
    pub fn mbarrier_test_wait(
        &mut self,
        actor: Actor,
        pointer: Pointer,
        wait: PhaseWait,
    ) -> Result<bool, Stop> {
        let (action, thread, site) = (actor.does("waits"), actor.thread, actor.site);
        let location = self.locate_mbarrier(action, pointer)?;
        self.check_not_overrun(actor, location, wait.phase);
        let Some(mbarrier) = self.barriers.mbarrier_mut(location) else {
            return Err(self.diagnostics.bug(action, UNKNOWN_BARRIER));
        };
        match mbarrier.is_complete(wait.phase) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(refusal) => return Err(self.refused(action, location, refusal)),
        }
        mbarrier.observe();
        let (phase, step) = (mbarrier.count().phase(), self.order.view(thread).epoch());
        let completed = mbarrier.order.completed(wait.semantics.scope);
        if wait.semantics.order.acquires() {
            self.order.acquire(thread, completed);
        } else {
            self.order.view_mut(thread).learn_past(completed.past());
        }
        if self.order.is_checked() {
            mbarrier.order.note_wait(Wait { step, site: site.ptx_line });
        }
        self.barriers
            .note_completed_wait(thread, CompletedWait { location, phase, step: step.count(), site });
        Ok(true)
    }

    /// `mbarrier.try_wait`.
    ///
    /// # Errors
    ///
    /// If there is no mbarrier.
    pub fn mbarrier_try_wait(
        &mut self,
        actor: Actor,
        pointer: Pointer,
        wait: PhaseWait,
    ) -> Result<TryWait, Stop> {
        let complete = self.mbarrier_test_wait(actor, pointer, wait)?;
        let times_out = self.barriers.times_out(actor.thread, complete, &mut self.random);
        Ok(match (complete, times_out) {
            (true, _) => TryWait::Complete,
            (false, true) => TryWait::TimedOut,
            (false, false) => TryWait::Blocked,
        })
    }

    /// `mbarrier.test_wait` as an instruction of its own, during which time passes for the
    /// asynchronous engines.
    ///
    /// # Errors
    ///
    /// If there is no mbarrier.
    pub fn mbarrier_poll(&mut self, actor: Actor, pointer: Pointer, wait: PhaseWait) -> Result<bool, Stop> {
        let complete = self.mbarrier_test_wait(actor, pointer, wait)?;
        self.engines.pass(self.barriers.poll_time(actor.thread, complete));
        Ok(complete)
    }

    /// `mbarrier.pending_count` of a state.
    pub fn mbarrier_pending_count(state: u64) -> u32 {
        Mbarrier::pending_of(state)
    }

    /// Returns what has happened so far, for an operation that `thread` issues now.
    pub(super) fn issue_of(&self, thread: ThreadId) -> Issue {
        let waited =
            self.barriers.last_completed_wait(thread).map_or(0, |completed_wait| completed_wait.step);
        Issue::of(self.order.view(thread), waited)
    }

    /// Finds the mbarrier at an address, and checks that its initialisation is visible to the
    /// thread.
    pub(super) fn locate_mbarrier(
        &mut self,
        action: Action,
        pointer: Pointer,
    ) -> Result<SharedLocation, Stop> {
        let location = self.locate_shared(action, pointer, MBARRIER)?;
        let Some(mbarrier) = self.barriers.mbarrier(location) else {
            return Err(self.no_mbarrier(action, location));
        };
        if self.order.is_checked() && !self.order.view(action.thread).follows(mbarrier.init_step) {
            self.not_visible(action, location, mbarrier.init, Help::SynchroniseInit);
        }
        Ok(location)
    }

    /// Checks that copies that `action` starts may complete on the mbarrier at a place.
    pub(super) fn mbarrier_for_copy(&mut self, action: Action, location: SharedLocation) -> Result<(), Stop> {
        let Some(mbarrier) = self.barriers.mbarrier(location) else {
            return Err(self.no_mbarrier(action, location));
        };
        let view = self.order.view(action.thread);
        if self.order.is_checked() && !is_ready(mbarrier, view) {
            let unordered = !view.follows(mbarrier.init_step);
            self.not_visible(action, location, mbarrier.init, Help::FenceInit { unordered });
        }
        Ok(())
    }

    /// Turns a fault of an mbarrier into a finding.
    ///
    /// # Errors
    ///
    /// If the mbarrier refused the operation.
    pub(super) fn accepted(
        &mut self,
        action: Action,
        location: SharedLocation,
        counted: Result<(), MbarrierFault>,
    ) -> Result<(), Stop> {
        counted.map_err(|fault| self.refused(action, location, fault.into()))
    }

    #[cold]
    fn report_reinitialisation(&mut self, action: Action, location: SharedLocation, init: Actor) {
        let log = &mut self.diagnostics;
        let message = format!(
            "the mbarrier at {} is initialised again without `mbarrier.inval`",
            log.offset(location.at)
        );
        let finding = Finding::new(FindingKind::BarrierMisuse, message)
            .with(log.party(action))
            .with(log.party(init.does("initialised it")))
            .help(Help::InitialiseOnce);
        log.report(finding);
    }

    #[cold]
    fn not_visible(&mut self, action: Action, location: SharedLocation, init: Actor, help: Help) {
        let log = &mut self.diagnostics;
        let message = format!(
            "the mbarrier at {} is used, but its initialisation may not be visible there",
            log.offset(location.at)
        );
        let finding = Finding::new(FindingKind::BarrierNotVisible, message)
            .with(log.party(action))
            .with(log.party(init.does("initialised it")))
            .help(help);
        log.report(finding);
    }

    /// Reports an arrival in a phase before any wait has observed the previous phase to be
    /// complete. `state` is the state before the arrival.
    #[cold]
    fn unobserved(&mut self, action: Action, location: SharedLocation, state: u64) {
        let phase = (state >> 32) as u32;
        let before = phase.saturating_sub(1);
        let log = &mut self.diagnostics;
        let (at, party) = (log.location_text(location), log.party(action));
        let count = self.barriers.mbarrier(location).map_or(0, |mbarrier| mbarrier.count().expected());
        let message = format!(
            "a thread arrives at the mbarrier at {at} in phase {phase} before any thread has waited for \
             phase {before}"
        );
        let finding =
            Finding::new(FindingKind::BarrierMisuse, message).with(party).help(Help::CountArrivals(count));
        log.report(finding);
    }

    #[cold]
    fn no_mbarrier(&mut self, action: Action, location: SharedLocation) -> Stop {
        let log = &mut self.diagnostics;
        let message = format!(
            "there is no mbarrier at {}: it is not initialised yet, or \
                invalidated",
            log.location_text(location)
        );
        let help = Help::Initialise { remotely: location.rank != action.thread.block };
        let party = log.party(action);
        log.stop(Finding::new(FindingKind::BarrierMisuse, message).with(party).help(help))
    }

    /// Records the reason why an mbarrier refuses an operation.
    #[cold]
    fn refused(&mut self, action: Action, location: SharedLocation, refusal: MbarrierRefusal) -> Stop {
        let state = self.barriers.mbarrier(location).map(Mbarrier::describe).unwrap_or_default();
        let problem = match refusal {
            MbarrierRefusal::Fault(fault) => describe(fault),
            MbarrierRefusal::OtherBarrier => "a wait with the state of another mbarrier",
        };
        let kind = match refusal {
            MbarrierRefusal::Fault(MbarrierFault::TransactionRange) => FindingKind::TransactionBytes,
            MbarrierRefusal::Fault(_) | MbarrierRefusal::OtherBarrier => FindingKind::BarrierMisuse,
        };
        let log = &mut self.diagnostics;
        let message = format!("the mbarrier at {} gets {problem} ({state})", log.offset(location.at));
        let party = log.party(action);
        log.stop(Finding::new(kind, message).with(party))
    }
}

/// Describes the operation that an mbarrier refuses.
fn describe(fault: MbarrierFault) -> &'static str {
    match fault {
        MbarrierFault::InitialCount => "a count that is not 1 to 2^20 - 1",
        MbarrierFault::TooManyArrivals => "more arrivals than its phase expects",
        MbarrierFault::NoArrival => "an arrival with a count of 0; counts are 1 to 2^20 - 1",
        MbarrierFault::OtherPhase => {
            "a wait with the state of a phase that is neither the current one nor the last"
        }
        MbarrierFault::TransactionRange => "a transaction count outside of -(2^20 - 1) to 2^20 - 1",
        MbarrierFault::PendingRange => "a pending count above 2^20 - 1",
        MbarrierFault::Completes => "a `.noComplete` arrival that completes its phase",
        MbarrierFault::NoneExpected => {
            "an `arrive_drop` after which no arrival is expected; call `mbarrier.inval` on an mbarrier that is no longer used"
        }
    }
}

/// Returns whether the initialisation is visible to asynchronous operations that `view` starts.
fn is_ready(mbarrier: &Mbarrier, view: &View) -> bool {
    view.follows(mbarrier.init_step)
        && (view.is_visible_to_async(mbarrier.init_step, Memory::Shared)
            || mbarrier.fenced.is_some_and(|fence| view.follows(fence)))
}
