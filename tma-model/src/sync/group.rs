//! Groups of asynchronous copies that a thread can wait for.

/// The stage of a bulk group that a wait is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupEnd {
    /// `.read`: the sources of the group have been read, and may be overwritten.
    Read,
    /// The destinations of the group have been written.
    Written,
}

/// The result of a wait for groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupWait {
    /// Copies are still in flight.
    Pending,
    /// All groups up to `last` are complete.
    Done {
        /// Number of the last complete group, from 1; 0 if there was no group to wait for.
        last: u32,
        /// Whether this is the first wait to find this group complete.
        is_first: bool,
    },
}

/// The bulk groups of a thread, numbered from 1. Source: PTX ISA, "cp.async.bulk.commit_group",
/// "cp.async.bulk.wait_group". Groups of `wgmma` count in the same way, but only have reads.
#[derive(Clone, Debug, Default)]
pub struct BulkGroups {
    /// The last committed group.
    committed: u32,
    /// The last group that a wait has found read, or read and written.
    waited: u32,
    /// Groups with copies in flight.
    open: Vec<OpenGroup>,
}

/// The pieces in flight of the copies of one group.
#[derive(Clone, Copy, Debug)]
struct OpenGroup {
    number: u32,
    to_read: u32,
    to_write: u32,
}

impl BulkGroups {
    /// Returns the group of the next copy.
    pub fn current(&self) -> u32 {
        self.committed.saturating_add(1)
    }

    /// Returns the last committed group.
    pub fn committed(&self) -> u32 {
        self.committed
    }

    /// Returns the state: the last committed group, the last group that was waited for, and the
    /// groups with copies in flight, each with its pieces to be read and to be written.
    pub fn state(&self) -> impl Iterator<Item = (u32, [u32; 2])> {
        let open = self.open.iter().map(|group| (group.number, [group.to_read, group.to_write]));
        [(self.committed, [0; 2]), (self.waited, [0; 2])].into_iter().chain(open)
    }

    /// Starts copies in the current group, with `pieces` pieces to be read and written.
    pub fn start(&mut self, pieces: u32) {
        let current = self.current();
        let group = match self.open.iter().position(|group| group.number == current) {
            Some(index) => &mut self.open[index],
            None => self.open.push_mut(OpenGroup { number: current, to_read: 0, to_write: 0 }),
        };
        group.to_read += pieces;
        group.to_write += pieces;
    }

    fn group_mut(&mut self, number: u32) -> Option<&mut OpenGroup> {
        self.open.iter_mut().find(|group| group.number == number)
    }

    /// Records that a piece of a group has been read.
    pub fn read(&mut self, number: u32) {
        let group = self.group_mut(number);
        debug_assert!(group.as_ref().is_some_and(|group| group.to_read > 0), "a piece is read once");
        if let Some(group) = group {
            group.to_read = group.to_read.saturating_sub(1);
        }
    }

    /// Records that a piece of a group has been written.
    pub fn written(&mut self, number: u32) {
        let group = self.group_mut(number);
        debug_assert!(group.as_ref().is_some_and(|group| group.to_write > 0), "a piece is written once");
        if let Some(group) = group {
            group.to_write = group.to_write.saturating_sub(1);
        }
    }

    /// `commit_group`: the copies since the last commit become a group.
    pub fn commit(&mut self) {
        self.committed = self.current();
    }

    /// Returns whether all groups up to `last` have reached `end`.
    pub fn is_done(&self, last: u32, end: GroupEnd) -> bool {
        let in_flight = |group: &OpenGroup| match end {
            GroupEnd::Read => group.to_read > 0,
            GroupEnd::Written => group.to_read > 0 || group.to_write > 0,
        };
        !self.open.iter().any(|group| group.number <= last && in_flight(group))
    }

    /// `wait_group`: waits until at most `pending` committed groups have not reached `end`.
    pub fn wait(&mut self, pending: u32, end: GroupEnd) -> GroupWait {
        let last = self.committed.saturating_sub(pending);
        self.open.retain(|group| group.to_read > 0 || group.to_write > 0);
        if !self.is_done(last, end) {
            return GroupWait::Pending;
        }
        let is_first = last > self.waited;
        self.waited = self.waited.max(last);
        GroupWait::Done { last, is_first }
    }
}

/// The copies of a thread by `cp.async` without `.bulk`, in batches numbered from 1. A batch ends
/// at `commit_group` or `cp.async.mbarrier.arrive`. Source: PTX ISA, "cp.async",
/// "cp.async.commit_group", "cp.async.wait_group", "cp.async.mbarrier.arrive".
#[derive(Clone, Debug, Default)]
pub struct CopyGroups {
    /// The last batch that has ended.
    ended: u32,
    /// The last batch of each group that was committed and not yet waited for.
    groups: Vec<u32>,
    /// Batches with copies in flight, and the number of these copies.
    open: Vec<(u32, u32)>,
}

impl CopyGroups {
    /// Returns the batch of the next copy.
    pub fn current(&self) -> u32 {
        self.ended.saturating_add(1)
    }

    /// Starts a copy in the current batch.
    pub fn start(&mut self) {
        let current = self.current();
        match self.open.iter_mut().find(|open| open.0 == current) {
            Some(open) => open.1 += 1,
            None => self.open.push((current, 1)),
        }
    }

    /// Records that a copy of a batch has landed.
    pub fn landed(&mut self, batch: u32) {
        let open = self.open.iter_mut().find(|open| open.0 == batch);
        debug_assert!(open.is_some(), "a copy lands once");
        if let Some(open) = open {
            open.1 -= 1;
        }
        self.open.retain(|open| open.1 > 0);
    }

    /// Ends the current batch, and returns its number.
    pub fn end_batch(&mut self) -> u32 {
        self.ended = self.current();
        self.ended
    }

    /// `commit_group`: the copies since the last commit become a group.
    pub fn commit(&mut self) {
        let batch = self.end_batch();
        self.groups.push(batch);
    }

    /// Returns whether all copies of batches up to `batch` have landed.
    pub fn has_landed(&self, batch: u32) -> bool {
        self.open.iter().all(|&(open, _)| open > batch)
    }

    /// `wait_group`: waits until at most `pending` groups are left. `None` is `wait_all`, which
    /// waits for all copies, committed or not.
    pub fn wait(&mut self, pending: Option<u32>) -> GroupWait {
        let last = match pending {
            None => Some(self.current()),
            Some(pending) => {
                let last = self.groups.len().checked_sub((pending as usize).saturating_add(1));
                last.and_then(|last| self.groups.get(last).copied())
            }
        };
        let Some(last) = last else { return GroupWait::Done { last: 0, is_first: false } };
        if !self.has_landed(last) {
            return GroupWait::Pending;
        }
        self.ended = self.ended.max(last);
        self.groups.retain(|&group| group > last);
        GroupWait::Done { last, is_first: true }
    }
}
