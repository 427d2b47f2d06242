//! The named barriers of a block: `bar` and `barrier`.

use std::collections::VecDeque;

use tma_model::limits;
use tma_model::sync::{Knowledge, Releases};

use super::Barriers;
use crate::machine::index::{BarrierId, BlockRank, ThreadId, WarpIndex};
use crate::machine::order::HappensBefore;
use crate::machine::types::{Actor, BarrierUse, Poll, Votes};

/// The number of named barriers of a block.
pub(in crate::machine) const NAMED_BARRIERS: usize = limits::NAMED_BARRIERS as usize;

/// A named barrier. A round ends when all participants have arrived.
#[derive(Debug, Default)]
pub(in crate::machine) struct NamedBarrier {
    round: u64,
    arrived: u32,
    /// The number of threads that the first arrival asked for.
    expected: Option<u32>,
    first: Option<Actor>,
    /// The instruction at which each warp arrived, for aligned uses.
    warps: Vec<(WarpIndex, Actor)>,
    releases: Releases,
    votes: Votes,
    /// The number of threads that wait for the end of the round.
    waiting: u32,
    /// Rounds that have ended but that some threads have yet to leave.
    ended: VecDeque<Round>,
}

/// A round that has ended. Its waiters learn what was released in it, and nothing of later rounds.
#[derive(Debug)]
struct Round {
    number: u64,
    released: Knowledge,
    votes: Votes,
    /// The number of threads that have yet to leave.
    waiting: u32,
}

/// A mismatch between threads that use the same barrier.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) enum Divergence {
    /// Threads of one warp arrive at different instructions.
    Instructions { one: Actor, other: Actor },
    /// Threads disagree on the number of participants.
    Counts { one: Actor, other: Actor },
    /// The round has ended without the threads that have exited.
    Exited { first: Actor, exited: u32 },
}

impl NamedBarrier {
    /// Records an arrival.
    fn arrive(&mut self, actor: Actor, with: BarrierUse) -> [Option<Divergence>; 2] {
        self.arrived += 1;
        self.votes.all += 1;
        self.votes.yes += u32::from(with.vote);
        let warp = WarpIndex(actor.thread.index.0 / limits::WARP_THREADS);
        let at_other_instruction = match self.warps.iter().find(|(arrived, _)| *arrived == warp) {
            Some(&(_, other)) => (other.site.ptx_line != actor.site.ptx_line).then_some(other),
            None if with.aligned => {
                self.warps.push((warp, actor));
                None
            }
            None => None,
        };
        let with_other_count = match self.first {
            Some(other) => (self.expected != with.threads).then_some(other),
            None => {
                (self.first, self.expected) = (Some(actor), with.threads);
                None
            }
        };
        [
            at_other_instruction
                .filter(|_| with.aligned)
                .map(|other| Divergence::Instructions { one: actor, other }),
            with_other_count.map(|other| Divergence::Counts { one: actor, other }),
        ]
    }

    /// Ends the round if all participants have arrived: as many threads as asked for, or else all
    /// `live` threads of the block. The block was launched with `threads` threads.
    fn end_if_complete(&mut self, live: u32, threads: u32) -> Option<Divergence> {
        let first = self.first?;
        let arrived = self.arrived;
        debug_assert!(arrived > 0, "whoever is first has arrived");
        if arrived < self.expected.unwrap_or(live) {
            return None;
        }
        let missing = self.expected.is_none() && arrived < threads;
        let released = std::mem::take(&mut self.releases).join();
        let (votes, waiting) = (std::mem::take(&mut self.votes), std::mem::take(&mut self.waiting));
        if waiting > 0 {
            self.ended.push_back(Round { number: self.round, released, votes, waiting });
        }
        self.round += 1;
        (self.arrived, self.expected, self.first) = (0, None, None);
        self.warps.clear();
        missing.then_some(Divergence::Exited { first, exited: threads.saturating_sub(arrived) })
    }
}

impl Barriers {
    /// Lets a thread arrive at a barrier or, if it waits there already, try again to go on. `live`
    /// of the block's `threads` threads have not exited.
    pub(in crate::machine) fn arrive(
        &mut self,
        actor: Actor,
        with: BarrierUse,
        order: &mut HappensBefore,
        live: u32,
        threads: u32,
    ) -> (Poll, [Option<Divergence>; 3]) {
        let thread = actor.thread;
        if let Some((id, round)) = self.waits[thread].named {
            return (self.leave(thread, id, round, order), [None; 3]);
        }
        let barrier = &mut self.named[thread.block][with.id.index()];
        order.release(thread, &mut barrier.releases);
        let round = barrier.round;
        let [at_other_instruction, with_other_count] = barrier.arrive(actor, with);
        barrier.waiting += u32::from(!with.arrive_only);
        let divergences = [at_other_instruction, with_other_count, barrier.end_if_complete(live, threads)];
        if with.arrive_only {
            return (Poll::Ready, divergences);
        }
        self.waits[thread].named = Some((with.id, round));
        (self.leave(thread, with.id, round, order), divergences)
    }

    fn leave(&mut self, thread: ThreadId, id: BarrierId, round: u64, order: &mut HappensBefore) -> Poll {
        let barrier = &mut self.named[thread.block][id.index()];
        debug_assert!(barrier.round >= round, "rounds do not go back");
        let Some(index) = barrier.ended.iter().position(|ended| ended.number == round) else {
            return Poll::Blocked;
        };
        let ended = &mut barrier.ended[index];
        order.acquire(thread, &ended.released);
        let waits = &mut self.waits[thread];
        (waits.votes, waits.named) = (ended.votes, None);
        ended.waiting -= 1;
        if ended.waiting == 0 {
            barrier.ended.remove(index);
        }
        Poll::Ready
    }

    /// Ends the rounds that waited for a thread that has exited. The exit leaves `live` of the
    /// block's `threads` threads.
    pub(in crate::machine) fn end_rounds(
        &mut self,
        block: BlockRank,
        live: u32,
        threads: u32,
    ) -> impl Iterator<Item = (BarrierId, Divergence)> {
        let named = (0..).map(BarrierId).zip(&mut self.named[block]);
        named.filter_map(move |(id, barrier)| Some((id, barrier.end_if_complete(live, threads)?)))
    }

    /// Returns whether a thread that waits at a named barrier might go on.
    pub(in crate::machine) fn may_leave(&self, thread: ThreadId) -> bool {
        self.waits[thread].named.is_none_or(|(id, round)| {
            self.named[thread.block].get(id.index()).is_none_or(|barrier| barrier.round > round)
        })
    }

    /// Returns how many threads have arrived at a barrier.
    pub(in crate::machine) fn arrived(&self, block: BlockRank, id: BarrierId) -> u32 {
        let named = self.named.get(block).and_then(|named| named.get(id.index()));
        named.map_or(0, |barrier| barrier.arrived)
    }
}
