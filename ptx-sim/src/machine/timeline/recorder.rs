//! Keeps the timeline of a cluster: what of it is still going on, and the events that have ended.

use std::collections::BTreeMap;

use crate::machine::index::{BlockRank, OperationId, WarpIndex};
use crate::machine::memory::SharedPlace;
use crate::machine::types::Site;
use crate::trace::{Awaited, Event, Row, Trace, What};

/// The timeline of a cluster, while it is made.
#[derive(Debug)]
pub(crate) struct Recorder {
    /// Steps that have gone by.
    now: u64,
    /// Index in the grid of each block, by rank.
    blocks: Vec<[u32; 3]>,
    /// The most events that are kept.
    limit: usize,
    trace: Trace,
    /// Of each warp, the instructions that it has run since another did, or since it waited.
    runs: BTreeMap<Warp, Event>,
    /// Lanes that wait: their warp, and where they are in the code.
    waits: BTreeMap<(Warp, u32), Event>,
    /// Copies under way.
    copies: BTreeMap<OperationId, Event>,
    /// The current phase of each mbarrier.
    phases: BTreeMap<SharedPlace, Event>,
}

/// A warp of the cluster.
type Warp = (BlockRank, WarpIndex);

/// A warp, and where some of its lanes are in the code.
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
    pub(super) fn new(blocks: Vec<[u32; 3]>, limit: usize) -> Self {
        Self {
            now: 0,
            blocks,
            limit,
            trace: Trace::default(),
            runs: BTreeMap::new(),
            waits: BTreeMap::new(),
            copies: BTreeMap::new(),
            phases: BTreeMap::new(),
        }
    }

    /// Index in the grid of a block.
    pub(super) fn block(&self, rank: BlockRank) -> [u32; 3] {
        self.blocks.get(rank.index()).copied().unwrap_or_default()
    }

    /// An event of a block that begins now.
    pub(super) fn event(&self, block: BlockRank, row: Row, site: Site, what: What) -> Event {
        let block = self.block(block);
        Event { block, row, begin: self.now, end: self.now, site, what, unfinished: false }
    }

    pub(super) fn keep(&mut self, event: Event) {
        if self.trace.events.len() < self.limit {
            self.trace.events.push(event);
        } else {
            self.trace.left_out += 1;
        }
    }

    /// A warp ran an instruction, which did not wait. A `branch` begins nothing while other lanes
    /// of the warp wait: it is how lanes whose `try_wait` timed out come back to it.
    pub(crate) fn ran(&mut self, at: Position, branch: bool) {
        self.now += 1;
        let key = at.warp();
        if let Some(run) = self.runs.get_mut(&key)
            && run.end + 1 == self.now
            && let What::Runs(count) = &mut run.what
        {
            *count += 1;
            run.end = self.now;
            return;
        }
        self.stop_run(key);
        if branch && self.waits_of(at.warp()).next().is_some() {
            return;
        }
        let mut run = self.event(at.block, Row::Warp(at.warp.0), at.site, What::Runs(1));
        run.begin = self.now - 1;
        self.runs.insert(key, run);
    }

    /// The same for one that synchronises or issues copies: also an instant.
    pub(crate) fn signalled(&mut self, at: Position, lanes: u32) {
        let instant = self.event(at.block, Row::Warp(at.warp.0), at.site, What::Signals { lanes });
        self.keep(instant);
        self.ran(at, false);
    }

    fn waits_of(&self, warp: Warp) -> impl Iterator<Item = (Warp, u32)> + '_ {
        self.waits.range((warp, 0)..=(warp, u32::MAX)).map(|(key, _)| *key)
    }

    fn stop_run(&mut self, key: Warp) {
        if let Some(run) = self.runs.remove(&key) {
            self.keep(run);
        }
    }

    /// A warp tried an instruction at which `lanes` now wait.
    pub(crate) fn waits(&mut self, at: Position, lanes: u32, what: Awaited) {
        self.stop_run(at.warp());
        let what = What::Waits { what, lanes, timed_out: false };
        let fresh = self.event(at.block, Row::Warp(at.warp.0), at.site, what);
        let wait = self.waits.entry((at.warp(), at.pc)).or_insert(fresh);
        if let What::Waits { lanes: all, .. } = &mut wait.what {
            *all |= lanes;
        }
        self.now += 1;
    }

    /// The lanes there went on, having waited or not.
    pub(crate) fn waited(&mut self, at: Position, lanes: u32, what: Awaited, gave_up: bool) {
        self.stop_run(at.warp());
        let what = What::Waits { what, lanes, timed_out: gave_up };
        let fresh = self.event(at.block, Row::Warp(at.warp.0), at.site, what);
        let mut wait = self.waits.remove(&(at.warp(), at.pc)).unwrap_or(fresh);
        if let What::Waits { lanes: all, timed_out, .. } = &mut wait.what {
            *all |= lanes;
            *timed_out = gave_up;
        }
        self.now += 1;
        wait.end = self.now;
        self.keep(wait);
    }

    /// Ends the waits of a warp's lanes that another instruction let go on: those where nobody is
    /// any more.
    pub(crate) fn released(&mut self, block: BlockRank, warp: WarpIndex, is_at: impl Fn(u32) -> bool) {
        let gone: Vec<_> = self.waits_of((block, warp)).filter(|(_, pc)| !is_at(*pc)).collect();
        for key in gone {
            if let Some(mut wait) = self.waits.remove(&key) {
                wait.end = self.now;
                self.keep(wait);
            }
        }
    }

    /// All warps wait, and the engines go on alone.
    pub(super) fn skipped(&mut self) {
        self.now += 1;
    }

    /// Copy `number` begins.
    pub(super) fn issued(&mut self, number: OperationId, event: Event) {
        self.copies.insert(number, event);
    }

    /// A piece of copy `number` was read from shared memory.
    pub(super) fn read(&mut self, number: OperationId) {
        if let Some(Event { what: What::Copies(copy), .. }) = self.copies.get_mut(&number) {
            copy.read = Some(self.now);
        }
    }

    /// The last piece of copy `number` took effect.
    pub(super) fn landed(&mut self, number: OperationId) {
        if let Some(mut event) = self.copies.remove(&number) {
            event.end = self.now;
            self.keep(event);
        }
    }

    /// The mbarrier at a place is in this phase, in which something has `counted` or not;
    /// initialised at `site`.
    pub(super) fn phase(&mut self, place: SharedPlace, number: u32, counted: bool, site: Site) {
        if self.phases.get(&place).is_some_and(|known| known.what != What::Phase(number)) {
            self.end_phase(place, true);
        }
        let fresh = self.event(place.rank, Row::Mbarrier(place.at), site, What::Phase(number));
        self.phases.entry(place).or_insert(fresh).unfinished = counted;
    }

    /// An mbarrier's phase ends: because it is complete, or because the mbarrier is no more. A
    /// phase that nothing has counted in is not shown then, since each mbarrier ends with one.
    pub(super) fn end_phase(&mut self, place: SharedPlace, complete: bool) {
        let Some(mut phase) = self.phases.remove(&place) else { return };
        if complete || phase.unfinished {
            (phase.end, phase.unfinished) = (self.now, !complete);
            self.keep(phase);
        }
    }

    /// All that has not ended, up to now, and the trace.
    pub(super) fn finish(mut self) -> Trace {
        for (_, run) in std::mem::take(&mut self.runs) {
            self.keep(run);
        }
        let waits = std::mem::take(&mut self.waits).into_values();
        let copies = std::mem::take(&mut self.copies).into_values();
        for mut event in waits.chain(copies) {
            (event.end, event.unfinished) = (self.now, true);
            self.keep(event);
        }
        while let Some((&place, _)) = self.phases.first_key_value() {
            self.end_phase(place, false);
        }
        self.trace
    }
}
