//! Instructions on mbarriers: the checks on their use, and the order that they establish.

use tma_model::limits::BARRIER_ARRIVALS;
use tma_model::sync::{Issue, MbarrierCount, MbarrierFault, Memory, View, Wait};

use crate::machine::Machine;
use crate::machine::barrier::{BYTES, Mbarrier, MbarrierRefusal, Passed};
use crate::machine::diagnostics::Act;
use crate::machine::index::ThreadId;
use crate::machine::memory::{Extent, SharedPlace, ThreadAccess};
use crate::machine::sizes::Sizes;
use crate::machine::types::{Action, Actor, Arrive, PhaseWait, Pointer, Space, TryWait};
use crate::report::{Finding, FindingKind, Stop};

/// Size and alignment of an mbarrier.
pub(super) const MBARRIER: Extent = Extent::natural(BYTES);

/// The invariant that an mbarrier still exists when the instruction that found it uses it.
const GONE: &str = "an mbarrier that was found is not there any more";

impl Machine {
    /// `mbarrier.init`.
    ///
    /// # Errors
    ///
    /// If the address is out of bounds or misaligned, or the count is not 1 to 2^20 - 1.
    pub fn mbarrier_init(&mut self, actor: Actor, pointer: Pointer, count: u32) -> Result<(), Stop> {
        let action = actor.does("initialises");
        let place = self.shared_place(action, pointer, MBARRIER)?;
        let Ok(counts) = MbarrierCount::new(count) else {
            let message =
                format!("an mbarrier is initialised with a count of {count}; it is 1 to {BARRIER_ARRIVALS}");
            let help = "the count is how many arrivals complete a phase";
            return self.refuse_with_help(action, FindingKind::BarrierMisuse, message, help);
        };
        let SharedPlace { rank, at } = place;
        let component = self.order.new_component();
        let (view, line) = (self.order.view(actor.who), actor.site.ptx_line);
        let mbarrier = Mbarrier::new(component, counts, actor, view.epoch());
        let old = self.barriers.mbarriers[rank].put(at, mbarrier);
        if self.order.is_checked() {
            match old {
                Some(old) => self.initialised_again(action, place, old.init),
                None => {
                    let shadow = &mut self.memory.shared[rank].shadow;
                    let access = ThreadAccess { view, line, sizes: Sizes::WEAK };
                    if let Some(conflict) = shadow.write(at, BYTES, access, &|_| false) {
                        self.conflict(action, Act::Write, rank, conflict);
                    }
                }
            }
            self.memory.shared[rank].shadow.set_opaque(at, BYTES, line);
        }
        self.record_phase(place);
        Ok(())
    }

    /// `mbarrier.inval`.
    ///
    /// # Errors
    ///
    /// If there is no mbarrier.
    pub fn mbarrier_inval(&mut self, actor: Actor, pointer: Pointer) -> Result<(), Stop> {
        let place = self.mbarrier_place(actor.does("invalidates"), pointer)?;
        let SharedPlace { rank, at } = place;
        if let Some(mbarrier) = self.barriers.mbarriers[rank].take(at)
            && let Some(finding) = self.unsettled(place, &mbarrier)
        {
            self.report(finding);
        }
        self.record_phase(place);
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
        let (action, who) = (actor.does("arrives"), actor.who);
        let place = self.mbarrier_place(action, pointer)?;
        self.visit(&actor, place.rank);
        let own_block = place.rank == who.block;
        let relaxed = (!arrive.semantics.order.releases()).then(|| self.issue_of(who));
        let Some(mbarrier) = self.barriers.mbarrier_mut(place) else {
            return Err(self.diagnostics.bug(action, GONE));
        };
        mbarrier.remote |= pointer.space == Space::SharedCluster || !own_block;
        let (state, unobserved) = (mbarrier.state(), mbarrier.is_unobserved());
        match relaxed {
            None => self.order.release(who, mbarrier.order.arrivals(own_block, arrive.semantics.scope)),
            Some(issue) => mbarrier.order.note_issue(&issue),
        }
        let arrived = mbarrier.change(|count| count.arrive(arrive.arrival));
        self.counted_at(action, place);
        if unobserved {
            self.unobserved(action, place, state);
        }
        self.accepted(action, place, arrived).map(|()| state)
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
        let issue = self.issue_of(actor.who);
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
        let place = self.mbarrier_place(action, pointer)?;
        self.visit(&Actor { who: action.who, site: action.site }, place.rank);
        let Some(mbarrier) = self.barriers.mbarrier_mut(place) else {
            return Err(self.diagnostics.bug(action, GONE));
        };
        if let Some(issue) = issue {
            mbarrier.order.note_issue(&issue);
        }
        let changed = mbarrier.change(change);
        self.counted_at(action, place);
        self.accepted(action, place, changed)
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
        let (action, who, site) = (actor.does("waits"), actor.who, actor.site);
        let place = self.mbarrier_place(action, pointer)?;
        self.check_not_overrun(actor, place, wait.phase);
        let Some(mbarrier) = self.barriers.mbarrier_mut(place) else {
            return Err(self.diagnostics.bug(action, GONE));
        };
        match mbarrier.is_complete(wait.phase) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(refusal) => return Err(self.refused(action, place, refusal)),
        }
        mbarrier.observe();
        let (phase, step) = (mbarrier.count().phase(), self.order.view(who).epoch());
        let completed = mbarrier.order.completed(wait.semantics.scope);
        if wait.semantics.order.acquires() {
            self.order.acquire(who, completed);
        } else {
            self.order.view_mut(who).learn_past(completed.past());
        }
        if self.order.is_checked() {
            mbarrier.order.note_wait(Wait { step, site: site.ptx_line });
        }
        self.barriers.pass(who, Passed { place, phase, step: step.count(), site });
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
        let times_out = self.barriers.times_out(actor.who, complete, &mut self.random);
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
        self.engines.pass(self.barriers.poll_time(actor.who, complete));
        Ok(complete)
    }

    /// `mbarrier.pending_count` of a state.
    pub fn mbarrier_pending_count(state: u64) -> u32 {
        Mbarrier::pending_of(state)
    }

    /// Returns what has happened so far, for an operation that `who` issues now.
    pub(super) fn issue_of(&self, who: ThreadId) -> Issue {
        let waited = self.barriers.passed(who).map_or(0, |passed| passed.step);
        Issue::of(self.order.view(who), waited)
    }

    /// Finds the mbarrier at an address, and checks that its initialisation is visible to the
    /// thread.
    pub(super) fn mbarrier_place(&mut self, action: Action, pointer: Pointer) -> Result<SharedPlace, Stop> {
        let place = self.shared_place(action, pointer, MBARRIER)?;
        let Some(mbarrier) = self.barriers.mbarrier(place) else {
            return Err(self.no_mbarrier(action, place));
        };
        if self.order.is_checked() && !self.order.view(action.who).follows(mbarrier.init_step) {
            let help = "a barrier between the initialisation and the use: [[`sync_threads()`||`bar.sync`]], or \
                        [[`sync_cluster()`||`barrier.cluster.arrive` and `.wait`]] for another block's";
            self.not_visible(action, place, mbarrier.init, help);
        }
        Ok(place)
    }

    /// Checks that copies that `action` starts may complete on the mbarrier at a place.
    pub(super) fn mbarrier_for_copy(&mut self, action: Action, place: SharedPlace) -> Result<(), Stop> {
        let Some(mbarrier) = self.barriers.mbarrier(place) else {
            return Err(self.no_mbarrier(action, place));
        };
        let view = self.order.view(action.who);
        if self.order.is_checked() && !is_ready(mbarrier, view) {
            let help = if view.follows(mbarrier.init_step) {
                "[[`fence_barrier_init()`||`fence.mbarrier_init.release.cluster`]] after the initialisation"
            } else {
                "[[`fence_barrier_init()`||`fence.mbarrier_init.release.cluster`]] after the initialisation, and a barrier \
                 between that and the copy"
            };
            self.not_visible(action, place, mbarrier.init, help);
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
        place: SharedPlace,
        counted: Result<(), MbarrierFault>,
    ) -> Result<(), Stop> {
        counted.map_err(|fault| self.refused(action, place, fault.into()))
    }

    #[cold]
    fn initialised_again(&mut self, action: Action, place: SharedPlace, init: Actor) {
        let log = &mut self.diagnostics;
        let message =
            format!("the mbarrier at {} is initialised again without `mbarrier.inval`", log.offset(place.at));
        let finding = Finding::new(FindingKind::BarrierMisuse, message)
            .with(log.party(action))
            .with(log.party(init.does("initialised it")))
            .help(
                "one thread initialises an mbarrier, once; before anything else is made of its memory, \
                 [[`invalidate()`||`mbarrier.inval`]]",
            );
        log.report(finding);
    }

    #[cold]
    fn not_visible(&mut self, action: Action, place: SharedPlace, init: Actor, help: &str) {
        let log = &mut self.diagnostics;
        let message = format!(
            "the initialisation of the mbarrier at {} need not be visible where it is used",
            log.offset(place.at)
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
    fn unobserved(&mut self, action: Action, place: SharedPlace, state: u64) {
        let phase = (state >> 32) as u32;
        let before = phase.saturating_sub(1);
        let log = &mut self.diagnostics;
        let (at, party) = (log.place(place), log.party(action));
        let count = self.barriers.mbarrier(place).map_or(0, |mbarrier| mbarrier.count().expected());
        let message = format!(
            "the mbarrier at {at} gets an arrival in phase {phase}, but no wait has seen phase {before} complete"
        );
        let finding = Finding::new(FindingKind::BarrierMisuse, message).with(party).help(format!(
            "wait for each phase before anybody arrives in the next one; or is its count of {count}, given to \
             [[`init({count})`||`mbarrier.init`]], less than what arrives in a phase?"
        ));
        log.report(finding);
    }

    #[cold]
    fn no_mbarrier(&mut self, action: Action, place: SharedPlace) -> Stop {
        let log = &mut self.diagnostics;
        let message =
            format!("there is no mbarrier at {}: it is not initialised, or not any more", log.place(place));
        let help = if place.rank == action.who.block {
            "let one thread initialise it, [[`init(..)`||`mbarrier.init`]], and all meet, at a \
             [[`sync_threads()`||`bar.sync`]] that every thread comes to, before the first uses it"
        } else {
            "let a thread of its block initialise it, [[`init(..)`||`mbarrier.init`]], and the blocks meet, \
             [[`sync_cluster()`||`barrier.cluster.arrive` and `.wait`]], before others use it"
        };
        let party = log.party(action);
        log.stop(Finding::new(FindingKind::BarrierMisuse, message).with(party).help(help))
    }

    /// Records the reason why an mbarrier refuses an operation.
    #[cold]
    fn refused(&mut self, action: Action, place: SharedPlace, refusal: MbarrierRefusal) -> Stop {
        let state = self.barriers.mbarrier(place).map(Mbarrier::describe).unwrap_or_default();
        let what = match refusal {
            MbarrierRefusal::Fault(fault) => describe(fault),
            MbarrierRefusal::OtherBarrier => "a wait with the state of another mbarrier",
        };
        let kind = match refusal {
            MbarrierRefusal::Fault(MbarrierFault::TransactionRange) => FindingKind::TransactionBytes,
            MbarrierRefusal::Fault(_) | MbarrierRefusal::OtherBarrier => FindingKind::BarrierMisuse,
        };
        let log = &mut self.diagnostics;
        let message = format!("the mbarrier at {} gets {what} ({state})", log.offset(place.at));
        let party = log.party(action);
        log.stop(Finding::new(kind, message).with(party))
    }
}

/// Describes the operation that an mbarrier refuses.
fn describe(fault: MbarrierFault) -> &'static str {
    match fault {
        MbarrierFault::InitialCount => "a count that is not 1 to 2^20 - 1",
        MbarrierFault::TooManyArrivals => "more arrivals than its phase expects",
        MbarrierFault::NoArrival => "an arrival with a count of 0; it is 1 to 2^20 - 1",
        MbarrierFault::OtherPhase => {
            "a wait with the state of a phase that is neither its current one nor the one before"
        }
        MbarrierFault::TransactionRange => "a transaction count out of its range of -(2^20 - 1) to 2^20 - 1",
        MbarrierFault::PendingRange => "a pending count above 2^20 - 1",
        MbarrierFault::Completes => "a `.noComplete` arrival that completes its phase",
        MbarrierFault::NoneExpected => {
            "an `arrive_drop` that leaves no arrival to expect: use `mbarrier.inval` where it is not used any more"
        }
    }
}

/// Returns whether the initialisation is visible to asynchronous operations that `view` starts.
fn is_ready(mbarrier: &Mbarrier, view: &View) -> bool {
    view.follows(mbarrier.init_step)
        && (view.sees_async(mbarrier.init_step, Memory::Shared)
            || mbarrier.fenced.is_some_and(|fence| view.follows(fence)))
}
