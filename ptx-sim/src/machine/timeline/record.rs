//! What the machine tells of the timeline: copies, and the phases of mbarriers.

use super::Machine;
use super::access::Access;
use super::counters::CopyKind;
use super::engine::{Flight, Shape, Way};
use super::recorder::Recorder;
use super::types::ThreadId;
use crate::tensor_map::{TensorMap, UNIT};
use crate::trace::{Copy, Row, Trace, What};

impl Machine {
    /// Keeps a timeline from now on, of at most `limit` events.
    pub fn record(&mut self, limit: usize) {
        self.recorder = Some(Box::new(Recorder::new(self.config.blocks.clone(), limit)));
    }

    /// Ends the timeline; nothing is in it if [`record`](Self::record) was not called.
    pub fn take_trace(&mut self) -> Trace {
        self.recorder.take().map_or_else(Trace::default, |recorder| recorder.finish())
    }

    pub(crate) fn recorder(&mut self) -> Option<&mut Recorder> {
        self.recorder.as_deref_mut()
    }

    /// All warps wait, and the engines go on alone.
    pub(super) fn record_skip(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            recorder.skipped();
        }
    }

    /// The next copy, of `units` units, is about to be started.
    pub(super) fn record_issue(&mut self, flight: &Flight, units: u32) {
        if self.recorder.is_none() || units == 0 {
            return;
        }
        let mut copy = self.copy_of(flight.who, flight.kind, &flight.shape, u64::from(units * UNIT));
        let (block, row) = match flight.way {
            Way::In { block, barrier } => {
                copy.mbarrier = Some(barrier);
                (block, Row::Loads)
            }
            Way::Out { block, group, reduce } => {
                copy.group = Some(group);
                (block, if reduce.is_some() { Row::Reductions } else { Row::Stores })
            }
            Way::Across { block, to, barrier, .. } => {
                (copy.shared, copy.mbarrier) = (Some(to), Some(barrier));
                (block, Row::Across)
            }
        };
        let number = self.engine.next_number();
        if let Some(recorder) = &mut self.recorder {
            let event = recorder.event(block as u32, row, flight.site, What::Copies(Box::new(copy)));
            recorder.issued(number, event);
        }
    }

    /// Counts a prefetch, which takes no effect here: an instant.
    pub(super) fn prefetched(&mut self, access: Access, kind: CopyKind, shape: &Shape, bytes: u32) {
        self.counters.count(kind, bytes.into());
        if self.recorder.is_none() {
            return;
        }
        let copy = Copy { shared: None, ..self.copy_of(access.who, kind, shape, bytes.into()) };
        if let Some(recorder) = &mut self.recorder {
            let what = What::Copies(Box::new(copy));
            let event = recorder.event(access.who.block, Row::Prefetches, access.site, what);
            recorder.keep(event);
        }
    }

    fn copy_of(&self, who: ThreadId, kind: CopyKind, shape: &Shape, bytes: u64) -> Copy {
        let (coordinates, shared) = match *shape {
            Shape::Box { map, at, tile, .. } => {
                let rank = self.maps.all().get(map as usize).map_or(0, TensorMap::rank);
                (at[..rank].to_vec(), tile)
            }
            Shape::Line { shared, .. } => (Vec::new(), shared),
        };
        Copy {
            kind,
            bytes,
            coordinates,
            shared: Some(shared),
            mbarrier: None,
            group: None,
            read: None,
            issuing_block: self.config.blocks.get(who.block as usize).copied().unwrap_or_default(),
            issuing_thread: who.thread,
        }
    }

    /// A piece of copy `number` was read from shared memory.
    pub(super) fn record_read(&mut self, number: u32) {
        if let Some(recorder) = &mut self.recorder {
            recorder.read(number);
        }
    }

    /// The last piece of copy `number` took effect.
    pub(super) fn record_landing(&mut self, number: u32) {
        if let Some(recorder) = &mut self.recorder {
            recorder.landed(number);
        }
    }

    /// Something was done to the mbarrier at `at` of block `rank`.
    pub(super) fn record_phase(&mut self, rank: usize, at: u32) {
        let Some(recorder) = &mut self.recorder else { return };
        let key = (rank as u32, at);
        match self.blocks[rank].mbarriers.look(at) {
            Some(mbarrier) => {
                let counted = mbarrier.pending != mbarrier.expected || mbarrier.tx != 0;
                recorder.phase(key, mbarrier.phase, counted, mbarrier.init_site);
            }
            None => recorder.end_phase(key, false),
        }
    }
}
