//! Barriers (mbarriers, the named barriers of blocks and the barrier of the cluster) and the state
//! of the threads that wait at them.

mod cluster;
mod mbarrier;
mod named;

pub(super) use cluster::ClusterBarrier;
pub(super) use mbarrier::{BYTES, Completer, Mbarrier, MbarrierRefusal, Mbarriers};
pub(super) use named::{Divergence, NAMED_BARRIERS, NamedBarrier};

use tma_model::sync::Epoch;

use super::index::{BarrierId, PerBlock, PerThread, Shape, ThreadId};
use super::memory::SharedPlace;
use super::random::Random;
use super::types::{Phase, Site, Votes};

/// Separates the choice of time-outs from the main sequence of the seed.
const IMPATIENCE: u64 = 0x5851_f42d_4c95_7f2d;

/// The number of times in a row that a `try_wait` may time out before the phase completes. One of
/// `one_of` attempts does.
#[derive(Clone, Copy, Debug)]
struct Timeouts {
    most: u32,
    one_of: u64,
}

/// Few time-outs, for most seeds. They suffice to find a kernel that takes false for true.
const FEW: Timeouts = Timeouts { most: 2, one_of: 8 };
/// Very many time-outs in a row, for some seeds. A kernel may handle its first attempts correctly
/// and still be wrong once it gives up.
const MANY: Timeouts = Timeouts { most: 64, one_of: 1 };

/// The number of failed polls after which the time per poll stops growing.
const MOST_FAILED_POLLS: u32 = 16;

/// The barriers of a cluster.
#[derive(Debug)]
pub(super) struct Barriers {
    pub(super) mbarriers: PerBlock<Mbarriers>,
    named: PerBlock<[NamedBarrier; NAMED_BARRIERS]>,
    pub(super) cluster: ClusterBarrier,
    waits: PerThread<Waits>,
    timeouts: Timeouts,
}

/// The state of a thread at barriers.
#[derive(Debug, Default)]
struct Waits {
    /// The named barrier at which the thread waits, and the round.
    named: Option<(BarrierId, u64)>,
    /// The round of the cluster's barrier at which the thread has arrived without waiting yet.
    cluster: Option<u64>,
    votes: Votes,
    /// The number of consecutive time-outs of a `try_wait`.
    timeouts: u32,
    /// The number of consecutive polls of an mbarrier whose phase was not complete.
    failed_polls: u32,
    /// The last wait at an mbarrier that has ended.
    passed: Option<Passed>,
}

/// A wait at an mbarrier that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passed {
    pub(super) place: SharedPlace,
    /// The number of phases that were complete.
    pub(super) phase: u32,
    /// The thread's step.
    pub(super) step: u32,
    pub(super) site: Site,
}

impl Barriers {
    pub(super) fn new(shape: Shape, shared_bytes: u32, seed: u64) -> Self {
        let impatient = Random::new(seed ^ IMPATIENCE).below(8) == 0;
        Self {
            mbarriers: PerBlock::new(shape, || Mbarriers::new(shared_bytes)),
            named: PerBlock::new(shape, || std::array::from_fn(|_| NamedBarrier::default())),
            cluster: ClusterBarrier::default(),
            waits: PerThread::new(shape, |_| Waits::default()),
            timeouts: if impatient { MANY } else { FEW },
        }
    }

    /// Returns the mbarrier at a place.
    pub(super) fn mbarrier(&self, place: SharedPlace) -> Option<&Mbarrier> {
        self.mbarriers[place.rank].get(place.at)
    }

    /// Returns the mbarrier at a place, mutably.
    pub(super) fn mbarrier_mut(&mut self, place: SharedPlace) -> Option<&mut Mbarrier> {
        self.mbarriers[place.rank].get_mut(place.at)
    }

    /// Returns all mbarriers with their places.
    pub(super) fn all_mbarriers(&self) -> impl Iterator<Item = (SharedPlace, &Mbarrier)> {
        let of_block =
            |(rank, all)| Mbarriers::iter(all).map(move |(at, one)| (SharedPlace { rank, at }, one));
        self.mbarriers.iter().flat_map(of_block)
    }

    /// Executes a thread's `fence.mbarrier_init` at this step, which makes the thread's
    /// initialisations visible.
    pub(super) fn fence_inits(&mut self, who: ThreadId, fence: Epoch) {
        for mbarrier in self.mbarriers.values_mut().flat_map(Mbarriers::iter_mut) {
            if mbarrier.init.who == who && mbarrier.fenced.is_none() {
                mbarrier.fenced = Some(fence);
            }
        }
    }

    /// Returns the last wait of a thread at an mbarrier that has ended.
    pub(super) fn passed(&self, who: ThreadId) -> Option<Passed> {
        self.waits[who].passed
    }

    /// Records that a wait of a thread at an mbarrier has ended.
    pub(super) fn pass(&mut self, who: ThreadId, passed: Passed) {
        self.waits[who].passed = Some(passed);
    }

    /// Returns whether a `try_wait` times out. `complete` says whether its phase is complete.
    pub(super) fn times_out(&mut self, who: ThreadId, complete: bool, random: &mut Random) -> bool {
        let waits = &mut self.waits[who];
        if complete {
            waits.timeouts = 0;
            return false;
        }
        // A wait that never ends must be recognised as such, so the number of time-outs is limited.
        let times_out = waits.timeouts < self.timeouts.most && random.below(self.timeouts.one_of) == 0;
        waits.timeouts += u32::from(times_out);
        times_out
    }

    /// Returns whether a `try_wait` that failed might now end: the phase is complete, or the wait
    /// may time out.
    pub(super) fn may_end(&self, who: ThreadId, mbarrier: Option<&Mbarrier>, phase: Phase) -> bool {
        let may_time_out = self.waits[who].timeouts < self.timeouts.most;
        may_time_out || mbarrier.is_none_or(|mbarrier| mbarrier.is_complete(phase) != Ok(false))
    }

    /// Counts a poll of an mbarrier, and returns how much time passes with it. Each failed poll
    /// doubles the time, so that a copy cannot be so late that a loop of polls exhausts its
    /// iterations first.
    pub(super) fn poll_time(&mut self, who: ThreadId, complete: bool) -> u64 {
        let failed = &mut self.waits[who].failed_polls;
        *failed = if complete { 0 } else { (*failed + 1).min(MOST_FAILED_POLLS) };
        (1 << *failed) - 1
    }

    /// Returns the counts of the last `barrier.red` that completed for this thread.
    pub(super) fn votes(&self, who: ThreadId) -> Votes {
        self.waits[who].votes
    }
}
