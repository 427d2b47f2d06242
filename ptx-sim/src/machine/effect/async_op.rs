//! The start of an asynchronous operation: the one place where one begins.

use tma_model::limits::WARP_THREADS;

use crate::machine::Machine;
use crate::machine::engine::counters::CopyKind;
use crate::machine::engine::{AsyncOp, Clash, Completion, Cut, Units};
use crate::machine::memory::Write;
use crate::machine::types::{Action, Actor};
use crate::report::{Finding, FindingKind};

const FENCE: &str = "[[`fence_proxy_async_global()`||`fence.proxy.async.global`]] between the write and the copy: after the \
                     writes, before the barrier that orders them";

impl Machine {
    /// Starts an operation: its accesses are checked against earlier ones and remembered, whoever
    /// waits for it knows that it is under way, and its pieces take effect when their time comes.
    pub(super) fn start(&mut self, op: AsyncOp, cut: Cut) {
        debug_assert!(op.parts().count() <= WARP_THREADS as usize, "a warp issues it");
        let number = self.engines.next_number();
        for clash in op.record_accesses(number, &mut self.memory, &self.order) {
            self.clash(clash);
        }
        self.timeline.issued(number, &op);
        let (issuer, completes) = (op.issuer, op.completes);
        let pieces = self.engines.start(op, cut, &mut self.random);
        match completes {
            Completion::Mbarrier(place) => {
                if let Some(mbarrier) = self.barriers.mbarrier_mut(place) {
                    mbarrier.expect_pieces(pieces, issuer);
                }
            }
            Completion::BulkGroup(_) => self.engines.start_in_group(issuer.who, pieces),
            // Each lane's was counted with its batch.
            Completion::Batches => {}
        }
    }

    /// Counts a prefetch, which takes no effect here.
    pub(super) fn prefetch(&mut self, kind: CopyKind, units: &Units, bytes: u32, issuer: Actor) {
        self.counters.count(kind, bytes.into());
        self.timeline.prefetched(kind, units, bytes, issuer);
    }

    #[cold]
    fn clash(&mut self, clash: Clash) {
        match clash {
            Clash::Shared { action, act, rank, conflict } => self.conflict(action, act, rank, conflict),
            Clash::NotStored { action, address, stretch } => self.not_stored(action, address, stretch),
            Clash::NotFenced { action, address, write } => self.not_fenced(action, address, write),
        }
    }

    fn not_fenced(&mut self, action: Action, address: u64, write: Write) {
        let message = format!(
            "global memory at {address:#x} was written by a thread, and a copy that reads it need not see that: no proxy fence \
             of global memory lies between"
        );
        let log = &mut self.diagnostics;
        let mut finding =
            Finding::new(FindingKind::MissingProxyFence, message).with(log.party(action)).help(FENCE);
        if let Some(writer) = log.actor(write.step, write.line) {
            finding = finding.with(log.party(writer.does("wrote")));
        }
        log.report(finding);
    }
}
