//! Records the timeline of a cluster: the events that have ended, and those that are still going
//! on.

use std::collections::BTreeMap;

use crate::machine::index::{BlockRank, OperationId, WarpIndex};
use crate::machine::memory::SharedLocation;
use crate::machine::types::Site;
use crate::trace::{Awaited, Event, EventKind, Row, Trace};
use tma_model::span::SpanEdge;

/// The timeline of a cluster while it is being recorded.
#[derive(Debug)]
pub(crate) struct Recorder {
    /// The number of steps so far.
    now: u64,
    /// The rank of the device, if a team runs the kernel.
    rank: Option<u32>,
    /// Index in the grid of each block, by rank in the cluster.
    blocks: Vec<[u32; 3]>,
    /// The most events that are kept.
    limit: usize,
    trace: Trace,
    /// For each warp, its current run of instructions, which another warp's instruction or a wait
    /// ends.
    runs: BTreeMap<Warp, Event>,
    /// Lanes that wait, by warp and program counter.
    waits: BTreeMap<(Warp, u32), Event>,
    /// The spans of each warp that have begun, innermost last.
    spans: BTreeMap<Warp, Vec<Event>>,
    /// Copies in flight.
    copies: BTreeMap<OperationId, Event>,
    /// The current phase of each mbarrier.
    phases: BTreeMap<SharedLocation, Event>,
}

/// A warp of the cluster.
type Warp = (BlockRank, WarpIndex);

/// The position of some lanes of a warp in the code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Position {
    pub(crate) block: BlockRank,
    pub(crate) warp: WarpIndex,
    pub(crate) pc: u32,
    pub(crate) site: Site,
}

impl Position {
    const fn warp(self) -> Warp {
        (self.block, self.warp)
    }
}

impl Recorder {
    pub(super) fn new(rank: Option<u32>, blocks: Vec<[u32; 3]>, limit: usize) -> Self {
        Self {
            now: 0,
            rank,
            blocks,
            limit,
            trace: Trace::default(),
            runs: BTreeMap::new(),
            waits: BTreeMap::new(),
            spans: BTreeMap::new(),
            copies: BTreeMap::new(),
            phases: BTreeMap::new(),
        }
    }

    /// Returns the index in the grid of a block.
    pub(super) fn block(&self, rank: BlockRank) -> [u32; 3] {
        self.blocks.get(rank.index()).copied().unwrap_or_default()
    }

    /// Returns an event of a block that begins now.
    pub(super) fn event(&self, block: BlockRank, row: Row, site: Site, kind: EventKind) -> Event {
        let block = self.block(block);
        let rank = self.rank;
        Event { rank, block, row, begin: self.now, end: self.now, site, kind, unfinished: false }
    }

    pub(super) fn keep(&mut self, event: Event) {
        if self.trace.events.len() < self.limit {
            self.trace.events.push(event);
        } else {
            self.trace.left_out += 1;
        }
    }

    /// Records that a warp ran an instruction that did not wait. A `branch` begins no run while
    /// other lanes of the warp wait: it is how lanes whose `try_wait` timed out return to it.
    pub(crate) fn ran(&mut self, at: Position, branch: bool) {
        self.end_wait((at.warp(), at.pc));
        self.now += 1;
        let key = at.warp();
        if let Some(run) = self.runs.get_mut(&key)
            && run.end + 1 == self.now
            && let EventKind::Runs(count) = &mut run.kind
        {
            *count += 1;
            run.end = self.now;
            return;
        }
        self.stop_run(key);
        if branch && self.waits_of(at.warp()).next().is_some() {
            return;
        }
        let mut run = self.event(at.block, Row::Warp(at.warp.0), at.site, EventKind::Runs(1));
        run.begin = self.now - 1;
        self.runs.insert(key, run);
    }

    /// Records an instruction that synchronises or issues copies, which is also an instant.
    pub(crate) fn signalled(&mut self, at: Position, lanes: u32) {
        let instant = self.event(at.block, Row::Warp(at.warp.0), at.site, EventKind::Signals { lanes });
        self.keep(instant);
        self.ran(at, false);
    }

    /// Records that a warp is at an end of the span `name`. If its lanes have diverged, the first of
    /// them ends the span.
    pub(crate) fn marked(&mut self, at: Position, edge: SpanEdge, name: &str) {
        let kind = EventKind::Span(name.into());
        match edge {
            SpanEdge::Begin => {
                let event = self.event(at.block, Row::Spans(at.warp.0), at.site, kind);
                self.spans.entry(at.warp()).or_default().push(event);
            }
            SpanEdge::End => {
                let open = self.spans.entry(at.warp()).or_default();
                let Some(index) = open.iter().rposition(|event| event.kind == kind) else { return };
                let event = open.remove(index);
                self.keep(Event { end: self.now, ..event });
            }
        }
    }

    fn waits_of(&self, warp: Warp) -> impl Iterator<Item = (Warp, u32)> + '_ {
        self.waits.range((warp, 0)..=(warp, u32::MAX)).map(|(key, _)| *key)
    }

    fn stop_run(&mut self, key: Warp) {
        if let Some(run) = self.runs.remove(&key) {
            self.keep(run);
        }
    }

    /// Records that a warp tried an instruction at which `lanes` now wait.
    pub(crate) fn waits(&mut self, at: Position, lanes: u32, awaited: Awaited) {
        self.stop_run(at.warp());
        let kind = EventKind::Waits { awaited, lanes, timed_out: false };
        let fresh = self.event(at.block, Row::Warp(at.warp.0), at.site, kind);
        let wait = self.waits.entry((at.warp(), at.pc)).or_insert(fresh);
        if let EventKind::Waits { lanes: all, .. } = &mut wait.kind {
            *all |= lanes;
        }
        self.now += 1;
    }

    /// Records that the lanes went on from an instruction that may wait, having waited or not.
    pub(crate) fn waited(&mut self, at: Position, lanes: u32, awaited: Awaited, gave_up: bool) {
        self.stop_run(at.warp());
        let kind = EventKind::Waits { awaited, lanes, timed_out: gave_up };
        let fresh = self.event(at.block, Row::Warp(at.warp.0), at.site, kind);
        let mut wait = self.waits.remove(&(at.warp(), at.pc)).unwrap_or(fresh);
        if let EventKind::Waits { lanes: all, timed_out, .. } = &mut wait.kind {
            *all |= lanes;
            *timed_out = gave_up;
        }
        self.now += 1;
        wait.end = self.now;
        self.keep(wait);
    }

    /// Ends the waits of lanes that another instruction has released: the waits at program counters
    /// where no lane remains.
    pub(crate) fn released(&mut self, block: BlockRank, warp: WarpIndex, is_at: impl Fn(u32) -> bool) {
        let exited: Vec<_> = self.waits_of((block, warp)).filter(|(_, pc)| !is_at(*pc)).collect();
        exited.into_iter().for_each(|key| self.end_wait(key));
    }

    /// Ends the wait of lanes at an instruction, such as one that the whole warp runs together.
    fn end_wait(&mut self, key: (Warp, u32)) {
        if let Some(mut wait) = self.waits.remove(&key) {
            wait.end = self.now;
            self.keep(wait);
        }
    }

    /// Records a round in which all warps wait and only the engines progress.
    pub(super) fn skipped(&mut self) {
        self.now += 1;
    }

    /// Records that copy `number` begins.
    pub(super) fn issued(&mut self, number: OperationId, event: Event) {
        self.copies.insert(number, event);
    }

    /// Records that a piece of copy `number` was read from shared memory.
    pub(super) fn read(&mut self, number: OperationId) {
        if let Some(Event { kind: EventKind::Copies(copy), .. }) = self.copies.get_mut(&number) {
            copy.read = Some(self.now);
        }
    }

    /// Records that the last piece of copy `number` took effect.
    pub(super) fn landed(&mut self, number: OperationId) {
        if let Some(mut event) = self.copies.remove(&number) {
            event.end = self.now;
            self.keep(event);
        }
    }

    /// Records that the mbarrier at a location is in this phase. `counted` says whether the phase
    /// has counted anything yet. The mbarrier was initialised at `site`.
    pub(super) fn phase(&mut self, location: SharedLocation, number: u32, counted: bool, site: Site) {
        if self.phases.get(&location).is_some_and(|known| known.kind != EventKind::Phase(number)) {
            self.end_phase(location, true);
        }
        let fresh = self.event(location.rank, Row::Mbarrier(location.at), site, EventKind::Phase(number));
        self.phases.entry(location).or_insert(fresh).unfinished = counted;
    }

    /// Ends the phase of an mbarrier, because it is complete or because the mbarrier no longer
    /// exists. In the second case a phase that has counted nothing is left out, since every
    /// mbarrier ends with one.
    pub(super) fn end_phase(&mut self, location: SharedLocation, complete: bool) {
        let Some(mut phase) = self.phases.remove(&location) else { return };
        if complete || phase.unfinished {
            (phase.end, phase.unfinished) = (self.now, !complete);
            self.keep(phase);
        }
    }

    /// Ends everything that is still going on, and returns the trace.
    pub(super) fn finish(mut self) -> Trace {
        for (_, run) in std::mem::take(&mut self.runs) {
            self.keep(run);
        }
        let waits = std::mem::take(&mut self.waits).into_values();
        let copies = std::mem::take(&mut self.copies).into_values();
        let spans = std::mem::take(&mut self.spans).into_values().flatten();
        for mut event in waits.chain(copies).chain(spans) {
            (event.end, event.unfinished) = (self.now, true);
            self.keep(event);
        }
        while let Some((&location, _)) = self.phases.first_key_value() {
            self.end_phase(location, false);
        }
        self.trace
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lanes that have diverged wait at an instruction that the whole warp runs together.
    #[test]
    fn waits_for_lanes_end_when_the_warp_goes_on() {
        let mut recorder = Recorder::new(None, vec![[0; 3]], 10);
        let at = Position { block: BlockRank(0), warp: WarpIndex(0), pc: 7, site: Site::default() };
        recorder.waits(at, 0xffff_fffe, Awaited::Lanes(u32::MAX));
        recorder.signalled(at, u32::MAX);
        let trace = recorder.finish();
        let wait = trace.events.iter().find(|event| matches!(event.kind, EventKind::Waits { .. }));
        assert!(wait.is_some_and(|wait| !wait.unfinished && wait.end > wait.begin), "{:?}", trace.events);
        let run = trace.events.iter().find(|event| matches!(event.kind, EventKind::Runs(_)));
        assert_eq!(run.map(|run| run.begin), wait.map(|wait| wait.end));
    }
}
