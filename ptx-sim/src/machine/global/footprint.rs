//! Races between clusters that nothing orders. Any overlap with a write is a race.
//!
//! In a kernel without strong accesses to global memory, clusters are unordered. Each cluster keeps
//! its own table, and hands over its reads and writes when it ends.

use std::collections::{BTreeMap, HashMap};

use tma_model::sync::AccessKind;

use super::mark::GlobalAccess;
use super::table::{LINE, Table, pieces};
use crate::report::{Finding, Party};

/// A range of bytes that a cluster accessed with one kind of access.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    start: u64,
    end: u64,
    kind: AccessKind,
    line: u32,
    pub(crate) party: Party,
}

/// All accesses of a cluster to global memory.
#[derive(Debug, Default)]
pub(crate) struct Footprint {
    extents: Vec<Extent>,
    /// The bytes that the cluster wrote, by line.
    bytes: Vec<(u64, Box<[u8; LINE]>)>,
}

impl Footprint {
    /// Summarises the accesses of a cluster that has ended. `party` describes the thread that made
    /// an access.
    pub(in crate::machine) fn of(table: &Table, mut party: impl FnMut(&GlobalAccess) -> Party) -> Self {
        let mut footprint = Self::default();
        // The last extent of each kind. The next cell may extend it.
        let mut last = [None::<usize>; 3];
        for (address, line) in table.lines() {
            for (index, cell) in (0_u64..).zip(&line.cells) {
                let start = address + (index << line.shift);
                let end = start + (1 << line.shift);
                let writes = cell.kinds.has(AccessKind::Write);
                for kind in [AccessKind::Read, AccessKind::Write, AccessKind::Reduce] {
                    // A write conflicts with everything that a read or a reduction conflicts with.
                    if !cell.kinds.has(kind) || writes && kind != AccessKind::Write {
                        continue;
                    }
                    let by_reader = kind == AccessKind::Read && !cell.read.step.is_none();
                    let mark = if by_reader { &cell.read } else { &cell.write };
                    let slot = &mut last[kind as usize];
                    let known = slot.and_then(|index| footprint.extents.get_mut(index));
                    match known {
                        Some(known) if known.end == start && known.line == mark.line => known.end = end,
                        Some(_) | None => {
                            *slot = Some(footprint.extents.len());
                            let (line, party) = (mark.line, party(mark));
                            footprint.extents.push(Extent { start, end, kind, line, party });
                        }
                    }
                }
            }
            if let Some(bytes) = &line.bytes {
                footprint.bytes.push((address, bytes.clone()));
            }
        }
        footprint
    }
}

/// Disjoint extents, by their starts.
type Extents = BTreeMap<u64, Extent>;

/// The accesses of all clusters of a launch that have ended.
#[derive(Debug, Default)]
pub(crate) struct Footprints {
    reads: Extents,
    writes: Extents,
    reductions: Extents,
    bytes: HashMap<u64, Box<[u8; LINE]>>,
}

/// Returns the extents that overlap the given one.
fn overlapping<'e>(extents: &'e Extents, with: &Extent) -> impl Iterator<Item = &'e Extent> {
    let before = extents.range(..=with.start).next_back();
    let start = before.filter(|(_, extent)| extent.end > with.start).map_or(with.start, |(start, _)| *start);
    extents.range(start..with.end.max(start)).map(|(_, extent)| extent)
}

/// Adds an extent wherever there is none yet.
fn insert(extents: &mut Extents, new: &Extent) {
    let mut at = new.start;
    let mut gaps = Vec::new();
    for known in overlapping(extents, new) {
        if known.start > at {
            gaps.push((at, known.start));
        }
        at = at.max(known.end);
    }
    if at < new.end {
        gaps.push((at, new.end));
    }
    for (start, end) in gaps {
        extents.insert(start, Extent { start, end, ..*new });
    }
}

impl Footprints {
    /// Adds the accesses of a cluster. Each race with an earlier cluster goes to `report`.
    pub(crate) fn add(&mut self, footprint: Footprint, mut report: impl FnMut(Finding)) {
        let Footprint { extents, bytes } = footprint;
        let new: HashMap<u64, Box<[u8; LINE]>> = bytes.into_iter().collect();
        for extent in &extents {
            let others: &[&Extents] = match extent.kind {
                AccessKind::Read => &[&self.writes, &self.reductions],
                AccessKind::Write => &[&self.writes, &self.reads, &self.reductions],
                AccessKind::Reduce => &[&self.writes, &self.reads],
            };
            for other in others.iter().flat_map(|others| overlapping(others, extent)) {
                let (start, end) = (extent.start.max(other.start), extent.end.min(other.end));
                let both_write = extent.kind == AccessKind::Write && other.kind == AccessKind::Write;
                if !both_write || !self.has_same(&new, start, end) {
                    report(super::message::between_clusters(start, extent, other));
                }
            }
        }
        for extent in &extents {
            let extents = match extent.kind {
                AccessKind::Read => &mut self.reads,
                AccessKind::Write => &mut self.writes,
                AccessKind::Reduce => &mut self.reductions,
            };
            insert(extents, extent);
        }
        for extent in extents.iter().filter(|extent| extent.kind == AccessKind::Write) {
            self.keep(&new, extent);
        }
    }

    /// Keeps the bytes of an extent that was written.
    fn keep(&mut self, new: &HashMap<u64, Box<[u8; LINE]>>, extent: &Extent) {
        for piece in pieces(extent.start, extent.end - extent.start) {
            let range = piece.bytes.start as usize..piece.bytes.end as usize;
            let base = piece.line * LINE as u64;
            let Some(from) = new.get(&base).and_then(|line| line.get(range.clone())) else { continue };
            let to = self.bytes.entry(base).or_insert_with(|| Box::new([0; LINE]));
            if let Some(to) = to.get_mut(range) {
                to.copy_from_slice(from);
            }
        }
    }

    /// Returns whether an earlier cluster has written the same bytes.
    fn has_same(&self, new: &HashMap<u64, Box<[u8; LINE]>>, start: u64, end: u64) -> bool {
        pieces(start, end - start).all(|piece| {
            let range = piece.bytes.start as usize..piece.bytes.end as usize;
            let base = piece.line * LINE as u64;
            let mine = new.get(&base).and_then(|line| line.get(range.clone()));
            let theirs = self.bytes.get(&base).and_then(|line| line.get(range));
            mine.is_some() && mine == theirs
        })
    }
}

impl Extent {
    /// Returns the kind of access.
    pub(super) fn kind(&self) -> AccessKind {
        self.kind
    }
}
