//! What the machine keeps of each thread and block.

use super::clock::{Epoch, Gathered, View};
use super::mbarrier::Mbarriers;
use super::shadow::Shadow;
use super::sync::{NAMED_BARRIERS, NamedBarrier};
use super::types::{Site, ThreadId, Votes};

/// What memory holds before anything is written, and where a copy is to land: a NaN in each floating-point type.
pub(super) const POISON: u8 = 0xff;

/// A thread.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) view: View,
    pub(super) exited: bool,
    /// The named barrier it waits in, and the round of it.
    pub(super) at_barrier: Option<(u32, u64)>,
    /// The round of the cluster barrier that it has arrived in and not waited for.
    pub(super) at_cluster: Option<u64>,
    pub(super) votes: Votes,
    /// How often a try_wait timed out in a row.
    pub(super) timeouts: u32,
    /// How often it has asked an mbarrier in vain since the last time that it did not.
    pub(super) in_vain: u32,
    /// The last wait at an mbarrier that was over.
    pub(super) passed: Option<Passed>,
    pub(super) bulk: Bulk,
    /// What its last fence tells with later relaxed writes.
    pub(super) published: Option<Gathered>,
    /// What relaxed reads have seen, to be known after the next fence.
    pub(super) heard: Option<Gathered>,
}

impl Thread {
    pub(super) fn new(component: u32, checked: bool) -> Self {
        Self {
            view: View::new(component, checked),
            exited: false,
            at_barrier: None,
            at_cluster: None,
            votes: Votes::default(),
            timeouts: 0,
            in_vain: 0,
            passed: None,
            bulk: Bulk::default(),
            published: None,
            heard: None,
        }
    }
}

/// A wait that was over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passed {
    /// The block and the place of the mbarrier.
    pub(super) rank: usize,
    pub(super) at: u32,
    /// The phases of it that were complete.
    pub(super) phase: u32,
    /// The thread's step.
    pub(super) step: u32,
    pub(super) site: Site,
}

/// The bulk groups of a thread, numbered from 1.
#[derive(Debug, Default)]
pub(super) struct Bulk {
    /// The clock component that counts the groups that were waited for.
    pub(super) component: Option<u32>,
    /// The last group that was committed.
    pub(super) committed: u32,
    /// The last group known to be read, by a wait.
    pub(super) waited: u32,
    /// Of each group with copies under way: number, copies to be read, copies to be written.
    pub(super) open: Vec<Group>,
    /// The site of the last copy of each group not waited for.
    pub(super) sites: Vec<(u32, Site)>,
}

/// Copies of a bulk group that are under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    pub(super) number: u32,
    pub(super) to_read: u32,
    pub(super) to_write: u32,
}

impl Bulk {
    /// The group of `number`, which is made if nothing of it is under way.
    pub(super) fn group(&mut self, number: u32) -> &mut Group {
        let index = match self.open.iter().position(|group| group.number == number) {
            Some(index) => index,
            None => {
                self.open.push(Group { number, to_read: 0, to_write: 0 });
                self.open.len() - 1
            }
        };
        &mut self.open[index]
    }

    /// Whether all groups up to `last` are read, and also written unless `read_only`.
    pub(super) fn done(&self, last: u32, read_only: bool) -> bool {
        !self
            .open
            .iter()
            .any(|group| group.number <= last && (group.to_read > 0 || (group.to_write > 0 && !read_only)))
    }

    /// Forgets groups that have nothing left.
    pub(super) fn tidy(&mut self) {
        self.open.retain(|group| group.to_read > 0 || group.to_write > 0);
    }
}

/// A copy out of a block's shared memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lent {
    /// The step that tells of its end.
    pub(super) done: Epoch,
    pub(super) who: ThreadId,
    pub(super) site: Site,
}

/// A block.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) data: Vec<u8>,
    pub(super) shadow: Shadow,
    pub(super) mbarriers: Mbarriers,
    pub(super) named: [NamedBarrier; NAMED_BARRIERS],
    /// Threads that have not exited.
    pub(super) live: u32,
    /// The last step in which each thread of another block was here, by number, and its PTX line; none before the first.
    pub(super) visits: Vec<(u32, u32)>,
    /// The copies from here into other blocks that no thread that has ended knows to be complete.
    pub(super) lent: Vec<Lent>,
}

impl Block {
    pub(super) fn new(threads: u32, bytes: u32) -> Self {
        // The end is rounded up, so that the cells and mbarriers of the last bytes are whole.
        Self {
            data: vec![POISON; bytes.next_multiple_of(8) as usize],
            shadow: Shadow::new(bytes.next_multiple_of(8)),
            mbarriers: Mbarriers::new(bytes),
            named: std::array::from_fn(|_| NamedBarrier::default()),
            live: threads,
            visits: Vec::new(),
            lent: Vec::new(),
        }
    }
}

/// Numbers from the seed: splitmix64 (Steele, Lea and Flood, OOPSLA 2014).
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`, which is not 0.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }
}
