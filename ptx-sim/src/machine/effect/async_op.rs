//! The start of asynchronous operations. All of them start here.

use tma_model::limits::WARP_THREADS;
use tma_model::sync::AccessKind;

use crate::machine::Machine;
use crate::machine::engine::counters::CopyKind;
use crate::machine::engine::{AsyncOp, Clash, Completion, Cut, Source, Unit, Units};
use crate::machine::types::Actor;

impl Machine {
    /// Starts an operation. Checks its accesses against earlier ones and records them, tells the
    /// mbarrier or group that tracks the operation, and schedules its pieces.
    pub(super) fn start(&mut self, op: AsyncOp, cut: Cut) {
        debug_assert!(op.parts().count() <= WARP_THREADS as usize, "a warp issues it");
        let number = self.engines.next_number();
        for clash in op.record_accesses(number, &mut self.memory, &self.order) {
            if !self.copies_the_same(&op, &clash) {
                self.clash(clash);
            }
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
            // Already counted with the batch of each lane.
            Completion::Batches => {}
        }
    }

    /// Counts a prefetch, which has no effect here.
    pub(super) fn prefetch(&mut self, kind: CopyKind, units: &Units, bytes: u32, issuer: Actor) {
        self.counters.count(kind, bytes.into());
        self.timeline.prefetched(kind, units, bytes, issuer);
    }

    /// Returns whether a store repeats the bytes of another, unordered store. The result is then
    /// the same in either order.
    #[cold]
    fn copies_the_same(&self, op: &AsyncOp, clash: &Clash) -> bool {
        let (Clash::Global { manner, conflict, .. }, Source::Shared { rank, .. }) = (clash, op.reads) else {
            return false;
        };
        let both_write = manner.kind == AccessKind::Write && conflict.other.manner.kind == AccessKind::Write;
        let shared = &self.memory.shared[rank];
        let is_there = |unit: Unit| {
            let Some((start, _)) = unit.stretch() else { return true };
            let (from, to) = unit.inside;
            let mut there = vec![0; (to - from) as usize];
            let read = self.memory.global.read(start, &mut there);
            read.is_ok() && shared.bytes(unit.shared + from, there.len()) == there
        };
        both_write && conflict.rule.is_race() && op.units.some(0..op.units.len()).all(is_there)
    }

    #[cold]
    fn clash(&mut self, clash: Clash) {
        match clash {
            Clash::Shared { action, act, rank, conflict } => self.conflict(action, act, rank, conflict),
            Clash::NotStored { action, address, stretch } => self.not_stored(action, address, stretch),
            Clash::Global { action, manner, conflict } => self.global_conflict(action, manner, conflict),
        }
    }
}
