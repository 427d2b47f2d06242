//! `cp.async` without `.bulk`: small copies by individual threads from global to shared memory, in
//! the generic proxy.
//!
//! The write of a copy is represented by a step of its own, numbered by the thread's batch. Not
//! even the issuing thread knows of this step before a wait: according to the PTX ISA, "cp.async",
//! only groups and mbarriers track completion, and copies are mutually unordered. The copies of one
//! instruction of a warp form one operation.

use tma_model::sync::{Issue, MbarrierCount};

use crate::machine::Machine;
use crate::machine::engine::{
    AsyncOp, Completion, Cut, LaneCopy, OpKind, SharedTarget, Slowness, Source, Target, Units,
};
use crate::machine::index::ThreadId;
use crate::machine::memory::Extent;
use crate::machine::types::{Actor, CopyAsync, Pointer, Poll, Site};
use crate::report::{FindingKind, Stop};

/// The most bytes of one copy.
const MOST: usize = 16;
/// The number of pieces in which the copies of a warp land, at most.
const LANDINGS: u64 = 3;

impl Machine {
    /// `cp.async` of those threads of a warp that execute it.
    ///
    /// # Errors
    ///
    /// If an access is out of bounds or misaligned, or more bytes are read than written.
    pub fn copy_async(&mut self, copies: &[CopyAsync], site: Site) -> Result<(), Stop> {
        let slowness = Slowness::any(&mut self.random);
        let mut landings = [const { Vec::new() }; LANDINGS as usize];
        let mut issued = Ok(());
        for copy in copies {
            match self.lane_copy(copy, site) {
                Ok(lane) => landings[self.random.below(LANDINGS) as usize].push(lane),
                Err(stop) => {
                    issued = Err(stop);
                    break;
                }
            }
        }
        let mut lanes = Vec::new();
        let mut ends = Vec::new();
        for landing in landings.into_iter().filter(|landing| !landing.is_empty()) {
            lanes.extend(landing);
            ends.push(lanes.len() as u32);
        }
        let Some(first) = lanes.first() else { return issued };
        let issuer = Actor { who: first.who, site };
        let op = AsyncOp {
            issuer,
            kind: OpKind::CopyAsync,
            reads: Source::Global,
            writes: Target::Shared(SharedTarget::of(issuer.who.block)),
            units: Units::Lanes(lanes),
            combination: None,
            completes: Completion::Batches,
            issue: Issue::default(),
        };
        self.start(op, Cut::At { slowness, ends });
        issued
    }

    fn lane_copy(&mut self, copy: &CopyAsync, site: Site) -> Result<LaneCopy, Stop> {
        let CopyAsync { who, to, from, bytes, read } = *copy;
        let issuer = Actor { who, site };
        let action = issuer.does("issues the copy");
        let place = self.shared_place(action, Pointer::shared(to), Extent::natural(bytes))?;
        debug_assert_eq!(place.rank, who.block, "a copy goes to the own block");
        if read > bytes {
            let message =
                format!("`cp.async` of {bytes} bytes is to read {read}; the source has at most as many");
            return self.refuse(action, FindingKind::IllegalCopy, message);
        }
        let mut before = [0; MOST];
        if read > 0 {
            self.place(action, Pointer::global(from), Extent::natural(bytes))?;
            self.load_global(action, from, &mut before[..read as usize])?;
        }
        let batch = self.engines.start_copy(issuer, &mut self.order);
        Ok(LaneCopy { who, shared: place.at, bytes, global: from, read, before, batch })
    }

    /// `cp.async.commit_group`: closes a group of the copies since the last commit.
    pub fn copy_async_commit(&mut self, who: ThreadId) {
        self.engines.commit_copies(who);
    }

    /// `cp.async.wait_group`: waits until at most `pending` groups are incomplete. `None` is
    /// `cp.async.wait_all`, which waits for all copies, committed or not.
    pub fn copy_async_wait(&mut self, who: ThreadId, pending: Option<u32>) -> Poll {
        if self.engines.wait_copies(who, pending, &mut self.order) { Poll::Ready } else { Poll::Blocked }
    }

    /// `cp.async.mbarrier.arrive`: arrives once all copies that the thread has issued are complete.
    /// Unless `no_increment` is set, the phase expects this arrival in addition to those it already
    /// expects.
    ///
    /// # Errors
    ///
    /// If there is no mbarrier, or its count would overflow.
    pub fn copy_async_arrive(
        &mut self,
        actor: Actor,
        pointer: Pointer,
        no_increment: bool,
    ) -> Result<(), Stop> {
        let action = actor.does("has its copies arrive");
        let place = self.mbarrier_place(action, pointer)?;
        let Some(mbarrier) = self.barriers.mbarrier_mut(place) else {
            return Err(self.diagnostics.bug(action, "an mbarrier that was found is not there any more"));
        };
        let counted = if no_increment { Ok(()) } else { mbarrier.change(MbarrierCount::expect_arrival) };
        mbarrier.expect_pieces(1, actor);
        self.accepted(action, place, counted)?;
        let issue = self.issue_of(actor.who);
        let arrivals = self.engines.arrive_after_copies(actor, place, issue, &mut self.order);
        self.arrive_later(arrivals);
        Ok(())
    }
}
