//! The mbarrier object, as the PTX ISA defines it ("mbarrier", "Phases of the mbarrier object", "Tracking asynchronous
//! operations by the mbarrier object").

use std::collections::BTreeMap;

use super::clock::{Component, Epoch, Gathered, Knowledge, NOT_READY};
use super::overrun::{Issue, Issues, Turn, Wait};
use super::types::{Arrive, Phase, Scope, Site, ThreadId};

/// Bits of an arrival count.
const COUNT_BITS: u32 = 20;
/// The greatest arrival count. Source: "Contents of the mbarrier object".
pub(super) const MAX_COUNT: u32 = (1 << COUNT_BITS) - 1;
/// The greatest transaction count, and the least with the sign changed. Source: the same.
pub(super) const MAX_TX: i64 = (1 << 20) - 1;
/// Size and alignment of the object in bytes.
pub(super) const BYTES: u32 = 8;

/// An mbarrier.
#[derive(Debug)]
pub(super) struct Mbarrier {
    /// Its clock component: counts complete phases.
    pub(super) component: u32,
    /// Arrivals that a phase expects.
    pub(super) expected: u32,
    /// Arrivals that the current phase still expects.
    pub(super) pending: u32,
    /// Bytes that the current phase still expects; below zero if they came before they were expected.
    pub(super) tx: i64,
    /// Complete phases.
    pub(super) phase: u32,
    /// The initialisation, and where it is.
    pub(super) init: Epoch,
    pub(super) init_site: Site,
    pub(super) init_by: ThreadId,
    /// The step of `fence.mbarrier_init` after the initialisation.
    pub(super) fenced: Option<Epoch>,
    /// What arrivals have told, of all phases.
    arrived: Arrived,
    /// What the last complete phase tells.
    completed: Completed,
    /// Bytes expected by and arrived in the current phase.
    pub(super) expected_bytes: u64,
    pub(super) received_bytes: u64,
    /// The last phase, counted from 1, that a wait has seen complete.
    pub(super) observed: u32,
    /// Whether threads arrive at it as at an mbarrier of the cluster.
    pub(super) remote: bool,
    /// The last load that counted here: its phase, from 1, and who issued it where.
    pub(super) last_load: Option<(u32, ThreadId, Site)>,
    /// Pieces of loads that are still to count here.
    pub(super) under_way: u32,
    /// The waits that have seen the last complete phase: the last one of each thread, and its PTX line.
    waits: BTreeMap<Component, (u32, u32)>,
    /// A wait that the end of the phase after its own did not know of.
    overrun: Option<Wait>,
    /// Who made which phase complete last.
    pub(super) turned: Option<Turn>,
}

/// What arrivals have told.
#[derive(Debug, Default)]
struct Arrived {
    /// Threads of the mbarrier's own block.
    near: Gathered,
    /// Threads of other blocks, to the cluster.
    far: Gathered,
    /// Threads of other blocks, to their own block.
    aside: Gathered,
    /// What was past for copies that have counted, and for relaxed arrivals.
    issued: Issues,
}

/// What a complete phase tells who waits within the scope of a block, and of the cluster.
#[derive(Debug, Default)]
struct Completed {
    block: Knowledge,
    cluster: Knowledge,
}

impl Arrived {
    fn complete(&mut self, component: Component, phase: u32) -> Completed {
        let mut near = self.near.join();
        near.learn(component, phase, NOT_READY);
        let (far, aside) = (self.far.join(), self.aside.join());
        let issued = self.issued.join();
        near.learn_past(&issued);
        if far.is_empty() && aside.is_empty() {
            return Completed { block: near.clone(), cluster: near };
        }
        let near = near.join(&aside.to_other_block());
        Completed { block: near.join(&far.to_other_block()), cluster: near.join(&far) }
    }
}

/// Why an operation on an mbarrier is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// More arrivals than the phase has left.
    TooManyArrivals,
    /// An arrival that counts for none.
    NoArrival,
    /// A wait for a phase that is neither the current nor the preceding one.
    OtherPhase,
    /// The transaction count leaves its range.
    TransactionRange,
    /// The pending count goes above its range.
    PendingRange,
    /// `.noComplete`, but the phase is complete.
    Completes,
    /// A wait with the state of another mbarrier.
    OtherBarrier,
    /// A drop that leaves no arrival to expect.
    NoneExpected,
}

impl Mbarrier {
    pub(super) fn new(component: u32, count: u32, init: Epoch, init_by: ThreadId, init_site: Site) -> Self {
        Self {
            component,
            expected: count,
            pending: count,
            tx: 0,
            phase: 0,
            init,
            init_site,
            init_by,
            fenced: None,
            arrived: Arrived::default(),
            completed: Completed::default(),
            expected_bytes: 0,
            received_bytes: 0,
            observed: 0,
            remote: false,
            last_load: None,
            under_way: 0,
            waits: BTreeMap::new(),
            overrun: None,
            turned: None,
        }
    }

    /// The pending count of a state.
    pub(super) fn pending_of(state: u64) -> u32 {
        state as u32 & MAX_COUNT
    }

    /// The opaque state: the current phase, whose it is, and its pending count.
    pub(super) fn state(&self) -> u64 {
        u64::from(self.phase) << 32 | u64::from(self.mark()) << COUNT_BITS | u64::from(self.pending)
    }

    /// What tells states of this mbarrier from those of others: as much of its component as there are bits left.
    fn mark(&self) -> u32 {
        self.component & (u32::MAX >> COUNT_BITS)
    }

    /// What the arrivals of threads of the own block, or of others, are gathered in.
    pub(super) fn arrivals(&mut self, own_block: bool, scope: Scope) -> &mut Gathered {
        match (own_block, scope) {
            (true, _) => &mut self.arrived.near,
            (false, Scope::Cluster) => &mut self.arrived.far,
            (false, Scope::Block) => &mut self.arrived.aside,
        }
    }

    /// What the last complete phase tells.
    pub(super) fn tells(&self, scope: Scope) -> &Knowledge {
        match scope {
            Scope::Block => &self.completed.block,
            Scope::Cluster => &self.completed.cluster,
        }
    }

    /// A copy counts here that was issued so, or an arrival that releases nothing.
    pub(super) fn note_issue(&mut self, issue: &Issue) {
        self.arrived.issued.add(issue);
    }

    /// A wait has seen the last complete phase.
    pub(super) fn note_wait(&mut self, wait: Wait) {
        self.waits.insert(wait.step.component(), (wait.step.count(), wait.line));
    }

    /// A wait for the phase before the last complete one that nothing orders before the end of that: told once.
    pub(super) fn take_overrun(&mut self) -> Option<Wait> {
        self.overrun.take()
    }

    /// The expect-tx operation.
    pub(super) fn expect_tx(&mut self, bytes: u32) -> Result<(), Refusal> {
        self.tx_before_arrival(bytes)?;
        self.complete_if_due();
        Ok(())
    }

    /// The expect-tx operation as a part of an arrival, which comes right after it.
    pub(super) fn tx_before_arrival(&mut self, bytes: u32) -> Result<(), Refusal> {
        self.tx += i64::from(bytes);
        self.expected_bytes += u64::from(bytes);
        if self.tx > MAX_TX { Err(Refusal::TransactionRange) } else { Ok(()) }
    }

    /// The complete-tx operation.
    pub(super) fn complete_tx(&mut self, bytes: u32) -> Result<(), Refusal> {
        self.tx -= i64::from(bytes);
        self.received_bytes += u64::from(bytes);
        if self.tx < -MAX_TX {
            return Err(Refusal::TransactionRange);
        }
        self.complete_if_due();
        Ok(())
    }

    /// The arrive-on operation, after its expect-tx.
    pub(super) fn arrive(&mut self, arrive: &Arrive) -> Result<(), Refusal> {
        if arrive.count == 0 {
            return Err(Refusal::NoArrival);
        }
        let Some(pending) = self.pending.checked_sub(arrive.count) else {
            return Err(Refusal::TooManyArrivals);
        };
        self.pending = pending;
        if arrive.drop {
            self.expected = self.expected.saturating_sub(arrive.count);
            if self.expected == 0 {
                return Err(Refusal::NoneExpected);
            }
        }
        let phase = self.phase;
        self.complete_if_due();
        if arrive.no_complete && self.phase != phase { Err(Refusal::Completes) } else { Ok(()) }
    }

    /// A phase is complete when no arrival is pending and no byte: the next one starts with all arrivals pending.
    fn complete_if_due(&mut self) {
        if self.pending > 0 || self.tx != 0 {
            return;
        }
        self.phase = self.phase.wrapping_add(1);
        self.pending = self.expected;
        (self.expected_bytes, self.received_bytes) = (0, 0);
        self.completed = self.arrived.complete(self.component, self.phase);
        let past = self.completed.block.past();
        let unknown = self.waits.iter().find(|&(&thread, &(step, _))| past.get(thread) < step);
        self.overrun = unknown.map(|(&thread, &(step, line))| Wait { step: Epoch::new(thread, step), line });
        self.waits.clear();
    }

    /// Whether a phase is complete that no wait has seen so. Source: PTX ISA, "Phases of the mbarrier object": between the
    /// arrivals of one phase and those of the next there is at least one wait that returns true.
    ///
    /// Not asked of mbarriers that other blocks arrive at: a block goes on when its own phase is complete, and may be at another one's next
    /// phase before that one has looked. An H200 counts right.
    pub(super) fn is_unobserved(&self) -> bool {
        self.phase > self.observed && !self.remote
    }

    /// How many phases have to be complete for a wait by a thread that knows of `known`: of the two phases that a parity can
    /// mean, the one that the thread knows to be complete, or else the next.
    pub(super) fn awaited(phase: Phase, known: u32) -> u32 {
        match phase {
            Phase::Parity(parity) if (known & 1 == 1) != parity => known,
            Phase::Parity(_) => known.saturating_add(1),
            Phase::State(state) => ((state >> 32) as u32).saturating_add(1),
        }
    }

    /// Whether the phase that is waited for is complete. Source: PTX ISA, "mbarrier.test_wait": a state is of the same
    /// mbarrier, and of the current phase or of the one right before it.
    pub(super) fn is_complete(&self, phase: Phase) -> Result<bool, Refusal> {
        match phase {
            Phase::Parity(parity) => Ok((self.phase & 1 == 1) != parity),
            Phase::State(state) if state as u32 >> COUNT_BITS != self.mark() => Err(Refusal::OtherBarrier),
            Phase::State(state) => match self.phase.wrapping_sub((state >> 32) as u32) {
                behind @ (0 | 1) => Ok(behind == 1),
                _ => Err(Refusal::OtherPhase),
            },
        }
    }
}

/// The mbarriers of a block, by where they lie.
#[derive(Debug)]
pub(super) struct Mbarriers {
    /// Of each 8 bytes: the index of the mbarrier, plus one.
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

    /// The mbarrier at `at`.
    pub(super) fn at(&mut self, at: u32) -> Option<&mut Mbarrier> {
        let number = self.number(at)?;
        self.all.get_mut(number)?.as_mut()
    }

    /// The same, to look at.
    pub(super) fn look(&self, at: u32) -> Option<&Mbarrier> {
        self.all.get(self.number(at)?)?.as_ref()
    }

    /// Puts an mbarrier at `at`, and gives the one that was there.
    pub(super) fn put(&mut self, at: u32, mbarrier: Mbarrier) -> Option<Mbarrier> {
        if let Some(number) = self.number(at) {
            return self.all.get_mut(number)?.replace(mbarrier);
        }
        self.all.push(Some(mbarrier));
        if let Some(index) = self.index.get_mut((at / BYTES) as usize) {
            *index = self.all.len() as u32;
        }
        None
    }

    /// Takes the mbarrier at `at` away.
    pub(super) fn take(&mut self, at: u32) -> Option<Mbarrier> {
        let number = self.number(at)?;
        self.all.get_mut(number)?.take()
    }

    /// All of them, with where they lie.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Mbarrier)> {
        let places = (0..).step_by(BYTES as usize).zip(&self.index);
        places.filter_map(|(at, _)| self.look(at).map(|mbarrier| (at, mbarrier)))
    }

    /// All of them, to change.
    pub(super) fn all(&mut self) -> impl Iterator<Item = &mut Mbarrier> {
        self.all.iter_mut().flatten()
    }
}
