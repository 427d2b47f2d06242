//! The machine's part of the timeline: copies, and the phases of mbarriers.

mod recorder;

pub(crate) use recorder::{Position, Recorder};

use super::barrier::Mbarrier;
use super::engine::counters::CopyKind;
use super::engine::{AsyncOp, Completion, OpKind, Source, Target, Units};
use super::index::OperationId;
use super::memory::SharedLocation;
use super::types::Actor;
use crate::trace::{CopyEvent, EventKind, Row, Trace};

/// The timeline of a cluster, if one was asked for.
#[derive(Debug, Default)]
pub(super) struct Timeline(Option<Box<Recorder>>);

impl Timeline {
    /// Starts a timeline of at most `limit` events of these blocks.
    pub(super) fn begin(&mut self, rank: Option<u32>, blocks: Vec<[u32; 3]>, limit: usize) {
        self.0 = Some(Box::new(Recorder::new(rank, blocks, limit)));
    }

    /// Ends the timeline and returns it; empty if none was started.
    pub(super) fn take(&mut self) -> Trace {
        self.0.take().map_or_else(Trace::default, |recorder| recorder.finish())
    }

    pub(super) fn recorder(&mut self) -> Option<&mut Recorder> {
        self.0.as_deref_mut()
    }

    /// Records a round in which all warps wait and only the engines progress.
    pub(super) fn skipped(&mut self) {
        if let Some(recorder) = self.recorder() {
            recorder.skipped();
        }
    }

    /// Records that an operation is about to be started.
    pub(super) fn issued(&mut self, number: OperationId, op: &AsyncOp) {
        let Some(recorder) = self.recorder() else { return };
        let OpKind::Bulk(kind) = op.kind else { return };
        let bytes = op.units.all_bytes();
        if bytes == 0 {
            return;
        }
        let mut copy = copy_of(kind, &op.units, bytes, op.issuer, recorder);
        let (block, row) = match (op.reads, op.writes) {
            (Source::Shared { .. }, Target::Shared(target)) => {
                copy.shared = copy.shared.map(|shared| shared.wrapping_add(target.moved));
                (target.rank, Row::BetweenBlocks)
            }
            (Source::Global | Source::Value(_), Target::Shared(target)) => (target.rank, Row::Loads),
            (_, Target::Global { .. }) if op.combination.is_some() => {
                (op.issuer.thread.block, Row::Reductions)
            }
            (_, Target::Global { .. }) => (op.issuer.thread.block, Row::Stores),
        };
        match op.completes {
            Completion::Mbarrier(location) => copy.mbarrier = Some(location.at),
            Completion::BulkGroup(group) => copy.group = Some(group.count()),
            Completion::Batches => {}
        }
        let event = recorder.event(block, row, op.issuer.site, EventKind::Copies(Box::new(copy)));
        recorder.issued(number, event);
    }

    /// Records a prefetch as an instant, since it has no effect here.
    pub(super) fn prefetched(&mut self, kind: CopyKind, units: &Units, bytes: u32, issuer: Actor) {
        let Some(recorder) = self.recorder() else { return };
        let copy = CopyEvent { shared: None, ..copy_of(kind, units, bytes, issuer, recorder) };
        let kind = EventKind::Copies(Box::new(copy));
        let event = recorder.event(issuer.thread.block, Row::Prefetches, issuer.site, kind);
        recorder.keep(event);
    }

    /// Records that a piece of an operation was read from shared memory.
    pub(super) fn read(&mut self, number: OperationId) {
        if let Some(recorder) = self.recorder() {
            recorder.read(number);
        }
    }

    /// Records that the last piece of an operation took effect.
    pub(super) fn landed(&mut self, number: OperationId) {
        if let Some(recorder) = self.recorder() {
            recorder.landed(number);
        }
    }

    /// Records the phase of the mbarrier at a location after an operation on it. `None` if there is
    /// no longer an mbarrier.
    pub(super) fn phase(&mut self, location: SharedLocation, mbarrier: Option<&Mbarrier>) {
        let Some(recorder) = self.recorder() else { return };
        match mbarrier {
            Some(mbarrier) => {
                let count = mbarrier.count();
                recorder.phase(location, count.phase(), count.has_counted(), mbarrier.init.site);
            }
            None => recorder.end_phase(location, false),
        }
    }
}

fn copy_of(kind: CopyKind, units: &Units, bytes: u32, issuer: Actor, recorder: &Recorder) -> CopyEvent {
    let (coordinates, shared) = match units {
        Units::Box(tensor) => (tensor.at[..tensor.map.rank()].to_vec(), Some(tensor.tile)),
        Units::Line { shared, .. } => (Vec::new(), Some(*shared)),
        Units::Lanes(_) => (Vec::new(), None),
    };
    CopyEvent {
        kind,
        bytes: bytes.into(),
        coordinates,
        shared,
        mbarrier: None,
        group: None,
        read: None,
        issuing_block: recorder.block(issuer.thread.block),
        issuing_thread: issuer.thread.index.0,
    }
}
