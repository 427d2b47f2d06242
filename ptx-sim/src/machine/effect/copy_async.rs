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
    AsyncOp, Completion, LaneCopy, OpKind, PieceSplit, SharedTarget, Slowness, Source, Target, Units,
};
use crate::machine::index::ThreadId;
use crate::machine::memory::AccessLayout;
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
        let issuer = Actor { thread: first.thread, site };
        let op = AsyncOp {
            issuer,
            kind: OpKind::CopyAsync,
            reads: Source::Global,
            writes: Target::Shared(SharedTarget::of(issuer.thread.block)),
            units: Units::Lanes(lanes),
            combination: None,
            completes: Completion::Batches,
            issue: Issue::default(),
        };
        self.start(op, PieceSplit::At { slowness, ends });
        issued
    }

    fn lane_copy(&mut self, copy: &CopyAsync, site: Site) -> Result<LaneCopy, Stop> {
        let CopyAsync { thread, to, from, bytes, read } = *copy;
        let issuer = Actor { thread, site };
        let action = issuer.does("issues the copy");
        let location = self.locate_shared(action, Pointer::shared(to), AccessLayout::natural(bytes))?;
        debug_assert_eq!(location.rank, thread.block, "a copy goes to the own block");
        if read > bytes {
            let message = format!(
                "a `cp.async` of {bytes} bytes reads {read}; it can read at most as many as it \
                    writes"
            );
            return self.refuse(action, FindingKind::IllegalCopy, message);
        }
        let mut before = [0; MOST];
        if read > 0 {
            self.locate(action, Pointer::global(from), AccessLayout::natural(bytes))?;
            self.load_global(action, from, &mut before[..read as usize])?;
        }
        let batch = self.engines.start_copy(issuer, &mut self.order);
        Ok(LaneCopy { thread, shared: location.at, bytes, global: from, read, before, batch })
    }

    /// `cp.async.commit_group`: closes a group of the copies since the last commit.
    pub fn copy_async_commit(&mut self, thread: ThreadId) {
        self.engines.commit_copies(thread);
    }

    /// `cp.async.wait_group`: waits until at most `pending` groups are incomplete. `None` is
    /// `cp.async.wait_all`, which waits for all copies, committed or not.
    pub fn copy_async_wait(&mut self, thread: ThreadId, pending: Option<u32>) -> Poll {
        if self.engines.wait_copies(thread, pending, &mut self.order) { Poll::Ready } else { Poll::Blocked }
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
        let location = self.locate_mbarrier(action, pointer)?;
        let Some(mbarrier) = self.barriers.mbarrier_mut(location) else {
            return Err(self.diagnostics.bug(action, "an mbarrier disappeared during an instruction"));
        };
        let counted = if no_increment { Ok(()) } else { mbarrier.change(MbarrierCount::expect_arrival) };
        mbarrier.expect_pieces(1, actor);
        self.accepted(action, location, counted)?;
        let issue = self.issue_of(actor.thread);
        let arrivals = self.engines.arrive_after_copies(actor, location, issue, &mut self.order);
        self.schedule_arrivals(arrivals);
        Ok(())
    }
}
