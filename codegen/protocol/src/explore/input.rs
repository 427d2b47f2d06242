//! A kernel as it is explored.

use std::rc::Rc;

use tma_front::check::CheckedKernel;
use tma_front::limits::WARP_THREADS;

use super::elections::Elected;
use crate::code::Steps;
use crate::memory::region::{Region, ranges_overlap};
use crate::to_u32;

/// The input that all executions of a kernel have in common.
#[derive(Debug)]
pub(crate) struct Input<'k> {
    pub(crate) kernel: &'k CheckedKernel,
    pub(crate) code: Steps<'k>,
    /// The groups of threads of each block.
    pub(crate) groups: Vec<Rc<[u32]>>,
    /// The extents of the cluster, in blocks.
    pub(crate) cluster: [u32; 3],
    /// The number of iterations that are explored of a loop whose end is not known.
    pub(crate) max_iterations: u32,
    /// The registers per thread at the start, if known.
    pub(crate) registers: Option<u32>,
    /// The lanes that are elected, for warps in which that is not the usual lane.
    pub(crate) elected: Elected,
}

/// The lane that `elect_one` is first assumed to pick. No constant is likely to name it.
const ELECTED: u32 = 19;

impl Input<'_> {
    /// Returns the lane that `elect_one` picks in a warp.
    pub(crate) fn elected(&self, warp: u32) -> u32 {
        self.elected.get(&warp).copied().unwrap_or_else(|| self.usual(warp))
    }

    /// Returns the lane that `elect_one` is first assumed to pick.
    pub(crate) fn usual(&self, warp: u32) -> u32 {
        ELECTED.min(self.threads_of_warp(warp).saturating_sub(1))
    }

    /// Whether any byte of a region has several variables.
    pub(crate) fn is_reused(&self, region: &Region) -> bool {
        let kernel = self.kernel.kernel();
        let mut reusers = kernel.shared_ids().filter(|&id| !kernel.shared_var(id).reuses.is_empty());
        reusers.any(|id| ranges_overlap(&self.kernel.shared_range(id), &region.hull()))
    }

    /// Returns the number of threads of a block.
    pub(crate) fn threads(&self) -> u32 {
        to_u32(self.kernel.kernel().launch.thread_count())
    }

    /// Returns the number of threads that a warp begins with. The last warp may have fewer.
    pub(crate) fn threads_of_warp(&self, warp: u32) -> u32 {
        self.threads().saturating_sub(warp * WARP_THREADS).min(WARP_THREADS)
    }
}
