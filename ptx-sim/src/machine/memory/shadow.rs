//! The shadow state of a block's shared memory: the last writer and the readers of each piece.
//!
//! The representation follows FastTrack (Flanagan and Freund, PLDI 2009). The last write and the
//! last read are one step each. Only if several threads read without order between them is a set of
//! readers kept. A cell is four bytes until a smaller access, which splits all cells.
//! [`tma_model::sync::access`] defines which accesses conflict.

use tma_model::sync::{Access, AccessKind, Component, Epoch, Hazard, Memory, Proxy, View};

use crate::machine::sizes::Sizes;

/// Replaces a writer: an asynchronous operation, by number, that has yet to land.
pub(in crate::machine) const IN_FLIGHT: Component = Component::new(u32::MAX);
/// Replaces a writer: an mbarrier.
pub(in crate::machine) const OPAQUE: Component = Component::new(u32::MAX - 1);
/// Replaces a reader: the step's count is the index of a set of readers.
const READER_SET: Component = Component::new(u32::MAX - 2);

/// Flag in the line of a write: an asynchronous write in the generic proxy, whatever its component.
const COPIED: u32 = 1 << 30;
/// Flag in the line of a write: an asynchronous reduction.
const REDUCED: u32 = 1 << 29;
/// The first bit in the line of a write that holds the [`Sizes`] of a strong write.
const SIZES: u32 = 24;
/// The bits of a line that hold flags.
const FLAGS: u32 = u32::MAX << SIZES;

#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    write: Epoch,
    read: Epoch,
    write_line: u32,
    read_line: u32,
}

/// The step that represents an access, and the access's PTX line.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) struct Mark {
    pub(in crate::machine) step: Epoch,
    pub(in crate::machine) line: u32,
}

/// A thread's own access, which is being made.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) struct ThreadAccess<'v> {
    pub(in crate::machine) view: &'v View,
    /// The PTX line.
    pub(in crate::machine) line: u32,
    /// The sizes; empty for a weak access.
    pub(in crate::machine) sizes: Sizes,
}

impl ThreadAccess<'_> {
    /// Returns this access as it follows a write with these sizes. Two strong accesses do not race
    /// if they overlap completely.
    fn after(&self, kind: AccessKind, sizes: Sizes) -> Access {
        Access { proxy: Proxy::Generic, kind, strong: self.sizes.intersects(sizes) }
    }
}

/// An error in an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::machine) enum Problem {
    /// The bytes that are read were never written.
    Unwritten,
    /// The access conflicts with an earlier one.
    Hazard(Hazard),
}

/// A conflict between two accesses.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) struct Conflict {
    pub(in crate::machine) problem: Problem,
    /// Offset of the cell in shared memory.
    pub(in crate::machine) at: u32,
    /// The other access, its PTX line, and whether it is a write.
    pub(in crate::machine) other: Epoch,
    pub(in crate::machine) line: u32,
    pub(in crate::machine) other_writes: bool,
    /// Whether the other access is asynchronous in the generic proxy.
    pub(in crate::machine) copied: bool,
    /// The sizes of this access and of the other one, if both are strong and overlap partially.
    pub(in crate::machine) mixed: Option<[u32; 2]>,
}

/// The shadow state of a block's shared memory.
#[derive(Debug)]
pub(in crate::machine) struct Shadow {
    cells: Vec<Cell>,
    /// The first clock component that does not belong to a thread.
    threads: Component,
    /// Log2 of the bytes of a cell.
    shift: u32,
    sets: Vec<Vec<Mark>>,
    free: Vec<u32>,
}

impl Cell {
    fn writer(&self, problem: Problem) -> Conflict {
        let (line, copied) = (self.write_line & !FLAGS, self.write_line & COPIED != 0);
        Conflict { problem, at: 0, other: self.write, line, other_writes: true, copied, mixed: None }
    }

    /// Returns the sizes of the last write; empty if it was weak.
    fn sizes(&self) -> Sizes {
        Sizes::from_bits(self.write_line >> SIZES)
    }

    /// Checks a thread's access against the last write.
    fn before_thread(
        &self,
        kind: AccessKind,
        access: &ThreadAccess<'_>,
        threads: Component,
    ) -> Option<Conflict> {
        let (mine, theirs) = (access.sizes, self.sizes());
        let found = self.after_write(access.after(kind, theirs), access.view, threads)?;
        let is_mixed = mine != Sizes::WEAK && theirs != Sizes::WEAK && !mine.intersects(theirs);
        Some(Conflict { mixed: is_mixed.then(|| [mine.bytes(), theirs.bytes()]), ..found })
    }

    /// Returns the last write as an access.
    fn last_write(&self, threads: Component) -> Access {
        let generic = self.write.component() < threads || self.write_line & COPIED != 0;
        Access {
            proxy: if generic { Proxy::Generic } else { Proxy::Async },
            kind: if self.write_line & REDUCED != 0 { AccessKind::Reduce } else { AccessKind::Write },
            strong: self.sizes() != Sizes::WEAK,
        }
    }

    /// Checks `access`, which the agent of `view` makes or starts now, against the last write.
    fn after_write(&self, access: Access, view: &View, threads: Component) -> Option<Conflict> {
        let reads = match access.kind {
            AccessKind::Read | AccessKind::Reduce => true,
            AccessKind::Write => false,
        };
        if reads && self.write.is_none() {
            return Some(self.writer(Problem::Unwritten));
        }
        let requirement = self.last_write(threads).before(access);
        let missing = requirement.missing(self.write, view, Memory::Shared)?;
        Some(self.writer(Problem::Hazard(missing)))
    }
}

impl Shadow {
    /// Creates the state of memory without accesses. `threads` is the first clock component that
    /// does not belong to a thread.
    pub(super) fn new(bytes: u32, threads: Component) -> Self {
        let cells = vec![Cell::default(); bytes.div_ceil(4) as usize];
        Self { cells, threads, shift: 2, sets: Vec::new(), free: Vec::new() }
    }

    /// Returns the cells of `len` bytes at `at`, which must be in bounds.
    #[inline]
    fn range(&mut self, at: u32, len: u32) -> std::ops::Range<usize> {
        while (at | len) & ((1 << self.shift) - 1) != 0 {
            self.split();
        }
        let end = ((at + len) >> self.shift) as usize;
        (at >> self.shift) as usize..end.min(self.cells.len())
    }

    #[cold]
    fn split(&mut self) {
        let mut cells = Vec::with_capacity(self.cells.len() * 2);
        for &cell in &self.cells {
            let mut twin = cell;
            if cell.read.component() == READER_SET {
                let set = self.sets.get(cell.read.count() as usize).cloned().unwrap_or_default();
                twin.read = Epoch::new(READER_SET, self.sets.len() as u32);
                self.sets.push(set);
            }
            cells.extend([cell, twin]);
        }
        self.cells = cells;
        self.shift -= 1;
    }

    /// Records a generic read. `is_observed` tells which writes precede it although the clocks do
    /// not order them.
    #[inline]
    pub(in crate::machine) fn read(
        &mut self,
        at: u32,
        len: u32,
        access: ThreadAccess<'_>,
        is_observed: &dyn Fn(&Conflict) -> bool,
    ) -> Option<Conflict> {
        let ThreadAccess { view, line, sizes } = access;
        let mut conflict = None;
        let mark = Mark { step: view.epoch(), line };
        for index in self.range(at, len) {
            let cell = self.cells[index];
            if cell.write.is_none() || !view.follows(cell.write) {
                let found = cell.before_thread(AccessKind::Read, &access, self.threads);
                let found = found.map(|found| self.at_cell(found, index));
                conflict = conflict.or(found.filter(|found| !is_observed(found)));
            }
            // A strong read is not recorded, because it is expected to be followed by a strong
            // write of the same size. A race with a later weak write, or with one of another size,
            // is not found.
            if cell.read != mark.step && sizes == Sizes::WEAK {
                self.add_reader(index, view, mark);
            }
        }
        conflict
    }

    /// Records a generic write. `is_observed` tells which writes precede it although the clocks do
    /// not order them; reads of those may still race with it.
    #[inline]
    pub(in crate::machine) fn write(
        &mut self,
        at: u32,
        len: u32,
        access: ThreadAccess<'_>,
        is_observed: &dyn Fn(&Conflict) -> bool,
    ) -> Option<Conflict> {
        let ThreadAccess { view, line, sizes } = access;
        let mut conflict = None;
        let (me, marked) = (view.epoch(), line | sizes.bits() << SIZES);
        for index in self.range(at, len) {
            let cell = self.cells[index];
            if cell.write != me || !cell.read.is_none() {
                let after_write = if view.follows(cell.write) {
                    None
                } else {
                    cell.before_thread(AccessKind::Write, &access, self.threads)
                };
                let after_write = after_write.map(|found| self.at_cell(found, index));
                // Recorded reads are weak.
                let access = access.after(AccessKind::Write, Sizes::WEAK);
                let after_reads = || Some(self.at_cell(self.after_reads(&cell, access, view)?, index));
                let found = after_write.filter(|found| !is_observed(found)).or_else(after_reads);
                conflict = conflict.or(found);
                self.forget_readers(index);
            }
            let cell = &mut self.cells[index];
            (cell.write, cell.write_line) = (me, marked);
        }
        conflict
    }

    /// Records an atomic operation: a strong write to bytes that must be initialised.
    pub(in crate::machine) fn change(
        &mut self,
        at: u32,
        len: u32,
        access: ThreadAccess<'_>,
        is_observed: &dyn Fn(&Conflict) -> bool,
    ) -> Option<Conflict> {
        let unwritten = self.range(at, len).find(|&index| self.cells[index].write.is_none());
        let conflict =
            unwritten.map(|index| self.at_cell(self.cells[index].writer(Problem::Unwritten), index));
        self.write(at, len, access, is_observed).or(conflict)
    }

    /// Records that `view` starts an asynchronous `access`, which writes here. `mark` is the step
    /// of its completion, or the number of the operation in flight.
    pub(in crate::machine) fn write_async(
        &mut self,
        at: u32,
        len: u32,
        view: &View,
        access: Access,
        mark: Mark,
    ) -> Option<Conflict> {
        let mut conflict = None;
        let copied = match access.proxy {
            Proxy::Generic => COPIED,
            Proxy::Async => 0,
        };
        let reduced = match access.kind {
            AccessKind::Reduce => REDUCED,
            AccessKind::Read | AccessKind::Write => 0,
        };
        debug_assert!(access.kind != AccessKind::Read, "a read is no write");
        debug_assert_eq!(mark.line & FLAGS, 0, "a line has room for the flags");
        for index in self.range(at, len) {
            let cell = self.cells[index];
            let found = self.before_write(&cell, access, view);
            conflict = conflict.or(found.map(|found| self.at_cell(found, index)));
            self.forget_readers(index);
            let cell = &mut self.cells[index];
            (cell.write, cell.write_line) = (mark.step, mark.line | copied | reduced);
        }
        conflict
    }

    /// Records that `view` starts an asynchronous-proxy copy that reads here. `reader` is the step
    /// that represents the read.
    pub(in crate::machine) fn read_async(
        &mut self,
        at: u32,
        len: u32,
        view: &View,
        reader: Mark,
    ) -> Option<Conflict> {
        let mut conflict = None;
        for index in self.range(at, len) {
            let access = Access::weak(Proxy::Async, AccessKind::Read);
            let found = self.cells[index].after_write(access, view, self.threads);
            conflict = conflict.or(found.map(|found| self.at_cell(found, index)));
            self.add_async_reader(index, view, reader);
        }
        conflict
    }

    /// Records that all of `views` start an asynchronous-proxy read here. `reader` is the step at
    /// which it is complete. `checked_write` caches a write that all views are known to follow.
    /// Also returns the index of the view that conflicts.
    pub(in crate::machine) fn read_by_warp(
        &mut self,
        at: u32,
        len: u32,
        views: &[View],
        reader: Mark,
        checked_write: &mut Epoch,
    ) -> Option<(u32, Conflict)> {
        let access = Access::weak(Proxy::Async, AccessKind::Read);
        let mut conflict = None;
        for index in self.range(at, len) {
            let cell = self.cells[index];
            if cell.write.is_none() || cell.write != *checked_write {
                let after = |view| cell.after_write(access, view, self.threads);
                let found = (0..).zip(views).find_map(|(lane, view)| Some((lane, after(view)?)));
                if found.is_none() {
                    *checked_write = cell.write;
                }
                let found = found.map(|(lane, found)| (lane, self.at_cell(found, index)));
                conflict = conflict.or(found);
            }
            if let Some(view) = views.first().filter(|_| cell.read != reader.step) {
                self.add_async_reader(index, view, reader);
            }
        }
        conflict
    }

    /// Records that the operation marked `in_flight` has landed here, at step `done`.
    pub(in crate::machine) fn landed(&mut self, at: u32, len: u32, in_flight: Epoch, done: Epoch) {
        for index in self.range(at, len) {
            let cell = &mut self.cells[index];
            if cell.write == in_flight {
                cell.write = done;
            }
        }
    }

    /// Returns whether asynchronous-proxy copies were the last to write all of these bytes.
    pub(in crate::machine) fn is_copied_in(&self, at: u32, len: u32) -> bool {
        let cells = (at >> self.shift) as usize..((at + len) >> self.shift) as usize;
        let is_copied = |cell: &Cell| {
            let last = cell.last_write(self.threads);
            !cell.write.is_none() && last.proxy == Proxy::Async && last.kind == AccessKind::Write
        };
        self.cells.get(cells).is_some_and(|cells| cells.iter().all(is_copied))
    }

    /// Records that an mbarrier is here from now on.
    pub(in crate::machine) fn set_opaque(&mut self, at: u32, len: u32, line: u32) {
        for index in self.range(at, len) {
            self.forget_readers(index);
            let cell = &mut self.cells[index];
            (cell.write, cell.write_line) = (Epoch::new(OPAQUE, 1), line);
        }
    }

    /// Marks the bytes as never accessed.
    pub(in crate::machine) fn clear(&mut self, at: u32, len: u32) {
        for index in self.range(at, len) {
            self.forget_readers(index);
            self.cells[index] = Cell::default();
        }
    }

    fn at_cell(&self, conflict: Conflict, index: usize) -> Conflict {
        Conflict { at: (index as u32) << self.shift, ..conflict }
    }

    /// Checks a write, or the start of one, against the last write and the reads after it.
    fn before_write(&self, cell: &Cell, access: Access, view: &View) -> Option<Conflict> {
        cell.after_write(access, view, self.threads).or_else(|| self.after_reads(cell, access, view))
    }

    /// Returns the first reader that is not ordered before `access`, or else the first that no
    /// proxy fence follows. Readers that a later reader knew of are not kept. A fence that follows
    /// the later reader also follows them.
    fn after_reads(&self, cell: &Cell, access: Access, view: &View) -> Option<Conflict> {
        if cell.read.is_none() {
            return None;
        }
        let one = [Mark { step: cell.read, line: cell.read_line }];
        let readers = match cell.read.component() {
            READER_SET => self.sets.get(cell.read.count() as usize)?.as_slice(),
            _ => &one,
        };
        let missing = |reader: &Mark| {
            let earlier = Access::weak(self.proxy_of_reader(reader.step), AccessKind::Read);
            earlier.before(access).missing(reader.step, view, Memory::Shared).map(|hazard| (hazard, *reader))
        };
        let (hazard, reader) = readers.iter().filter_map(missing).min_by_key(|(hazard, _)| *hazard)?;
        let (other, line, problem) = (reader.step, reader.line, Problem::Hazard(hazard));
        Some(Conflict { problem, at: 0, other, line, other_writes: false, copied: false, mixed: None })
    }

    /// Returns the proxy of a reader: generic for threads, asynchronous for all other agents.
    fn proxy_of_reader(&self, reader: Epoch) -> Proxy {
        if reader.component() < self.threads { Proxy::Generic } else { Proxy::Async }
    }

    /// Adds a copy as a reader, represented by `view`. A thread's earlier read is kept, unless a
    /// proxy fence follows it.
    fn add_async_reader(&mut self, index: usize, view: &View, reader: Mark) {
        let cell = self.cells[index];
        let by_thread = !cell.read.is_none() && self.proxy_of_reader(cell.read) == Proxy::Generic;
        if cell.read.component() != READER_SET
            && by_thread
            && !view.has_fenced_read(cell.read, Memory::Shared)
        {
            let set = vec![Mark { step: cell.read, line: cell.read_line }, reader];
            self.cells[index].read = Epoch::new(READER_SET, self.store_set(set));
        } else {
            self.add_reader(index, view, reader);
        }
    }

    /// Adds `reader`, represented by `view`. Readers that happen before it need not be kept.
    fn add_reader(&mut self, index: usize, view: &View, reader: Mark) {
        let cell = self.cells[index];
        if cell.read.component() == READER_SET {
            if let Some(set) = self.sets.get_mut(cell.read.count() as usize) {
                let component = reader.step.component();
                match set.iter_mut().find(|known| known.step.component() == component) {
                    Some(known) => *known = reader,
                    None => set.push(reader),
                }
            }
        } else if view.knows_complete(cell.read) {
            let cell = &mut self.cells[index];
            (cell.read, cell.read_line) = (reader.step, reader.line);
        } else {
            let set = vec![Mark { step: cell.read, line: cell.read_line }, reader];
            self.cells[index].read = Epoch::new(READER_SET, self.store_set(set));
        }
    }

    fn store_set(&mut self, set: Vec<Mark>) -> u32 {
        match self.free.pop() {
            Some(index) => {
                if let Some(free) = self.sets.get_mut(index as usize) {
                    debug_assert!(free.is_empty(), "a set that is free has no readers");
                    *free = set;
                }
                index
            }
            None => {
                self.sets.push(set);
                self.sets.len() as u32 - 1
            }
        }
    }

    fn forget_readers(&mut self, index: usize) {
        let cell = &mut self.cells[index];
        if cell.read.component() == READER_SET {
            let set = cell.read.count();
            if let Some(set) = self.sets.get_mut(set as usize) {
                set.clear();
            }
            self.free.push(set);
        }
        cell.read = Epoch::default();
    }
}
