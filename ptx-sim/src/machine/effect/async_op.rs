//! The start of asynchronous operations. All of them start here.

use tma_model::limits::WARP_THREADS;
use tma_model::sync::AccessKind;

use crate::machine::Machine;
use crate::machine::engine::counters::CopyKind;
use crate::machine::engine::{AsyncOp, Completion, PieceSplit, Source, StartConflict, Unit, Units};
use crate::machine::types::Actor;

impl Machine {
    /// Starts an operation. Checks its accesses against earlier ones and records them, tells the
    /// mbarrier or group that tracks the operation, and schedules its pieces.
    pub(super) fn start(&mut self, op: AsyncOp, split: PieceSplit) {
        debug_assert!(op.thread_parts().count() <= WARP_THREADS as usize, "a warp issues it");
        let number = self.engines.next_number();
        for start_conflict in op.record_accesses(number, &mut self.memory, &self.order) {
            if !self.repeats_store(&op, &start_conflict) {
                self.report_start_conflict(start_conflict);
            }
        }
        self.timeline.issued(number, &op);
        let (issuer, completes) = (op.issuer, op.completes);
        let pieces = self.engines.start(op, split, &mut self.random);
        match completes {
            Completion::Mbarrier(location) => {
                if let Some(mbarrier) = self.barriers.mbarrier_mut(location) {
                    mbarrier.expect_pieces(pieces, issuer);
                }
            }
            Completion::BulkGroup(_) => self.engines.start_in_group(issuer.thread, pieces),
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
    fn repeats_store(&self, op: &AsyncOp, start_conflict: &StartConflict) -> bool {
        let (StartConflict::Global { attributes, conflict, .. }, Source::Shared { rank, .. }) =
            (start_conflict, op.reads)
        else {
            return false;
        };
        let both_write =
            attributes.kind == AccessKind::Write && conflict.other.attributes.kind == AccessKind::Write;
        let shared = &self.memory.shared[rank];
        let is_there = |unit: Unit| {
            let Some((start, _)) = unit.range() else { return true };
            let (from, to) = unit.inside;
            let mut there = vec![0; (to - from) as usize];
            let read = self.memory.global.read(start, &mut there);
            read.is_ok() && shared.bytes(unit.shared + from, there.len()) == there
        };
        both_write && conflict.rule.is_race() && op.units.some(0..op.units.len()).all(is_there)
    }

    #[cold]
    fn report_start_conflict(&mut self, start_conflict: StartConflict) {
        match start_conflict {
            StartConflict::Shared { action, later_access, rank, conflict } => {
                self.conflict(action, later_access, rank, conflict);
            }
            StartConflict::NotStored { action, address, store } => self.not_stored(action, address, store),
            StartConflict::Global { action, attributes, conflict } => {
                self.global_conflict(action, attributes, conflict);
            }
        }
    }
}
