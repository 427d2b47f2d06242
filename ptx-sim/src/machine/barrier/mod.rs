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
use super::memory::SharedLocation;
use super::random::Random;
use super::types::{Phase, Site, Votes};

/// Separates the choice of time-outs from the main sequence of the seed.
const TIMEOUT_STREAM: u64 = 0x5851_f42d_4c95_7f2d;

/// The number of times in a row that a `try_wait` may time out before the phase completes. One of
/// `one_of` attempts does.
#[derive(Clone, Copy, Debug)]
struct Timeouts {
    most: u32,
    one_of: u64,
}

/// Few time-outs, for most seeds. They suffice to find a kernel that takes false for true.
const FEW_TIMEOUTS: Timeouts = Timeouts { most: 2, one_of: 8 };
/// Very many time-outs in a row, for some seeds. A kernel may handle its first attempts correctly
/// and still be wrong once it gives up.
const MANY_TIMEOUTS: Timeouts = Timeouts { most: 64, one_of: 1 };

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
    completed_wait: Option<CompletedWait>,
}

/// A wait at an mbarrier that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct CompletedWait {
    pub(super) location: SharedLocation,
    /// The number of phases that were complete.
    pub(super) phase: u32,
    /// The thread's step.
    pub(super) step: u32,
    pub(super) site: Site,
}

impl Barriers {
    pub(super) fn new(shape: Shape, shared_bytes: u32, seed: u64) -> Self {
        let many = Random::new(seed ^ TIMEOUT_STREAM).below(8) == 0;
        Self {
            mbarriers: PerBlock::new(shape, || Mbarriers::new(shared_bytes)),
            named: PerBlock::new(shape, || std::array::from_fn(|_| NamedBarrier::default())),
            cluster: ClusterBarrier::default(),
            waits: PerThread::new(shape, |_| Waits::default()),
            timeouts: if many { MANY_TIMEOUTS } else { FEW_TIMEOUTS },
        }
    }

    /// Returns the mbarrier at a location.
    pub(super) fn mbarrier(&self, location: SharedLocation) -> Option<&Mbarrier> {
        self.mbarriers[location.rank].get(location.at)
    }

    /// Returns the mbarrier at a location, mutably.
    pub(super) fn mbarrier_mut(&mut self, location: SharedLocation) -> Option<&mut Mbarrier> {
        self.mbarriers[location.rank].get_mut(location.at)
    }

    /// Returns all mbarriers with their locations.
    pub(super) fn all_mbarriers(&self) -> impl Iterator<Item = (SharedLocation, &Mbarrier)> {
        let of_block =
            |(rank, all)| Mbarriers::iter(all).map(move |(at, one)| (SharedLocation { rank, at }, one));
        self.mbarriers.iter().flat_map(of_block)
    }

    /// Executes a thread's `fence.mbarrier_init` at this step, which makes the thread's
    /// initialisations visible.
    pub(super) fn fence_inits(&mut self, thread: ThreadId, fence: Epoch) {
        for mbarrier in self.mbarriers.values_mut().flat_map(Mbarriers::iter_mut) {
            if mbarrier.init.thread == thread && mbarrier.fenced.is_none() {
                mbarrier.fenced = Some(fence);
            }
        }
    }

    /// Returns the last wait of a thread at an mbarrier that has ended.
    pub(super) fn last_completed_wait(&self, thread: ThreadId) -> Option<CompletedWait> {
        self.waits[thread].completed_wait
    }

    /// Records that a wait of a thread at an mbarrier has ended.
    pub(super) fn note_completed_wait(&mut self, thread: ThreadId, completed_wait: CompletedWait) {
        self.waits[thread].completed_wait = Some(completed_wait);
    }

    /// Returns whether a `try_wait` times out. `complete` says whether its phase is complete.
    pub(super) fn times_out(&mut self, thread: ThreadId, complete: bool, random: &mut Random) -> bool {
        let waits = &mut self.waits[thread];
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
    pub(super) fn may_end(&self, thread: ThreadId, mbarrier: Option<&Mbarrier>, phase: Phase) -> bool {
        let may_time_out = self.waits[thread].timeouts < self.timeouts.most;
        may_time_out || mbarrier.is_none_or(|mbarrier| mbarrier.is_complete(phase) != Ok(false))
    }

    /// Counts a poll of an mbarrier, and returns how much time passes with it. Each failed poll
    /// doubles the time, so that a copy cannot be so late that a loop of polls exhausts its
    /// iterations first.
    pub(super) fn poll_time(&mut self, thread: ThreadId, complete: bool) -> u64 {
        let failed = &mut self.waits[thread].failed_polls;
        *failed = if complete { 0 } else { (*failed + 1).min(MOST_FAILED_POLLS) };
        (1 << *failed) - 1
    }

    /// Returns the counts of the last `barrier.red` that completed for this thread.
    pub(super) fn votes(&self, thread: ThreadId) -> Votes {
        self.waits[thread].votes
    }
}
