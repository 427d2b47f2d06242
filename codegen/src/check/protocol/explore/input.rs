//! A kernel as it is followed.

use std::rc::Rc;

use super::elections::Elected;
use crate::check::CheckedKernel;
use crate::check::protocol::code::Steps;
use crate::limits::WARP_THREADS;

/// What all worlds of a kernel have in common.
#[derive(Debug)]
pub(in crate::check::protocol) struct Input<'k> {
    pub(in crate::check::protocol) kernel: &'k CheckedKernel,
    pub(in crate::check::protocol) code: Steps<'k>,
    /// The groups that the threads of each block are in.
    pub(in crate::check::protocol) groups: Vec<Rc<[u32]>>,
    /// The extents of the cluster.
    pub(in crate::check::protocol) cluster: [u32; 3],
    /// How many turns of a loop are looked at whose end is not known.
    pub(in crate::check::protocol) most_turns: u32,
    /// Registers of a thread at its start, where that is known.
    pub(in crate::check::protocol) registers: Option<u32>,
    /// The lanes that are elected, of warps of which others than usual are.
    pub(in crate::check::protocol) elected: Elected,
}

/// The lane that `elect_one` is first taken to pick, one that no constant is likely to name.
const ELECTED: u32 = 19;

impl Input<'_> {
    /// The lane that `elect_one` picks of a warp.
    pub(in crate::check::protocol) fn elected(&self, warp: u32) -> u32 {
        self.elected.get(&warp).copied().unwrap_or_else(|| self.usual(warp))
    }

    /// The lane that it is first taken to pick.
    pub(in crate::check::protocol) fn usual(&self, warp: u32) -> u32 {
        ELECTED.min(self.threads_of_warp(warp).saturating_sub(1))
    }

    /// The threads of a block.
    pub(in crate::check::protocol) fn threads(&self) -> u32 {
        u32::try_from(self.kernel.kernel().launch.thread_count()).unwrap_or(u32::MAX)
    }

    /// The threads that a warp begins with: the last one may have fewer.
    pub(in crate::check::protocol) fn threads_of_warp(&self, warp: u32) -> u32 {
        self.threads().saturating_sub(warp * WARP_THREADS).min(WARP_THREADS)
    }
}
