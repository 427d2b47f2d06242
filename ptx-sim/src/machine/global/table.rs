//! The last write and the last reads of each piece of global memory.
//!
//! The representation follows FastTrack (Flanagan and Freund, PLDI 2009). The last write and the
//! last read are one step each. Only if several threads read without order between them is a set of
//! readers kept, of limited size. A line of 128 bytes is one cell until a smaller access, after
//! which its cells have the size of that access.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

use tma_model::sync::{AccessKind, Component, Epoch, MemoryScope, Proxy};

use super::cross_cluster::Observer;
use super::mark::{AccessRule, GlobalAccess, GlobalConflict, GridThread, unordered};
use super::team::TeamLayout;
use super::uses::Uses;
use crate::machine::memory::IN_FLIGHT;
use crate::machine::types::MachineConfig;

/// Log2 of the bytes of a line.
const LINE_BITS: u32 = 7;
/// Bytes of a line.
pub(super) const LINE: usize = 1 << LINE_BITS;
/// Log2 of the lines of a page.
const PAGE_BITS: u32 = 5;
const LINES: usize = 1 << PAGE_BITS;
/// Replaces a reader: the step's count is the index of a set of readers.
const READER_SET: Component = Component::new(u32::MAX - 2);
/// The most readers of a cell that are kept. Beyond it the oldest are dropped.
const MOST_READERS: usize = 16;

/// Hashes page numbers. The hash need not resist attacks.
#[derive(Debug, Default)]
pub(super) struct PageHasher(u64);

impl Hasher for PageHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64((*byte).into());
        }
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }
}

/// The kinds of accesses that were ever made to a cell, as a bit set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kinds(u8);

impl Kinds {
    pub(super) fn has(self, kind: AccessKind) -> bool {
        self.0 & 1 << kind as u8 != 0
    }

    fn add(&mut self, kind: AccessKind) {
        self.0 |= 1 << kind as u8;
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    pub(super) write: GlobalAccess,
    pub(super) read: GlobalAccess,
    pub(super) kinds: Kinds,
}

const EMPTY: Cell = Cell { write: GlobalAccess::NONE, read: GlobalAccess::NONE, kinds: Kinds(0) };

/// A line of 128 bytes.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// Empty before the first access.
    pub(super) cells: Vec<Cell>,
    /// Log2 of the bytes of a cell.
    pub(super) shift: u32,
    /// Whether a location in the line has a history.
    pub(super) has_history: bool,
    /// The bytes that the cluster has written, if these are kept.
    pub(super) bytes: Option<Box<[u8; LINE]>>,
}

/// The part of an access that lies in one line.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) line: u64,
    /// The range of bytes within the line.
    pub(super) bytes: Range<u32>,
}

/// Splits `len` bytes at `address` into pieces, line by line.
pub(super) fn pieces(address: u64, len: u64) -> impl Iterator<Item = Piece> {
    let end = address.saturating_add(len);
    let first = address >> LINE_BITS;
    let last = end.saturating_sub(1) >> LINE_BITS;
    let within = move |line: u64| {
        let base = line << LINE_BITS;
        let (from, to) = (address.max(base) - base, (end - base).min(1 << LINE_BITS));
        Piece { line, bytes: from as u32..to as u32 }
    };
    (first..=last).filter(move |_| len > 0).map(within)
}

impl Piece {
    /// Returns the address of the first byte.
    pub(super) fn address(&self) -> u64 {
        (self.line << LINE_BITS) + u64::from(self.bytes.start)
    }
}

/// Accesses to global memory.
#[derive(Debug, Default)]
pub(in crate::machine) struct Table {
    /// Whether only missing proxy fences are looked for.
    fences_only: bool,
    /// The uses of values that threads read; `None` if no copy writes global memory.
    uses: Option<Box<Uses>>,
    /// The index into `pages`, by page number.
    page_index: HashMap<u64, usize, BuildHasherDefault<PageHasher>>,
    pages: Vec<Vec<Line>>,
    /// The page of the last lookup.
    last: Option<(u64, usize)>,
    sets: Vec<Vec<GlobalAccess>>,
    free: Vec<u32>,
}

impl Line {
    /// Returns the cells of some bytes, after splitting cells to that size if necessary.
    #[inline]
    fn range(&mut self, bytes: &Range<u32>, sets: &mut Vec<Vec<GlobalAccess>>) -> Range<usize> {
        let aligned = (bytes.start | bytes.end).trailing_zeros().min(LINE_BITS);
        if self.cells.is_empty() {
            self.shift = aligned;
            self.cells = vec![EMPTY; 1 << (LINE_BITS - aligned)];
        } else if aligned < self.shift {
            self.split(aligned, sets);
        }
        (bytes.start >> self.shift) as usize..(bytes.end >> self.shift) as usize
    }

    #[cold]
    fn split(&mut self, shift: u32, sets: &mut Vec<Vec<GlobalAccess>>) {
        let copies = 1 << (self.shift - shift);
        let mut cells = Vec::with_capacity(self.cells.len() * copies);
        for cell in &self.cells {
            cells.push(*cell);
            for _ in 1..copies {
                let mut twin = *cell;
                if cell.read.step.component() == READER_SET {
                    let set = sets.get(cell.read.step.count() as usize).cloned().unwrap_or_default();
                    twin.read.step = Epoch::new(READER_SET, sets.len() as u32);
                    sets.push(set);
                }
                cells.push(twin);
            }
        }
        (self.cells, self.shift) = (cells, shift);
    }
}

impl Table {
    /// Creates the table of a cluster that has not begun. With `fences_only` it reports only
    /// missing proxy fences between accesses of threads and copies.
    pub(super) fn new(config: &MachineConfig, fences_only: bool) -> Self {
        let uses =
            config.used_immediately.as_ref().map(|used_immediately| Box::new(Uses::new(used_immediately)));
        Self { fences_only, uses, ..Self::default() }
    }

    /// Records that a thread uses, in this step, the value that it last read in a line.
    pub(super) fn used(&mut self, grid_thread: GridThread, line: u32, step: Epoch) {
        if let Some(uses) = &mut self.uses {
            uses.add(grid_thread, line, step);
        }
    }

    /// Returns whether a copy may overtake this read, unless the value is used later.
    #[inline]
    pub(super) fn may_be_overtaken(&self, read: &GlobalAccess) -> bool {
        self.uses.as_ref().is_some_and(|uses| uses.may_be_overtaken(read))
    }

    #[inline]
    pub(super) fn line(&mut self, line: u64) -> &mut Line {
        let number = line >> PAGE_BITS;
        let slot = match self.last {
            Some((last, slot)) if last == number => slot,
            _ => {
                let pages = &mut self.pages;
                *self.page_index.entry(number).or_insert_with(|| {
                    pages.push(std::iter::repeat_with(Line::default).take(LINES).collect());
                    pages.len() - 1
                })
            }
        };
        self.last = Some((number, slot));
        &mut self.pages[slot][line as usize % LINES]
    }

    /// Returns the accessed lines in order, with the addresses of their first bytes.
    pub(super) fn lines(&self) -> Vec<(u64, &Line)> {
        let mut pages: Vec<_> = self.page_index.iter().collect();
        pages.sort_unstable();
        let mut lines = Vec::new();
        for (number, slot) in pages {
            let Some(page) = self.pages.get(*slot) else { continue };
            for (index, line) in (0..).zip(page.iter()).filter(|(_, line)| !line.cells.is_empty()) {
                lines.push((((number << PAGE_BITS) + index) << LINE_BITS, line));
            }
        }
        lines
    }

    /// Checks an access to `len` bytes at `address` against earlier ones, and records it. Returns
    /// the first conflict. `is_observed` tells which writes of a byte precede the access although
    /// the clocks do not order them.
    #[inline]
    pub(super) fn access(
        &mut self,
        address: u64,
        len: u64,
        mark: &GlobalAccess,
        observer: &Observer<'_>,
        is_observed: &dyn Fn(&GlobalAccess, u64) -> bool,
    ) -> Option<GlobalConflict> {
        let mut conflict = None;
        for piece in pieces(address, len) {
            let found = self.access_piece(&piece, mark, observer, is_observed);
            conflict = conflict.or(found);
        }
        conflict
    }

    #[inline]
    fn access_piece(
        &mut self,
        piece: &Piece,
        mark: &GlobalAccess,
        observer: &Observer<'_>,
        is_observed: &dyn Fn(&GlobalAccess, u64) -> bool,
    ) -> Option<GlobalConflict> {
        // Taken out, so that the line and the sets can be borrowed mutably at the same time.
        let mut sets = std::mem::take(&mut self.sets);
        let mut free = std::mem::take(&mut self.free);
        let uses = self.uses.take();
        let fences_only = self.fences_only;
        let is_wanted = |rule: AccessRule| !fences_only || rule == AccessRule::MissingProxyFence;
        let line = self.line(piece.line);
        let mut conflict = None;
        for index in line.range(&piece.bytes, &mut sets) {
            let cell = &mut line.cells[index];
            let found = cell.after_write(mark, observer);
            let byte = (piece.line << LINE_BITS) + ((index as u64) << line.shift);
            let found = found.filter(|(rule, write)| match rule {
                AccessRule::Race
                | AccessRule::ScopeTooNarrow
                | AccessRule::ReleaseTooNarrow
                | AccessRule::MixedSizes => !is_observed(write, byte),
                AccessRule::MixedProxies | AccessRule::MissingProxyFence | AccessRule::NonCoherent => true,
            });
            let found = found.filter(|(rule, _)| is_wanted(*rule));
            let found = match mark.attributes.kind {
                AccessKind::Read => {
                    // Reads by copies need no proxy fence.
                    if !fences_only || mark.attributes.proxy == Proxy::Generic {
                        cell.add_reader(mark, observer, uses.as_deref(), &mut sets, &mut free);
                    }
                    found
                }
                AccessKind::Write | AccessKind::Reduce => {
                    let after_reads = || cell.after_reads(mark, observer, uses.as_deref(), &sets);
                    let found = found.or_else(|| after_reads().filter(|(rule, _)| is_wanted(*rule)));
                    cell.forget_readers(&mut sets, &mut free);
                    cell.write = *mark;
                    found
                }
            };
            cell.kinds.add(mark.attributes.kind);
            if let (None, Some((rule, other))) = (conflict, found) {
                conflict = Some(GlobalConflict { rule, address: piece.address(), other });
            }
        }
        (self.sets, self.free, self.uses) = (sets, free, uses);
        conflict
    }

    /// Returns the last write to one of these bytes, as a conflict with a non-coherent load.
    pub(super) fn written(&mut self, address: u64, len: u64) -> Option<GlobalConflict> {
        pieces(address, len).find_map(|piece| {
            let line = self.line(piece.line);
            let last = piece.bytes.end.saturating_sub(1);
            let cells =
                line.cells.get((piece.bytes.start >> line.shift) as usize..=(last >> line.shift) as usize)?;
            let changed =
                |cell: &&Cell| cell.kinds.has(AccessKind::Write) || cell.kinds.has(AccessKind::Reduce);
            let other = cells.iter().find(changed)?.write;
            Some(GlobalConflict { rule: AccessRule::NonCoherent, address: piece.address(), other })
        })
    }

    /// Records that asynchronous operation `operation` has read the piece, with this step.
    pub(super) fn landed(&mut self, piece: &Piece, grid_thread: GridThread, operation: u32, step: Epoch) {
        let mut sets = std::mem::take(&mut self.sets);
        let line = self.line(piece.line);
        let in_flight = Epoch::new(IN_FLIGHT, operation);
        for index in line.range(&piece.bytes, &mut sets) {
            let read = &mut line.cells[index].read;
            let readers = match read.step.component() {
                READER_SET => sets.get_mut(read.step.count() as usize).map(Vec::as_mut_slice),
                _ => Some(std::slice::from_mut(read)),
            };
            for reader in readers.unwrap_or_default() {
                if reader.step == in_flight && reader.grid_thread == grid_thread {
                    reader.step = step;
                }
            }
        }
        self.sets = sets;
    }

    /// Keeps the written bytes, line by line.
    pub(super) fn keep_bytes(&mut self, address: u64, bytes: &[u8]) {
        let mut rest = bytes;
        for piece in pieces(address, bytes.len() as u64) {
            let (now, more) = rest.split_at(piece.bytes.len().min(rest.len()));
            let line = self.line(piece.line).bytes.get_or_insert_with(|| Box::new([0; LINE]));
            if let Some(bytes_there) = line.get_mut(piece.bytes.start as usize..piece.bytes.end as usize) {
                bytes_there.copy_from_slice(now);
            }
            rest = more;
        }
    }

    /// Returns whether these are the bytes that were written last.
    pub(super) fn has_bytes(&mut self, address: u64, bytes: &[u8]) -> bool {
        let mut rest = bytes;
        pieces(address, bytes.len() as u64).all(|piece| {
            let (now, more) = rest.split_at(piece.bytes.len().min(rest.len()));
            rest = more;
            let line = self.line(piece.line).bytes.as_deref();
            line.and_then(|line| line.get(piece.bytes.start as usize..piece.bytes.end as usize)) == Some(now)
        })
    }
}

impl Cell {
    /// Returns the rule that an access violates with respect to the last write.
    #[inline]
    fn after_write(
        &self,
        mark: &GlobalAccess,
        observer: &Observer<'_>,
    ) -> Option<(AccessRule, GlobalAccess)> {
        if self.write.step.is_none() {
            return None;
        }
        let rule = if observer.follows(&self.write) {
            let crosses =
                self.write.attributes.proxy == Proxy::Generic && mark.attributes.proxy == Proxy::Async;
            (crosses && !observer.is_visible_to_async(&self.write)).then_some(AccessRule::MissingProxyFence)
        } else {
            unordered(&self.write, mark, observer.layout)
        };
        Some((rule?, self.write))
    }

    /// Returns the rule that a write violates with respect to the reads.
    fn after_reads(
        &self,
        mark: &GlobalAccess,
        observer: &Observer<'_>,
        uses: Option<&Uses>,
        sets: &[Vec<GlobalAccess>],
    ) -> Option<(AccessRule, GlobalAccess)> {
        if self.read.step.is_none() {
            return None;
        }
        let readers = match self.read.step.component() {
            READER_SET => sets.get(self.read.step.count() as usize)?.as_slice(),
            _ => std::slice::from_ref(&self.read),
        };
        let is_copy = mark.attributes.proxy == Proxy::Async;
        let broken = |reader: &GlobalAccess| {
            if !observer.knows_complete(reader) {
                return Some((unordered(reader, mark, observer.layout)?, *reader));
            }
            let uses = uses.filter(|uses| is_copy && uses.may_be_overtaken(reader))?;
            let is_over = observer.has_fenced_read(reader) || uses.is_known(reader, observer);
            (!is_over).then_some((AccessRule::MissingProxyFence, *reader))
        };
        readers.iter().find_map(broken)
    }

    /// Adds a reader. Readers that happen before it need not be kept, except those of other threads
    /// that a copy may overtake.
    #[inline]
    fn add_reader(
        &mut self,
        mark: &GlobalAccess,
        observer: &Observer<'_>,
        uses: Option<&Uses>,
        sets: &mut Vec<Vec<GlobalAccess>>,
        free: &mut Vec<u32>,
    ) {
        let read = &self.read;
        let covers = |known: &GlobalAccess| {
            is_as_strong(mark, known, observer.layout)
                && uses.is_none_or(|uses| uses.covers(mark, known, observer))
        };
        if read.step.component() == READER_SET {
            let Some(set) = sets.get_mut(read.step.count() as usize) else { return };
            let same = |known: &GlobalAccess| {
                known.grid_thread.cluster == mark.grid_thread.cluster
                    && known.step.component() == mark.step.component()
                    && covers(known)
            };
            match set.iter_mut().find(|known| same(known)) {
                Some(known) if known.step.component() != IN_FLIGHT => *known = *mark,
                Some(_) | None => {
                    if set.len() == MOST_READERS {
                        set.remove(0);
                    }
                    set.push(*mark);
                }
            }
        } else if read.step.is_none() || observer.knows_complete(read) && covers(read) {
            self.read = *mark;
        } else {
            let set = vec![*read, *mark];
            let index = match free.pop() {
                Some(index) => {
                    if let Some(free) = sets.get_mut(index as usize) {
                        *free = set;
                    }
                    index
                }
                None => {
                    sets.push(set);
                    sets.len() as u32 - 1
                }
            };
            self.read.step = Epoch::new(READER_SET, index);
        }
    }

    #[inline]
    fn forget_readers(&mut self, sets: &mut [Vec<GlobalAccess>], free: &mut Vec<u32>) {
        if self.read.step.component() == READER_SET {
            let index = self.read.step.count();
            if let Some(set) = sets.get_mut(index as usize) {
                set.clear();
            }
            free.push(index);
        }
        self.read.step = Epoch::default();
    }
}

/// Returns whether a later read can replace an earlier one, because anything that races with the
/// earlier one also races with the later one.
fn is_as_strong(later: &GlobalAccess, earlier: &GlobalAccess, layout: TeamLayout) -> bool {
    let (Some(new), Some(old)) = (later.attributes.scope, earlier.attributes.scope) else {
        return later.attributes.scope.is_none();
    };
    let same_rank = || layout.same_rank(later.grid_thread.cluster, earlier.grid_thread.cluster);
    let narrowest = old.min(new);
    let reach = narrowest >= layout.everyone()
        || narrowest >= MemoryScope::Device && new <= old && same_rank()
        || later.grid_thread == earlier.grid_thread && new <= old;
    reach && later.attributes.sizes == earlier.attributes.sizes
}
