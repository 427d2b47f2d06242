//! The shared memory of a block: who accessed which bytes, and which accesses nothing orders.
//!
//! An access is remembered until a later one that is ordered after it touches all of its bytes. The
//! bytes of two accesses are compared only where nothing orders them, which in a right kernel is
//! nowhere.

pub(super) mod global;
pub(super) mod region;
pub(super) mod tiles;

use std::ops::Range;

use tma_model::sync::{Access, AccessKind, Epoch, Hazard, Memory as Fenced, Requirement, View};

use self::region::{Overlap, Region};
use crate::ir::StmtId;

/// Who did something, and where in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Site {
    /// The group of threads.
    pub(super) agent: usize,
    pub(super) stmt: StmtId,
    /// The innermost loop that it was in, and the turn of it, from 0.
    pub(super) turn: Option<(StmtId, u32)>,
}

/// An access that was made, or is under way.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) access: Access,
    pub(super) step: Epoch,
    pub(super) region: Region,
    /// What that lies in.
    hull: Range<u32>,
    pub(super) site: Site,
    /// How many threads the group has.
    pub(super) threads: usize,
}

impl Record {
    /// Of a group of so many threads.
    pub(super) fn new(access: Access, step: Epoch, region: Region, site: Site, threads: usize) -> Self {
        let hull = region.hull();
        Self { access, step, region, hull, site, threads }
    }
}

/// Two accesses that do not go together.
#[derive(Clone, Debug)]
pub(super) struct Clash {
    pub(super) earlier: Record,
    pub(super) hazard: Hazard,
    /// Whether they certainly touch the same bytes.
    pub(super) certain: bool,
}

/// What is remembered of a block's shared memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    pub(super) records: Vec<Record>,
}

impl Memory {
    /// An access by the group of `view`: the first earlier one that it does not go with.
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
                    // Nothing need order two strong accesses.
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
        // A loop over elements is one access to all of them.
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
            last.region = joined.unwrap_or_else(|apart| apart);
            if is_joined {
                last.hull = last.hull.start.min(hull.start)..last.hull.end.max(hull.end);
                return clash;
            }
        }
        self.records.push(new);
        clash
    }

    /// Whether somebody has written all bytes of an access; of one whose bytes are not known, all
    /// that it may touch.
    pub(super) fn is_written(&self, read: &Record) -> bool {
        let hull = &read.hull;
        // Of bytes that are not known it is not known either that they were written.
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

    /// Nothing is known of these bytes any more.
    pub(super) fn forget(&mut self, start: u32, end: u32) {
        self.records.retain(|record| record.hull.end <= start || end <= record.hull.start);
    }
}

/// Whether ranges in the order of their starts cover one.
fn is_covered(ranges: &[Range<u32>], whole: &Range<u32>) -> bool {
    let mut up_to = whole.start;
    for range in ranges.iter().take_while(|range| range.start < whole.end) {
        if range.start <= up_to {
            up_to = up_to.max(range.end);
        }
    }
    up_to >= whole.end
}

/// Whether an access says all that an earlier one did of the same group, in the same way, with the
/// same bytes.
fn is_successor(old: &Record, new: &Record) -> bool {
    old.access == new.access && old.step.component() == new.step.component() && old.region == new.region
}

/// What is missing between two accesses, and whether they certainly conflict.
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

/// Whether each thread of a group of so many knows a step to be over. One of their own others know
/// only after a meeting.
pub(super) fn all_know_over(view: &View, step: Epoch, threads: usize) -> bool {
    if threads > 1 { view.knows().over().knows(step) } else { view.knows_over(step) }
}
