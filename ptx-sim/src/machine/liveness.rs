//! The threads that have not exited.

use super::index::{BlockRank, PerBlock, PerThread, Shape, ThreadId};

/// The threads of a cluster that have not exited.
#[derive(Debug)]
pub(super) struct Liveness {
    live: PerBlock<u32>,
    exited: PerThread<bool>,
}

impl Liveness {
    pub(super) fn new(shape: Shape) -> Self {
        Self { live: PerBlock::new(shape, || shape.threads), exited: PerThread::new(shape, |_| false) }
    }

    /// Returns how many threads of a block have not exited.
    #[inline]
    pub(super) fn of_block(&self, rank: BlockRank) -> u32 {
        self.live[rank]
    }

    /// Returns how many threads of the cluster have not exited.
    pub(super) fn of_cluster(&self) -> u32 {
        self.live.iter().map(|(_, live)| live).sum()
    }

    /// Returns whether a thread has exited.
    pub(super) fn has_exited(&self, thread: ThreadId) -> bool {
        self.exited[thread]
    }

    /// Records that a thread exits.
    pub(super) fn exit(&mut self, thread: ThreadId) {
        debug_assert!(!self.exited[thread], "a thread exits once");
        debug_assert!(self.live[thread.block] > 0, "a thread that exits was live");
        self.exited[thread] = true;
        self.live[thread.block] -= 1;
    }
}
