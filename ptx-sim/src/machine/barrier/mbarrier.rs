//! The mbarriers of a block: their counts, the order they establish, and their description in
//! findings.

use tma_model::limits::BARRIER_BYTES;
use tma_model::sync::{Component, Epoch, Issue, MbarrierCount, MbarrierFault, PhaseOrder};

use crate::machine::types::{Action, Actor, Phase};

/// Size and alignment of an mbarrier in bytes.
pub(in crate::machine) const BYTES: u32 = BARRIER_BYTES as u32;

/// An mbarrier.
#[derive(Debug)]
pub(in crate::machine) struct Mbarrier {
    /// The clock component, which counts complete phases.
    pub(in crate::machine) component: Component,
    count: MbarrierCount,
    /// The order that its phases establish. Waits are identified by their PTX lines.
    pub(in crate::machine) order: PhaseOrder<u32>,
    /// The initialisation, and its step.
    pub(in crate::machine) init: Actor,
    pub(in crate::machine) init_step: Epoch,
    /// The step of `fence.mbarrier_init` after the initialisation.
    pub(in crate::machine) fenced: Option<Epoch>,
    /// The last phase, counted from 1, that a wait has observed to be complete.
    observed: u32,
    /// Whether threads of other blocks arrive at it.
    pub(in crate::machine) remote: bool,
    /// The last load that counted here.
    pub(in crate::machine) last_load: Option<Load>,
    /// Pieces of loads in flight that will count here.
    in_flight: u32,
    /// The operation that completed the last phase.
    pub(in crate::machine) completer: Option<Completer>,
}

/// A load that counts at an mbarrier.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) struct Load {
    /// The phase that it counts for, from 1.
    pub(in crate::machine) phase: u32,
    pub(in crate::machine) issuer: Actor,
}

/// The operation that completed a phase.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) struct Completer {
    /// The number of complete phases, including this one.
    pub(in crate::machine) phases: u32,
    pub(in crate::machine) action: Action,
}

/// The reason why an operation on an mbarrier is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::machine) enum MbarrierRefusal {
    /// The counts do not allow it.
    Fault(MbarrierFault),
    /// The wait has the state of another mbarrier.
    OtherBarrier,
}

impl From<MbarrierFault> for MbarrierRefusal {
    fn from(fault: MbarrierFault) -> Self {
        Self::Fault(fault)
    }
}

/// The opaque state of an mbarrier. From the least significant bit it holds the pending count, a
/// mark that identifies the mbarrier, and the current phase. The layout is not documented, and
/// kernels cannot depend on it.
#[derive(Clone, Copy, Debug)]
struct State(u64);

impl State {
    /// Width of the pending count.
    const PENDING_BITS: u32 = tma_model::limits::BARRIER_ARRIVALS.count_ones();

    fn new(count: &MbarrierCount, mark: u32) -> Self {
        let low = mark << Self::PENDING_BITS | count.pending();
        Self(u64::from(count.phase()) << 32 | u64::from(low))
    }

    fn pending(self) -> u32 {
        self.0 as u32 & tma_model::limits::BARRIER_ARRIVALS
    }

    fn mark(self) -> u32 {
        self.0 as u32 >> Self::PENDING_BITS
    }
}

impl Mbarrier {
    /// Creates an mbarrier that has just been initialised.
    pub(in crate::machine) fn new(
        component: Component,
        count: MbarrierCount,
        init: Actor,
        init_step: Epoch,
    ) -> Self {
        Self {
            component,
            count,
            order: PhaseOrder::default(),
            init,
            init_step,
            fenced: None,
            observed: 0,
            remote: false,
            last_load: None,
            in_flight: 0,
            completer: None,
        }
    }

    /// Returns its counts.
    pub(in crate::machine) fn count(&self) -> &MbarrierCount {
        &self.count
    }

    /// Returns the pending count in a state.
    pub(in crate::machine) fn pending_of(state: u64) -> u32 {
        State(state).pending()
    }

    /// Returns the opaque state.
    pub(in crate::machine) fn state(&self) -> u64 {
        State::new(&self.count, self.mark()).0
    }

    /// Returns as much of the clock component as fits into a state.
    fn mark(&self) -> u32 {
        self.component.number() & (u32::MAX >> State::PENDING_BITS)
    }

    /// Changes the counts, which may complete a phase.
    pub(in crate::machine) fn change(
        &mut self,
        change: impl FnOnce(&mut MbarrierCount) -> Result<(), MbarrierFault>,
    ) -> Result<(), MbarrierFault> {
        let phase = self.count.phase();
        let changed = change(&mut self.count);
        if self.count.phase() != phase {
            self.order.complete(Epoch::new(self.component, self.count.phase()));
        }
        changed
    }

    /// Returns the step at which the current phase will be complete.
    pub(in crate::machine) fn next_phase(&self) -> Epoch {
        Epoch::new(self.component, self.count.phase().saturating_add(1))
    }

    /// Notes that copies have started, of which this many pieces will count here.
    pub(in crate::machine) fn expect_pieces(&mut self, pieces: u32, issuer: Actor) {
        self.in_flight += pieces;
        self.note_load(issuer);
    }

    /// Notes that a piece of a copy, issued by `issuer`, counts here.
    pub(in crate::machine) fn piece_counts(&mut self, issuer: Actor, issue: &Issue) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.note_load(issuer);
        self.order.note_issue(issue);
    }

    fn note_load(&mut self, issuer: Actor) {
        self.last_load = Some(Load { phase: self.next_phase().count(), issuer });
    }

    /// Returns whether pieces of loads are still to count here.
    pub(in crate::machine) fn has_loads_in_flight(&self) -> bool {
        self.in_flight > 0
    }

    /// Notes that a wait has observed the last phase to be complete.
    pub(in crate::machine) fn observe(&mut self) {
        self.observed = self.count.phase();
    }

    /// Returns whether a load that counts here belongs to a phase that no wait has observed to be
    /// complete.
    pub(in crate::machine) fn has_unobserved_load(&self) -> bool {
        self.last_load.is_some_and(|load| load.phase > self.observed)
    }

    /// Returns whether a phase has completed that no wait has observed. Source: PTX ISA, "Phases of
    /// the mbarrier object": between the arrivals of one phase and those of the next, at least one
    /// wait returns true.
    ///
    /// mbarriers at which other blocks arrive are exempt. A block goes on when its own phase is
    /// complete, and may arrive for the next phase of another block's mbarrier before that block
    /// has waited. An H200 counts such arrivals correctly.
    pub(in crate::machine) fn is_unobserved(&self) -> bool {
        self.count.phase() > self.observed && !self.remote
    }

    /// Returns whether the awaited phase is complete. Source: PTX ISA, "mbarrier.test_wait": a
    /// state must come from the same mbarrier.
    pub(in crate::machine) fn is_complete(&self, phase: Phase) -> Result<bool, MbarrierRefusal> {
        match phase {
            Phase::State(state) if State(state).mark() != self.mark() => Err(MbarrierRefusal::OtherBarrier),
            Phase::State(_) | Phase::Parity(_) => Ok(self.count.is_complete(phase.awaited())?),
        }
    }

    /// Describes the counts in words.
    pub(in crate::machine) fn describe(&self) -> String {
        let count = &self.count;
        let (phase, pending, expected, tx) = (count.phase(), count.pending(), count.expected(), count.tx());
        let (expected_bytes, received_bytes) = (count.expected_bytes(), count.received_bytes());
        let parity = phase & 1;
        format!(
            "phase {phase} (parity {parity}), {pending} of {expected} arrivals pending, {tx} bytes pending: \
             {expected_bytes} expected, {received_bytes} copied"
        )
    }
}

/// The mbarriers of a block, by offset.
#[derive(Debug)]
pub(in crate::machine) struct Mbarriers {
    /// For each 8 bytes, the index of the mbarrier plus one.
    index: Vec<u32>,
    all: Vec<Option<Mbarrier>>,
}

impl Mbarriers {
    pub(super) fn new(shared_bytes: u32) -> Self {
        Self { index: vec![0; shared_bytes.div_ceil(BYTES) as usize], all: Vec::new() }
    }

    fn number(&self, at: u32) -> Option<usize> {
        self.index.get((at / BYTES) as usize)?.checked_sub(1).map(|number| number as usize)
    }

    /// Returns the mbarrier at `at`.
    pub(in crate::machine) fn get(&self, at: u32) -> Option<&Mbarrier> {
        self.all.get(self.number(at)?)?.as_ref()
    }

    /// Returns the mbarrier at `at`, mutably.
    pub(in crate::machine) fn get_mut(&mut self, at: u32) -> Option<&mut Mbarrier> {
        let number = self.number(at)?;
        self.all.get_mut(number)?.as_mut()
    }

    /// Puts an mbarrier at `at`, and returns the previous one.
    pub(in crate::machine) fn put(&mut self, at: u32, mbarrier: Mbarrier) -> Option<Mbarrier> {
        debug_assert_eq!(at % BYTES, 0, "an mbarrier is aligned");
        if let Some(number) = self.number(at) {
            return self.all.get_mut(number)?.replace(mbarrier);
        }
        self.all.push(Some(mbarrier));
        if let Some(index) = self.index.get_mut((at / BYTES) as usize) {
            *index = self.all.len() as u32;
        }
        None
    }

    /// Removes the mbarrier at `at`.
    pub(in crate::machine) fn take(&mut self, at: u32) -> Option<Mbarrier> {
        let number = self.number(at)?;
        self.all.get_mut(number)?.take()
    }

    /// Returns all mbarriers with their offsets.
    pub(in crate::machine) fn iter(&self) -> impl Iterator<Item = (u32, &Mbarrier)> {
        let places = (0..).step_by(BYTES as usize).zip(&self.index);
        places.filter_map(|(at, _)| self.get(at).map(|mbarrier| (at, mbarrier)))
    }

    /// Returns all mbarriers, mutably.
    pub(in crate::machine) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Mbarrier> {
        self.all.iter_mut().flatten()
    }
}
