//! The barrier of a cluster: `barrier.cluster`.

use tma_model::limits::WARP_THREADS;
use tma_model::sync::{Knowledge, Order, Releases};

use super::Barriers;
use crate::machine::index::{Shape, ThreadId};
use crate::machine::order::HappensBefore;
use crate::machine::types::{Actor, Poll};

/// The barrier of a cluster.
#[derive(Debug, Default)]
pub(in crate::machine) struct ClusterBarrier {
    pub(in crate::machine) round: u64,
    /// Arrivals of threads that have not exited.
    pub(in crate::machine) arrived: u32,
    /// The instruction at which each warp has arrived with `.aligned`, by block and warp.
    warps: Vec<Option<Actor>>,
    releases: Releases,
    /// The knowledge that the last round released.
    released: Knowledge,
}

/// A second arrival without a wait between, or a wait without an arrival.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) struct Unpaired;

impl ClusterBarrier {
    /// Returns the thread of the actor's warp that has arrived in this round at another
    /// instruction.
    fn at_other_instruction(&mut self, actor: Actor, shape: Shape) -> Option<Actor> {
        let warps = shape.warps();
        self.warps.resize((shape.blocks * warps) as usize, None);
        let warp = actor.thread.block.0 * warps + actor.thread.index.0 / WARP_THREADS;
        let first = *self.warps.get_mut(warp as usize)?.get_or_insert(actor);
        (first.site.ptx_line != actor.site.ptx_line).then_some(first)
    }

    /// Ends the round if all `live` threads, those that have not exited, have arrived.
    pub(in crate::machine) fn end_if_complete(&mut self, live: u32) {
        if self.arrived > 0 && self.arrived >= live {
            self.round += 1;
            self.arrived = 0;
            self.warps.clear();
            self.released = self.releases.join();
        }
    }
}

impl Barriers {
    /// Returns whether a thread has arrived at the cluster's barrier without waiting yet.
    pub(in crate::machine) fn is_in_cluster_barrier(&self, thread: ThreadId) -> bool {
        self.waits[thread].cluster.is_some()
    }

    /// Returns the thread of the actor's warp that has arrived at the cluster's barrier at another
    /// instruction, for an aligned arrival.
    pub(in crate::machine) fn cluster_arrival_elsewhere(
        &mut self,
        actor: Actor,
        shape: Shape,
    ) -> Option<Actor> {
        self.cluster.at_other_instruction(actor, shape)
    }

    /// `barrier.cluster.arrive` of a thread that has not arrived yet. `live` threads have not
    /// exited.
    pub(in crate::machine) fn arrive_in_cluster(
        &mut self,
        thread: ThreadId,
        semantics: Order,
        order: &mut HappensBefore,
        live: u32,
    ) {
        debug_assert!(!self.is_in_cluster_barrier(thread), "a thread arrives once a round");
        self.waits[thread].cluster = Some(self.cluster.round);
        self.cluster.arrived += 1;
        if semantics.releases() {
            order.release(thread, &mut self.cluster.releases);
        }
        self.cluster.end_if_complete(live);
    }

    /// `barrier.cluster.wait`.
    ///
    /// # Errors
    ///
    /// A wait without an arrival.
    pub(in crate::machine) fn wait_in_cluster(
        &mut self,
        thread: ThreadId,
        semantics: Order,
        order: &mut HappensBefore,
    ) -> Result<Poll, Unpaired> {
        let round = self.waits[thread].cluster.ok_or(Unpaired)?;
        if self.cluster.round <= round {
            return Ok(Poll::Blocked);
        }
        self.waits[thread].cluster = None;
        if semantics.acquires() {
            order.acquire(thread, &self.cluster.released);
        }
        Ok(Poll::Ready)
    }

    /// Returns whether a thread that waits at the cluster's barrier might go on.
    pub(in crate::machine) fn may_leave_cluster(&self, thread: ThreadId) -> bool {
        self.waits[thread].cluster.is_none_or(|round| self.cluster.round > round)
    }

    /// A thread exits, which leaves `live` threads in the cluster. If it had arrived, its arrival
    /// no longer counts.
    pub(in crate::machine) fn leave_cluster(&mut self, thread: ThreadId, live: u32) {
        if self.waits[thread].cluster == Some(self.cluster.round) {
            self.cluster.arrived = self.cluster.arrived.saturating_sub(1);
        }
        self.cluster.end_if_complete(live);
    }
}
