//! Barriers of blocks, warps and clusters, and waits in general.

use tma_model::help::Help;
use tma_model::limits::WARP_THREADS;

use crate::machine::Machine;
use crate::machine::address::{Target, resolve};
use crate::machine::barrier::{Divergence, NAMED_BARRIERS};
use crate::machine::index::{BarrierId, BlockRank, ThreadId, WarpIndex};
use crate::machine::memory::SharedLocation;
use crate::machine::random::Random;
use crate::machine::types::{Actor, BarrierUse, Order, Poll, Votes, WaitingFor};
use crate::report::{Finding, FindingKind, Stop};

/// Separates elections from the machine's main sequence of the seed.
const ELECTION: u64 = 0x2545_f491_4f6c_dd1d;

impl Machine {
    /// `bar` and `barrier`. A thread that blocks calls this again until it is ready.
    ///
    /// # Errors
    ///
    /// If the barrier or the number of threads is not possible.
    pub fn barrier(&mut self, actor: Actor, with: BarrierUse) -> Result<Poll, Stop> {
        let (id, thread) = (with.id, actor.thread);
        let odd = with.threads.filter(|&threads| threads == 0 || !threads.is_multiple_of(WARP_THREADS));
        if id.index() >= NAMED_BARRIERS || odd.is_some() {
            let message = match with.threads {
                Some(threads) => {
                    format!(
                        "barrier {id} counts {threads} threads; barriers are 0 to 15, and count whole \
                        warps"
                    )
                }
                None => format!("there is no barrier {id}; barriers are 0 to 15"),
            };
            return self.refuse(actor.does("waits"), FindingKind::DivergentBarrier, message);
        }
        let live = self.liveness.of_block(thread.block);
        let (poll, divergences) =
            self.barriers.arrive(actor, with, &mut self.order, live, self.shape.threads);
        for divergence in divergences.into_iter().flatten() {
            self.diverged(id, divergence);
        }
        Ok(poll)
    }

    /// Returns whether a wait of `thread` might end if it were tried; false saves the attempt.
    /// `thread` represents all lanes that wait with it, and the result may be wrong for the others.
    /// They are tried when nothing else can make progress.
    pub fn may_end(&self, thread: ThreadId, event: WaitingFor) -> bool {
        match event {
            WaitingFor::Barrier(_) => self.barriers.may_leave(thread),
            WaitingFor::Cluster => self.barriers.may_leave_cluster(thread),
            WaitingFor::Mbarrier { pointer, phase } => {
                let Target::Shared(rank, at) = resolve(pointer, thread.block) else { return true };
                let location = u32::try_from(at).ok().filter(|_| rank.0 < self.shape.blocks);
                let mbarrier = location.and_then(|at| self.barriers.mbarrier(SharedLocation { rank, at }));
                self.barriers.may_end(thread, mbarrier, phase)
            }
            WaitingFor::MultiplyGroups(pending) => self.multiply_may_end(thread, pending),
            WaitingFor::Registers(count) => self.registers_may_do(thread, count),
            WaitingFor::BulkGroups { .. }
            | WaitingFor::AsyncGroups(_)
            | WaitingFor::Warp(_)
            | WaitingFor::Memory(_)
            | WaitingFor::Nothing => true,
        }
    }

    /// Returns the counts of the last `barrier.red` that completed for this thread.
    pub fn barrier_votes(&self, thread: ThreadId) -> Votes {
        self.barriers.votes(thread)
    }

    /// Reports threads that use the same barrier in incompatible ways.
    pub(super) fn diverged(&mut self, id: BarrierId, divergence: Divergence) {
        let message = match divergence {
            Divergence::Instructions { .. } => {
                format!("threads of one warp reach barrier {id} at different instructions")
            }
            Divergence::Counts { .. } => {
                format!("threads reach barrier {id} with different counts")
            }
            Divergence::Exited { exited, .. } => {
                format!("barrier {id} is for all threads of the block, but {exited} of them have exited")
            }
        };
        match divergence {
            Divergence::Instructions { one, other } | Divergence::Counts { one, other } => {
                self.divergent(message, one, other);
            }
            Divergence::Exited { first, .. } => {
                let party = self.diagnostics.party(first.does("waits"));
                let finding =
                    Finding::new(FindingKind::DivergentBarrier, message).with(party).help(Help::ReachBarrier);
                self.report(finding);
            }
        }
    }

    fn divergent(&mut self, message: String, one: Actor, other: Actor) {
        let log = &mut self.diagnostics;
        let finding = Finding::new(FindingKind::DivergentBarrier, message)
            .with(log.party(one.does("waits")))
            .with(log.party(other.does("waits")))
            .help("move the barrier to one instruction that all threads of the warp reach");
        log.report(finding);
    }

    /// Synchronises `lanes` of a warp, which are all at a `bar.warp.sync` or another instruction
    /// that orders their memory accesses.
    pub fn warp_sync(&mut self, block: BlockRank, warp: WarpIndex, lanes: u32) {
        if self.order.is_checked() {
            self.order.sync_lanes(block, warp, lanes);
        }
    }

    /// `elect.sync`: returns the elected lane out of `here`, the lanes of `mask` that have not
    /// exited. PTX guarantees that the same mask elects the same lane, but not which one (PTX ISA,
    /// "elect.sync"), so the seed picks it.
    pub fn elect(&self, block: BlockRank, warp: WarpIndex, mask: u32, here: u32) -> u32 {
        let warp = u64::from(block.0 * self.shape.warps() + warp.0);
        let mut random = Random::new(self.seed ^ ELECTION ^ u64::from(mask) << 32 ^ warp);
        let mut lanes = here;
        for _ in 0..random.below(here.count_ones().into()) {
            lanes &= lanes - 1;
        }
        lanes.trailing_zeros()
    }

    /// `barrier.cluster.arrive`. If it is `aligned`, the threads of a warp must arrive at the same
    /// instruction.
    ///
    /// # Errors
    ///
    /// If a thread arrives twice without a wait between.
    pub fn cluster_arrive(&mut self, actor: Actor, order: Order, aligned: bool) -> Result<(), Stop> {
        if self.barriers.is_in_cluster_barrier(actor.thread) {
            let message = "a thread arrives twice at the cluster's barrier without a wait".to_owned();
            return self.refuse(actor.does("arrives"), FindingKind::DivergentBarrier, message);
        }
        if aligned && let Some(other) = self.barriers.cluster_arrival_elsewhere(actor, self.shape) {
            let message = "threads of one warp reach the cluster's barrier at different instructions";
            self.divergent(message.to_owned(), actor, other);
        }
        let live = self.liveness.of_cluster();
        self.barriers.arrive_in_cluster(actor.thread, order, &mut self.order, live);
        Ok(())
    }

    /// `barrier.cluster.wait`.
    ///
    /// # Errors
    ///
    /// If a thread waits without having arrived.
    pub fn cluster_wait(&mut self, actor: Actor, order: Order) -> Result<Poll, Stop> {
        self.barriers.wait_in_cluster(actor.thread, order, &mut self.order).or_else(|_unpaired| {
            let message = "a thread waits at the cluster's barrier without having arrived".to_owned();
            self.refuse(actor.does("waits"), FindingKind::DivergentBarrier, message)
        })
    }
}
