//! What is remembered of a block's shared memory: who last wrote and who has read each piece of it.
//!
//! The way of FastTrack (Flanagan and Freund, PLDI 2009): the last write and the last read are one step each; only where
//! several threads read without order between them is a set of readers kept. A cell is four bytes until an access is
//! smaller than that, and then all cells are split.

use super::clock::{Component, Epoch, Memory, View};

/// In place of a writer: a copy, by number, that is to land here.
pub(super) const IN_FLIGHT: Component = u32::MAX;
/// In place of a writer: an mbarrier.
pub(super) const OPAQUE: Component = u32::MAX - 1;
/// In place of a reader: a set of them, by index.
const SEVERAL: Component = u32::MAX - 2;

/// In the line of a write: it was strong.
const STRONG: u32 = 1 << 31;
/// In the line of a write: it is one of `cp.async` or `st.async`, in the generic proxy whatever its component.
const COPIED: u32 = 1 << 30;
/// In the line of a write: it is an asynchronous reduction.
const REDUCED: u32 = 1 << 29;

/// How an asynchronous operation writes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Manner {
    /// In the generic proxy.
    pub(super) generic: bool,
    /// It combines with what is there, in any order with its like.
    pub(super) reduces: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    write: Epoch,
    read: Epoch,
    write_line: u32,
    read_line: u32,
}

/// A reader and its PTX line.
type Reader = (Epoch, u32);

/// What is wrong with an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// Nobody wrote what is read.
    Unwritten,
    /// The other access is not ordered before.
    Unordered,
    /// It is over, but what it wrote was told to its own block only.
    Untold,
    /// It is ordered before, but in the other proxy.
    NoProxyFence,
}

/// An access that does not go with another one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conflict {
    pub(super) problem: Problem,
    /// Shared offset of the cell.
    pub(super) at: u32,
    /// The other access, its PTX line, and whether it is a write.
    pub(super) other: Epoch,
    pub(super) line: u32,
    pub(super) other_writes: bool,
    /// It is one of `cp.async`.
    pub(super) copied: bool,
}

/// What is remembered of a block's shared memory.
#[derive(Debug)]
pub(super) struct Shadow {
    cells: Vec<Cell>,
    /// A cell has `1 << shift` bytes.
    shift: u32,
    sets: Vec<Vec<Reader>>,
    free: Vec<u32>,
}

impl Cell {
    fn writer(&self, problem: Problem) -> Conflict {
        let (line, copied) = (self.write_line & !(STRONG | COPIED | REDUCED), self.write_line & COPIED != 0);
        Conflict { problem, at: 0, other: self.write, line, other_writes: true, copied }
    }

    /// Whether a generic access of `view` may follow the last write.
    #[inline]
    fn after_write(&self, view: &View, strong: bool) -> Option<Conflict> {
        if view.follows(self.write) || (strong && self.write_line & STRONG != 0) {
            return None;
        }
        Some(self.writer(self.unseen(view)))
    }

    /// Why `view` does not follow the last write.
    fn unseen(&self, view: &View) -> Problem {
        if view.knows_over(self.write) { Problem::Untold } else { Problem::Unordered }
    }

    /// Whether an asynchronous access that `view` starts may follow the last write. One that `replaces` what the asynchronous
    /// proxy itself wrote need not see it.
    fn after_write_async(&self, view: &View, threads: Component, replaces: bool) -> Option<Conflict> {
        // What the asynchronous proxy itself wrote needs no fence: learning of its completion is one.
        let by_threads = self.write.component() < threads || self.write_line & COPIED != 0;
        let generic = !self.write.is_none() && by_threads;
        let is_replaced = replaces && !generic && view.knows_over(self.write);
        if !view.follows(self.write) && !is_replaced {
            return Some(self.writer(self.unseen(view)));
        }
        (generic && !view.sees_async(self.write, Memory::Shared)).then(|| self.writer(Problem::NoProxyFence))
    }
}

impl Shadow {
    pub(super) fn new(bytes: u32) -> Self {
        let cells = vec![Cell::default(); bytes.div_ceil(4) as usize];
        Self { cells, shift: 2, sets: Vec::new(), free: Vec::new() }
    }

    /// The cells of `len` bytes at `at`, which are in bounds.
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
            if cell.read.component() == SEVERAL {
                let set = self.sets.get(cell.read.count() as usize).cloned().unwrap_or_default();
                twin.read = Epoch::new(SEVERAL, self.sets.len() as u32);
                self.sets.push(set);
            }
            cells.extend([cell, twin]);
        }
        self.cells = cells;
        self.shift -= 1;
    }

    /// A generic read.
    #[inline]
    pub(super) fn read(
        &mut self,
        at: u32,
        len: u32,
        view: &View,
        line: u32,
        strong: bool,
    ) -> Option<Conflict> {
        let mut conflict = None;
        let me = view.epoch();
        for index in self.range(at, len) {
            let cell = self.cells[index];
            if cell.write.is_none() || !view.follows(cell.write) {
                let found = match cell.write.is_none() {
                    true => Some(cell.writer(Problem::Unwritten)),
                    false => cell.after_write(view, strong),
                };
                conflict = conflict.or(found.map(|found| self.placed(found, index)));
            }
            // A strong read is not remembered: it races with a later weak write only, which is rare, and never with a
            // strong one, which is what follows a strong read.
            if cell.read != me && !strong {
                self.add_reader(index, view, me, line);
            }
        }
        conflict
    }

    /// A generic write.
    #[inline]
    pub(super) fn write(
        &mut self,
        at: u32,
        len: u32,
        view: &View,
        line: u32,
        strong: bool,
    ) -> Option<Conflict> {
        let mut conflict = None;
        let (me, marked) = (view.epoch(), if strong { line | STRONG } else { line });
        for index in self.range(at, len) {
            let cell = self.cells[index];
            if cell.write != me || !cell.read.is_none() {
                let found = cell.after_write(view, strong).or_else(|| self.after_reads(&cell, view));
                conflict = conflict.or(found.map(|found| self.placed(found, index)));
                self.forget_readers(index);
            }
            let cell = &mut self.cells[index];
            (cell.write, cell.write_line) = (me, marked);
        }
        conflict
    }

    /// An atomic operation: a strong write of what it has read.
    pub(super) fn change(&mut self, at: u32, len: u32, view: &View, line: u32) -> Option<Conflict> {
        let unwritten = self.range(at, len).find(|&index| self.cells[index].write.is_none());
        let conflict =
            unwritten.map(|index| self.placed(self.cells[index].writer(Problem::Unwritten), index));
        self.write(at, len, view, line, true).or(conflict)
    }

    /// `view` starts a `cp.async`, which writes here; `done` is the step with which it has done so.
    pub(super) fn write_copy(
        &mut self,
        at: u32,
        len: u32,
        view: &View,
        done: Epoch,
        line: u32,
    ) -> Option<Conflict> {
        let mut conflict = None;
        for index in self.range(at, len) {
            let cell = self.cells[index];
            let found = cell.after_write(view, false).or_else(|| self.after_reads(&cell, view));
            conflict = conflict.or(found.map(|found| self.placed(found, index)));
            self.forget_readers(index);
            let cell = &mut self.cells[index];
            (cell.write, cell.write_line) = (done, line | COPIED);
        }
        conflict
    }

    /// `view` starts an operation, of a number and a line, which writes here.
    pub(super) fn write_async(
        &mut self,
        at: u32,
        len: u32,
        view: &View,
        (copy, line): (u32, u32),
        manner: Manner,
        threads: Component,
    ) -> Option<Conflict> {
        let mut conflict = None;
        let flags = if manner.generic { COPIED } else { 0 } | if manner.reduces { REDUCED } else { 0 };
        for index in self.range(at, len) {
            let cell = self.cells[index];
            let among = manner.reduces && cell.write_line & REDUCED != 0;
            let after = match manner {
                Manner { reduces: true, .. } if cell.write.is_none() => Some(cell.writer(Problem::Unwritten)),
                _ if among => None,
                Manner { generic: true, .. } => cell.after_write(view, false),
                Manner { generic: false, reduces } => cell.after_write_async(view, threads, !reduces),
            };
            let found = after.or_else(|| self.after_reads(&cell, view)).or_else(|| match manner.generic {
                true => None,
                false => self.after_unfenced_reads(&cell, view, threads),
            });
            conflict = conflict.or(found.map(|found| self.placed(found, index)));
            self.forget_readers(index);
            let cell = &mut self.cells[index];
            (cell.write, cell.write_line) = (Epoch::new(IN_FLIGHT, copy), line | flags);
        }
        conflict
    }

    /// `view` starts a copy that reads here; `reader` is the step with which it has done so.
    pub(super) fn read_async(
        &mut self,
        at: u32,
        len: u32,
        view: &View,
        reader: Epoch,
        line: u32,
        threads: Component,
    ) -> Option<Conflict> {
        let mut conflict = None;
        for index in self.range(at, len) {
            let cell = self.cells[index];
            let found = match cell.write.is_none() {
                true => Some(cell.writer(Problem::Unwritten)),
                false => cell.after_write_async(view, threads, false),
            };
            conflict = conflict.or(found.map(|found| self.placed(found, index)));
            self.add_async_reader(index, view, (reader, line), threads);
        }
        conflict
    }

    /// Copy number `copy` has landed here, with the step `done`.
    pub(super) fn landed(&mut self, at: u32, len: u32, copy: u32, done: Epoch) {
        for index in self.range(at, len) {
            let cell = &mut self.cells[index];
            if cell.write == Epoch::new(IN_FLIGHT, copy) {
                cell.write = done;
            }
        }
    }

    /// An mbarrier lies here from now on.
    pub(super) fn set_opaque(&mut self, at: u32, len: u32, line: u32) {
        for index in self.range(at, len) {
            self.forget_readers(index);
            let cell = &mut self.cells[index];
            (cell.write, cell.write_line) = (Epoch::new(OPAQUE, 1), line);
        }
    }

    /// Nothing is here any more.
    pub(super) fn clear(&mut self, at: u32, len: u32) {
        for index in self.range(at, len) {
            self.forget_readers(index);
            self.cells[index] = Cell::default();
        }
    }

    fn placed(&self, conflict: Conflict, index: usize) -> Conflict {
        Conflict { at: (index as u32) << self.shift, ..conflict }
    }

    /// The first reader that `view` does not follow.
    fn after_reads(&self, cell: &Cell, view: &View) -> Option<Conflict> {
        self.first_reader(cell, Problem::Unordered, |reader| !view.knows_over(reader))
    }

    /// The first thread that has read with no proxy fence between that and what `view` starts. Readers that a later one knew of
    /// are not kept, but a fence that lies behind that one lies behind them.
    fn after_unfenced_reads(&self, cell: &Cell, view: &View, threads: Component) -> Option<Conflict> {
        self.first_reader(cell, Problem::NoProxyFence, |reader| is_unfenced(reader, view, threads))
    }

    fn first_reader(
        &self,
        cell: &Cell,
        problem: Problem,
        is_wrong: impl Fn(Epoch) -> bool,
    ) -> Option<Conflict> {
        let conflict = |&(other, line): &Reader| Conflict {
            problem,
            at: 0,
            other,
            line,
            other_writes: false,
            copied: false,
        };
        if cell.read.component() == SEVERAL {
            let set = self.sets.get(cell.read.count() as usize)?;
            return set.iter().find(|reader| is_wrong(reader.0)).map(conflict);
        }
        is_wrong(cell.read).then(|| conflict(&(cell.read, cell.read_line)))
    }

    /// Adds the reader that a copy is, for which `view` stands. A thread's read before it stays, unless there is a fence between.
    fn add_async_reader(&mut self, index: usize, view: &View, reader: Reader, threads: Component) {
        let cell = self.cells[index];
        let is_set = cell.read.component() == SEVERAL;
        if !is_set && is_unfenced(cell.read, view, threads) {
            let set = vec![(cell.read, cell.read_line), reader];
            self.cells[index].read = Epoch::new(SEVERAL, self.keep(set));
        } else {
            self.add_reader(index, view, reader.0, reader.1);
        }
    }

    /// Adds `reader`, for which `view` stands; readers that it follows need not be kept.
    fn add_reader(&mut self, index: usize, view: &View, reader: Epoch, line: u32) {
        let cell = self.cells[index];
        if cell.read.component() == SEVERAL {
            if let Some(set) = self.sets.get_mut(cell.read.count() as usize) {
                match set.iter_mut().find(|known| known.0.component() == reader.component()) {
                    Some(known) => *known = (reader, line),
                    None => set.push((reader, line)),
                }
            }
        } else if view.knows_over(cell.read) {
            let cell = &mut self.cells[index];
            (cell.read, cell.read_line) = (reader, line);
        } else {
            let set = vec![(cell.read, cell.read_line), (reader, line)];
            self.cells[index].read = Epoch::new(SEVERAL, self.keep(set));
        }
    }

    fn keep(&mut self, set: Vec<Reader>) -> u32 {
        match self.free.pop() {
            Some(index) => {
                if let Some(place) = self.sets.get_mut(index as usize) {
                    *place = set;
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
        if cell.read.component() == SEVERAL {
            let set = cell.read.count();
            if let Some(set) = self.sets.get_mut(set as usize) {
                set.clear();
            }
            self.free.push(set);
        }
        cell.read = Epoch::default();
    }
}

/// Whether `reader` is a thread with no proxy fence between its read and what `view` starts.
fn is_unfenced(reader: Epoch, view: &View, threads: Component) -> bool {
    !reader.is_none() && reader.component() < threads && !view.fences_read(reader)
}
