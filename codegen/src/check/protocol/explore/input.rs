//! A kernel as it is explored.

use std::rc::Rc;

use super::elections::Elected;
use crate::check::CheckedKernel;
use crate::check::protocol::code::Steps;
use crate::check::protocol::to_u32;
use crate::limits::WARP_THREADS;

/// The input that all executions of a kernel have in common.
#[derive(Debug)]
pub(in crate::check::protocol) struct Input<'k> {
    pub(in crate::check::protocol) kernel: &'k CheckedKernel,
    pub(in crate::check::protocol) code: Steps<'k>,
    /// The groups of threads of each block.
    pub(in crate::check::protocol) groups: Vec<Rc<[u32]>>,
    /// The extents of the cluster, in blocks.
    pub(in crate::check::protocol) cluster: [u32; 3],
    /// The number of iterations that are explored of a loop whose end is not known.
    pub(in crate::check::protocol) max_iterations: u32,
    /// The registers per thread at the start, if known.
    pub(in crate::check::protocol) registers: Option<u32>,
    /// The lanes that are elected, for warps in which that is not the usual lane.
    pub(in crate::check::protocol) elected: Elected,
}

/// The lane that `elect_one` is first assumed to pick. No constant is likely to name it.
const ELECTED: u32 = 19;

impl Input<'_> {
    /// Returns the lane that `elect_one` picks in a warp.
    pub(in crate::check::protocol) fn elected(&self, warp: u32) -> u32 {
        self.elected.get(&warp).copied().unwrap_or_else(|| self.usual(warp))
    }

    /// Returns the lane that `elect_one` is first assumed to pick.
    pub(in crate::check::protocol) fn usual(&self, warp: u32) -> u32 {
        ELECTED.min(self.threads_of_warp(warp).saturating_sub(1))
    }

    /// Returns the number of threads of a block.
    pub(in crate::check::protocol) fn threads(&self) -> u32 {
        to_u32(self.kernel.kernel().launch.thread_count())
    }

    /// Returns the number of threads that a warp begins with. The last warp may have fewer.
    pub(in crate::check::protocol) fn threads_of_warp(&self, warp: u32) -> u32 {
        self.threads().saturating_sub(warp * WARP_THREADS).min(WARP_THREADS)
    }
}
