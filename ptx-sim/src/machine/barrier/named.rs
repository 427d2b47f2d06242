//! Barriers of blocks, warps and clusters, and fences.

use super::Machine;
use super::clock::{Gathered, Knowledge, Memory};
use super::state::Random;
use super::types::{BarrierUse, FenceKind, Order, Poll, Site, ThreadId, Votes, WaitingFor};
use crate::report::{Finding, FindingKind, Stop};

/// Named barriers of a block. Source: PTX ISA, "bar, barrier".
pub(super) const NAMED_BARRIERS: usize = 16;
/// Threads of a warp.
const WARP: u32 = 32;
/// Another sequence of the seed's numbers than the machine's.
const ELECTION: u64 = 0x2545_f491_4f6c_dd1d;

/// A named barrier: a round ends when all that take part have arrived.
#[derive(Debug, Default)]
pub(super) struct NamedBarrier {
    pub(super) round: u64,
    pub(super) arrived: u32,
    /// What the first to arrive asked for.
    expected: Option<u32>,
    first: Option<(ThreadId, Site)>,
    /// The instruction that each warp has come to, in an aligned use.
    warps: Vec<(u32, ThreadId, Site)>,
    gathered: Gathered,
    votes: Votes,
    /// Of the last round.
    told: Knowledge,
    result: Votes,
}

/// The barrier of a cluster.
#[derive(Debug, Default)]
pub(super) struct ClusterBarrier {
    pub(super) round: u64,
    /// Arrivals of threads that have not exited.
    pub(super) arrived: u32,
    /// Where each warp has arrived with `.aligned`, by block and warp.
    warps: Vec<Option<(ThreadId, Site)>>,
    gathered: Gathered,
    told: Knowledge,
}

impl NamedBarrier {
    fn end_round(&mut self) {
        self.round += 1;
        (self.arrived, self.expected, self.first) = (0, None, None);
        self.warps.clear();
        self.told = self.gathered.join();
        self.result = std::mem::take(&mut self.votes);
    }
}

impl Machine {
    /// `bar` and `barrier`. A thread that waits asks again until it is ready.
    ///
    /// # Errors
    ///
    /// A barrier or a number of threads that there cannot be.
    pub fn barrier(&mut self, who: ThreadId, with: BarrierUse, site: Site) -> Result<Poll, Stop> {
        let index = self.index(who);
        let id = with.id as usize;
        if id >= NAMED_BARRIERS
            || with.threads.is_some_and(|threads| threads == 0 || !threads.is_multiple_of(WARP))
        {
            let message = match with.threads {
                Some(threads) => {
                    format!("barrier {id} of {threads} threads; barriers are 0 to 15, of whole warps")
                }
                None => format!("barrier {id}; barriers are 0 to 15"),
            };
            let party = self.party(who, site, "waits");
            return self.stop(Finding::new(FindingKind::DivergentBarrier, message).with(party));
        }
        if let Some((id, round)) = self.threads[index].at_barrier {
            return Ok(self.leave_barrier(who, id, round));
        }
        self.come_to_barrier(who, with, site);
        self.end_barrier_if_due(who.block, id);
        let round = self.blocks[who.block as usize].named[id].round;
        // If the round has ended with this thread, it is the one before.
        let mine = if self.blocks[who.block as usize].named[id].arrived == 0 { round - 1 } else { round };
        if with.arrive_only {
            return Ok(Poll::Ready);
        }
        self.threads[index].at_barrier = Some((with.id, mine));
        Ok(self.leave_barrier(who, with.id, mine))
    }

    /// Whether a wait of `who` might end if it were tried: false saves the trial. One lane speaks for all that wait with it, so
    /// that the answer may be wrong for others, which try when nothing else goes on.
    pub fn may_end(&self, who: ThreadId, what: WaitingFor) -> bool {
        let thread = &self.threads[self.index(who)];
        match what {
            WaitingFor::Barrier(_) => thread.at_barrier.is_none_or(|(id, round)| {
                let named = &self.blocks[who.block as usize].named;
                named.get(id as usize).is_none_or(|barrier| barrier.round > round)
            }),
            WaitingFor::Cluster => thread.at_cluster.is_none_or(|round| self.cluster.round > round),
            WaitingFor::Mbarrier { space, address, phase } => self.wait_may_end(who, space, address, phase),
            WaitingFor::BulkGroups { .. }
            | WaitingFor::AsyncGroups(_)
            | WaitingFor::Warp(_)
            | WaitingFor::Memory { .. }
            | WaitingFor::Nothing => true,
        }
    }

    /// What the last `barrier.red` that was ready for this thread counted.
    pub fn barrier_votes(&self, who: ThreadId) -> Votes {
        self.threads[self.index(who)].votes
    }

    fn leave_barrier(&mut self, who: ThreadId, id: u32, round: u64) -> Poll {
        let index = self.index(who);
        let barrier = &self.blocks[who.block as usize].named[id as usize];
        if barrier.round <= round {
            return Poll::Blocked;
        }
        let thread = &mut self.threads[index];
        self.acquirer.acquire(&mut thread.view, &barrier.told);
        thread.votes = barrier.result;
        thread.at_barrier = None;
        Poll::Ready
    }

    fn come_to_barrier(&mut self, who: ThreadId, with: BarrierUse, site: Site) {
        let index = self.index(who);
        let barrier = &mut self.blocks[who.block as usize].named[with.id as usize];
        barrier.gathered.release(&mut self.threads[index].view);
        barrier.arrived += 1;
        barrier.votes.all += 1;
        barrier.votes.yes += u32::from(with.vote);

        let warp = who.thread / WARP;
        let elsewhere = match barrier.warps.iter().find(|place| place.0 == warp) {
            Some(&(_, other, place)) => (place.ptx_line != site.ptx_line).then_some((other, place)),
            None if with.aligned => {
                barrier.warps.push((warp, who, site));
                None
            }
            None => None,
        };
        let counted_otherwise = match barrier.first {
            Some((other, place)) => (barrier.expected != with.threads).then_some((other, place)),
            None => {
                (barrier.first, barrier.expected) = (Some((who, site)), with.threads);
                None
            }
        };
        let id = with.id;
        if let Some(other) = elsewhere.filter(|_| with.aligned) {
            let message = format!("threads of one warp come to barrier {id} at different instructions");
            self.divergent(message, (who, site), other);
        }
        if let Some(other) = counted_otherwise {
            let message =
                format!("threads come to barrier {id} with different numbers of threads to wait for");
            self.divergent(message, (who, site), other);
        }
    }

    fn divergent(&mut self, message: String, one: (ThreadId, Site), other: (ThreadId, Site)) {
        let finding = Finding::new(FindingKind::DivergentBarrier, message)
            .with(self.party(one.0, one.1, "waits"))
            .with(self.party(other.0, other.1, "waits"))
            .help("move the barrier to where all threads of the warp come, at one instruction");
        self.report(finding);
    }

    /// Ends the round of a barrier if all have arrived: those asked for, or all of the block that have not exited.
    pub(super) fn end_barrier_if_due(&mut self, block: u32, id: usize) {
        let state = &mut self.blocks[block as usize];
        let barrier = &mut state.named[id];
        let (arrived, live) = (barrier.arrived, state.live);
        let Some(first) = barrier.first else { return };
        match barrier.expected {
            Some(expected) if arrived < expected => return,
            None if arrived < live => return,
            Some(_) | None => {}
        }
        let missing = barrier.expected.is_none() && arrived < self.config.threads;
        barrier.end_round();
        if missing {
            let gone = self.config.threads - arrived;
            let message =
                format!("barrier {id} is for all threads of the block, but {gone} have exited without it");
            let finding = Finding::new(FindingKind::DivergentBarrier, message)
                .with(self.party(first.0, first.1, "waits"))
                .help(
                    "let all threads come to the barrier, or name the number of those that do: \
                     [[`named_barrier_sync(id, threads)`||`barrier.sync id, threads`]]",
                );
            self.report(finding);
        }
    }

    /// All of `lanes` of a warp have come to a `bar.warp.sync`, or to something else that orders their memory.
    pub fn warp_sync(&mut self, block: u32, warp: u32, lanes: u32) {
        if !self.config.checks.order {
            return;
        }
        let first = (block * self.config.threads + warp * WARP) as usize;
        let last = first + (self.config.threads - (warp * WARP).min(self.config.threads)).min(WARP) as usize;
        let Some(threads) = self.threads.get_mut(first..last) else { return };
        let chosen = |lane: usize| lanes >> lane & 1 == 1;
        let mut gathered = Gathered::default();
        for (lane, thread) in threads.iter_mut().enumerate() {
            if chosen(lane) {
                gathered.release(&mut thread.view);
            }
        }
        let told = gathered.join();
        for (lane, thread) in threads.iter_mut().enumerate() {
            if chosen(lane) {
                self.acquirer.acquire(&mut thread.view, &told);
            }
        }
    }

    /// `elect.sync`: the lane of `here` that is elected, where lanes of `mask` ask that have not exited. PTX promises that it is
    /// the same lane for the same mask, and not which one (PTX ISA, "elect.sync"); so the seed picks it.
    pub fn elect(&self, block: u32, warp: u32, mask: u32, here: u32) -> u32 {
        let warp = u64::from(block * self.config.threads.div_ceil(WARP) + warp);
        let mut random = Random::new(self.config.seed ^ ELECTION ^ u64::from(mask) << 32 ^ warp);
        let mut lanes = here;
        for _ in 0..random.below(here.count_ones().into()) {
            lanes &= lanes - 1;
        }
        lanes.trailing_zeros()
    }

    /// `barrier.cluster.arrive`; where it is `aligned`, the threads of a warp come to one instruction.
    ///
    /// # Errors
    ///
    /// Two arrivals without a wait between them.
    pub fn cluster_arrive(
        &mut self,
        who: ThreadId,
        order: Order,
        aligned: bool,
        site: Site,
    ) -> Result<(), Stop> {
        let index = self.index(who);
        if self.threads[index].at_cluster.is_some() {
            let message = "a thread arrives twice at the cluster's barrier without waiting".to_owned();
            let party = self.party(who, site, "arrives");
            return self.stop(Finding::new(FindingKind::DivergentBarrier, message).with(party));
        }
        if aligned && let Some(other) = self.elsewhere_in_cluster(who, site) {
            let message = "threads of one warp come to the cluster's barrier at different instructions";
            self.divergent(message.to_owned(), (who, site), other);
        }
        self.threads[index].at_cluster = Some(self.cluster.round);
        self.cluster.arrived += 1;
        if order.releases() {
            self.cluster.gathered.release(&mut self.threads[index].view);
        }
        self.end_cluster_if_due();
        Ok(())
    }

    /// Who of the warp of `who` has arrived in this round at another instruction than `site`.
    fn elsewhere_in_cluster(&mut self, who: ThreadId, site: Site) -> Option<(ThreadId, Site)> {
        let warps = self.config.threads.div_ceil(WARP);
        let all = (self.blocks.len() as u32 * warps) as usize;
        let places = &mut self.cluster.warps;
        places.resize(all, None);
        let first =
            *places.get_mut((who.block * warps + who.thread / WARP) as usize)?.get_or_insert((who, site));
        (first.1.ptx_line != site.ptx_line).then_some(first)
    }

    /// `barrier.cluster.wait`.
    ///
    /// # Errors
    ///
    /// A wait without an arrival.
    pub fn cluster_wait(&mut self, who: ThreadId, order: Order, site: Site) -> Result<Poll, Stop> {
        let index = self.index(who);
        let Some(round) = self.threads[index].at_cluster else {
            let message = "a thread waits at the cluster's barrier without having arrived".to_owned();
            let party = self.party(who, site, "waits");
            return self.stop(Finding::new(FindingKind::DivergentBarrier, message).with(party));
        };
        if self.cluster.round <= round {
            return Ok(Poll::Blocked);
        }
        let thread = &mut self.threads[index];
        thread.at_cluster = None;
        if order.acquires() {
            self.acquirer.acquire(&mut thread.view, &self.cluster.told);
        }
        Ok(Poll::Ready)
    }

    /// Ends the round of the cluster's barrier if all threads that have not exited have arrived.
    pub(super) fn end_cluster_if_due(&mut self) {
        let live: u32 = self.blocks.iter().map(|block| block.live).sum();
        if self.cluster.arrived > 0 && self.cluster.arrived >= live {
            self.cluster.round += 1;
            self.cluster.arrived = 0;
            self.cluster.warps.clear();
            self.cluster.told = self.cluster.gathered.join();
        }
    }

    /// A fence.
    pub fn fence(&mut self, who: ThreadId, kind: FenceKind) {
        match kind {
            FenceKind::ProxyAsync => self.view(who).fence_async(&[Memory::Shared, Memory::Global]),
            FenceKind::ProxyAsyncShared => self.view(who).fence_async(&[Memory::Shared]),
            FenceKind::ProxyAsyncGlobal => self.view(who).fence_async(&[Memory::Global]),
            FenceKind::MbarrierInit => {
                let fence = self.view(who).epoch();
                self.view(who).step();
                self.fence_mbarriers(who, fence);
            }
            FenceKind::Memory => self.fence_memory(who),
            FenceKind::TensorMapRelease => self.release_maps(who),
            FenceKind::OtherProxy => {}
        }
    }
}
