//! Barriers: mbarriers, the named barriers of blocks and the barrier of the cluster, and how
//! threads wait at them.

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

/// Another sequence of the seed's numbers, so that the main one stays as it is.
const IMPATIENCE: u64 = 0x5851_f42d_4c95_7f2d;

/// How often a try_wait may time out before the phase completes, and of how many it is one that
/// does.
#[derive(Clone, Copy, Debug)]
struct Timeouts {
    most: u32,
    one_of: u64,
}

/// Under most seeds, few: enough to show a kernel that takes false for true.
const FEW: Timeouts = Timeouts { most: 2, one_of: 8 };
/// Under some, all of very many: a kernel may be right about its first tries and wrong about what
/// it does when it gives up.
const MANY: Timeouts = Timeouts { most: 64, one_of: 1 };

/// Failed polls after which the time that each lets go by does not grow any more.
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

/// How a thread waits.
#[derive(Debug, Default)]
struct Waits {
    /// The named barrier that it waits in, and the round of it.
    named: Option<(BarrierId, u64)>,
    /// The round of the cluster's barrier that it has arrived in and not waited for.
    cluster: Option<u64>,
    votes: Votes,
    /// How often a try_wait timed out in a row.
    timeouts: u32,
    /// How often in a row it has polled an mbarrier whose phase was not complete.
    failed_polls: u32,
    /// The last wait at an mbarrier that was over.
    passed: Option<Passed>,
}

/// A wait at an mbarrier that was over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passed {
    pub(super) place: SharedPlace,
    /// The phases of it that were complete.
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

    /// The mbarrier at a place, to look at.
    pub(super) fn mbarrier(&self, place: SharedPlace) -> Option<&Mbarrier> {
        self.mbarriers[place.rank].get(place.at)
    }

    /// The mbarrier at a place.
    pub(super) fn mbarrier_mut(&mut self, place: SharedPlace) -> Option<&mut Mbarrier> {
        self.mbarriers[place.rank].get_mut(place.at)
    }

    /// All mbarriers, with their places.
    pub(super) fn all_mbarriers(&self) -> impl Iterator<Item = (SharedPlace, &Mbarrier)> {
        let of_block =
            |(rank, all)| Mbarriers::iter(all).map(move |(at, one)| (SharedPlace { rank, at }, one));
        self.mbarriers.iter().flat_map(of_block)
    }

    /// `fence.mbarrier_init` of a thread, which is this step, makes its initialisations visible.
    pub(super) fn fence_inits(&mut self, who: ThreadId, fence: Epoch) {
        for mbarrier in self.mbarriers.values_mut().flat_map(Mbarriers::iter_mut) {
            if mbarrier.init.who == who && mbarrier.fenced.is_none() {
                mbarrier.fenced = Some(fence);
            }
        }
    }

    /// The last wait of a thread at an mbarrier that was over.
    pub(super) fn passed(&self, who: ThreadId) -> Option<Passed> {
        self.waits[who].passed
    }

    /// A wait of a thread at an mbarrier is over.
    pub(super) fn pass(&mut self, who: ThreadId, passed: Passed) {
        self.waits[who].passed = Some(passed);
    }

    /// A `try_wait` finds its phase complete or not: whether it times out.
    pub(super) fn times_out(&mut self, who: ThreadId, complete: bool, random: &mut Random) -> bool {
        let waits = &mut self.waits[who];
        if complete {
            waits.timeouts = 0;
            return false;
        }
        // A wait that never ends has to be seen as such, so time-outs do not go on for ever.
        let times_out = waits.timeouts < self.timeouts.most && random.below(self.timeouts.one_of) == 0;
        waits.timeouts += u32::from(times_out);
        times_out
    }

    /// Whether a `try_wait` that failed might now end: the phase is complete, or the time may be
    /// out.
    pub(super) fn may_end(&self, who: ThreadId, mbarrier: Option<&Mbarrier>, phase: Phase) -> bool {
        let may_time_out = self.waits[who].timeouts < self.timeouts.most;
        may_time_out || mbarrier.is_none_or(|mbarrier| mbarrier.is_complete(phase) != Ok(false))
    }

    /// A thread polls an mbarrier. The answer is how much time goes by with it: twice as much with
    /// each failed poll, so that no copy is so late that a loop of polls gets to its end by them
    /// alone.
    pub(super) fn poll_time(&mut self, who: ThreadId, complete: bool) -> u64 {
        let failed = &mut self.waits[who].failed_polls;
        *failed = if complete { 0 } else { (*failed + 1).min(MOST_FAILED_POLLS) };
        (1 << *failed) - 1
    }

    /// What the last `barrier.red` that was ready for this thread counted.
    pub(super) fn votes(&self, who: ThreadId) -> Votes {
        self.waits[who].votes
    }
}
