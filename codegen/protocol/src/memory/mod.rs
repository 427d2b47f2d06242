//! The shared memory of a block: the accesses to it, and pairs of them that nothing orders.
//!
//! An access is recorded until a later one that is ordered after it overwrites all of its bytes, or
//! repeats it. The bytes of two accesses are compared only if nothing orders the accesses, which
//! never happens in a correct kernel.

mod atomics;
pub(super) mod global;
pub(super) mod region;
pub(super) mod tiles;

use std::ops::Range;

use tma_front::ir::StmtId;
use tma_model::sync::{Access, AccessKind, Epoch, Hazard, Memory as Fenced, Requirement, View};

use self::region::{Overlap, Region};

/// A group that has executed a statement, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Site {
    /// The group of threads.
    pub(super) agent: usize,
    pub(super) stmt: StmtId,
    /// The innermost loop around the statement, and its iteration. Iterations count from 1; 0 means
    /// that the first one has not begun.
    pub(super) iteration: Option<(StmtId, u32)>,
}

/// An access that was made or is in flight.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) access: Access,
    pub(super) step: Epoch,
    pub(super) region: Region,
    /// The smallest range that contains the region.
    hull: Range<u32>,
    pub(super) site: Site,
    /// The number of threads in the group.
    pub(super) threads: usize,
}

impl Record {
    /// Creates the record of an access by a group of `threads` threads.
    pub(super) fn new(access: Access, step: Epoch, region: Region, site: Site, threads: usize) -> Self {
        let hull = region.hull();
        Self { access, step, region, hull, site, threads }
    }
}

/// Two conflicting accesses.
#[derive(Clone, Debug)]
pub(super) struct Clash {
    pub(super) earlier: Record,
    pub(super) hazard: Hazard,
    /// Whether they certainly touch the same bytes.
    pub(super) certain: bool,
}

/// The recorded accesses to the shared memory of a block.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    pub(super) records: Vec<Record>,
}

impl Memory {
    /// Records an access by the group of `view`. Returns its conflict with an earlier one, if any:
    /// a certain conflict rather than an uncertain one, and then the gravest.
    pub(super) fn access(&mut self, view: &View, new: Record) -> Option<Clash> {
        let hull = new.hull.clone();
        let mut clash: Option<Clash> = None;
        let mut covered = vec![];
        for (index, old) in self.records.iter().enumerate() {
            if old.hull.start >= hull.end || hull.start >= old.hull.end {
                continue;
            }
            let found = between(view, old, &new);
            match found {
                None => {
                    // Two strong accesses need no order, so the later one replaces nothing.
                    let are_ordered = !(old.access.strong && new.access.strong);
                    let replaces =
                        new.access.kind == AccessKind::Write && are_ordered && new.region.covers(&old.hull)
                            || is_successor(old, &new);
                    if replaces {
                        covered.push(index);
                    }
                }
                Some((hazard, certain)) => {
                    let is_better = clash
                        .as_ref()
                        .is_none_or(|known| (!known.certain, known.hazard) > (!certain, hazard));
                    if is_better {
                        clash = Some(Clash { earlier: old.clone(), hazard, certain });
                    }
                }
            }
        }
        for index in covered.into_iter().rev() {
            self.records.swap_remove(index);
        }
        // The accesses of a loop over elements are one access to all of them.
        if let Some(last) = self
            .records
            .iter_mut()
            .find(|old| old.site.stmt == new.site.stmt && old.step == new.step && old.access == new.access)
        {
            if last.region == new.region {
                return clash;
            }
            let old = std::mem::replace(&mut last.region, Region::Some(0..0));
            let joined = old.joined(&new.region);
            let is_joined = joined.is_ok();
            last.region = joined.unwrap_or_else(|separate| separate);
            if is_joined {
                last.hull = last.hull.start.min(hull.start)..last.hull.end.max(hull.end);
                return clash;
            }
        }
        self.records.push(new);
        clash
    }

    /// Whether all bytes of an access have been written. If its bytes are not known, all that it
    /// may touch must have been.
    pub(super) fn is_written(&self, read: &Record) -> bool {
        let hull = &read.hull;
        // A write to unknown bytes does not show that a byte was written.
        let is_write = |record: &&Record| {
            let other = &record.hull;
            record.access.kind != AccessKind::Read
                && !matches!(record.region, Region::Some(_))
                && other.start < hull.end
                && hull.start < other.end
        };
        let writes = || self.records.iter().filter(is_write);
        let is_whole = |write: &Record| {
            write.region.is_dense() && write.hull.start <= hull.start && hull.end <= write.hull.end
        };
        let bytes = read.region.may_be();
        if writes().any(is_whole) {
            return true;
        }
        let mut written: Vec<_> = writes().flat_map(|write| write.region.may_be()).collect();
        written.sort_unstable_by_key(|range| range.start);
        bytes.iter().all(|read| is_covered(&written, read))
    }

    /// Forgets the accesses to these bytes.
    pub(super) fn forget(&mut self, start: u32, end: u32) {
        self.records.retain(|record| record.hull.end <= start || end <= record.hull.start);
    }
}

/// Whether ranges, sorted by start, cover another one.
fn is_covered(ranges: &[Range<u32>], whole: &Range<u32>) -> bool {
    let mut up_to = whole.start;
    for range in ranges.iter().take_while(|range| range.start < whole.end) {
        if range.start <= up_to {
            up_to = up_to.max(range.end);
        }
    }
    up_to >= whole.end
}

/// Whether an access repeats an earlier one of the same group: in the same way, to the same bytes.
/// Its record then implies all that the earlier one says.
fn is_successor(old: &Record, new: &Record) -> bool {
    old.access == new.access && old.step.component() == new.step.component() && old.region == new.region
}

/// Returns what is missing between two accesses, and whether they certainly conflict.
fn between(view: &View, old: &Record, new: &Record) -> Option<(Hazard, bool)> {
    let requirement = old.access.before(new.access);
    if let Some(hazard) = requirement.missing(old.step, view, Fenced::Shared) {
        let overlap = new.region.overlaps(&old.region);
        return (overlap != Overlap::No).then_some((hazard, overlap == Overlap::Yes));
    }
    if requirement != Requirement::Nothing && !all_know_over(view, old.step, new.threads) {
        let overlap = new.region.overlaps_among(new.threads, &old.region);
        return (overlap != Overlap::No).then_some((Hazard::Unordered, overlap == Overlap::Yes));
    }
    None
}

/// Whether each of the `threads` threads of a group knows a step to be over. A step of one thread
/// is known to the others of its group only after a rendezvous.
pub(super) fn all_know_over(view: &View, step: Epoch, threads: usize) -> bool {
    if threads > 1 { view.knows().complete().knows(step) } else { view.knows_complete(step) }
}
