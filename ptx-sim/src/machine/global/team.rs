//! The arrangement of the threads of a launch, which decides whom a scope includes.
//!
//! A launch on one device is a team of one rank. Clusters are numbered through all ranks: those of
//! rank 0 come first.

use tma_model::sync::MemoryScope;

use super::mark::GridThread;
use crate::machine::types::MachineConfig;

/// The arrangement of the threads of a launch.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::machine) struct TeamLayout {
    /// Threads of a block.
    pub(in crate::machine) threads: u32,
    /// Clusters of each rank.
    clusters: u32,
    ranks: u32,
}

impl TeamLayout {
    pub(in crate::machine) fn new(config: &MachineConfig) -> Self {
        let MachineConfig { threads, clusters, ranks, .. } = *config;
        Self { threads: threads.max(1), clusters: clusters.max(1), ranks }
    }

    /// Returns the rank of a cluster; `None` if there is only one rank.
    #[inline]
    pub(in crate::machine) fn rank(self, cluster: u32) -> Option<u32> {
        (self.ranks > 1).then(|| cluster / self.clusters)
    }

    /// Returns the number of a cluster among those of its rank.
    pub(super) fn in_rank(self, cluster: u32) -> u32 {
        if self.ranks > 1 { cluster % self.clusters } else { cluster }
    }

    /// Returns the narrowest scope that includes all threads of the launch.
    #[inline]
    pub(super) fn everyone(self) -> MemoryScope {
        if self.ranks > 1 { MemoryScope::System } else { MemoryScope::Device }
    }

    /// Returns whether `scope`, around the one thread, includes the other.
    #[inline]
    pub(super) fn includes(self, scope: MemoryScope, one: GridThread, other: GridThread) -> bool {
        let same_cluster = one.cluster == other.cluster;
        let same_block = same_cluster && one.thread / self.threads == other.thread / self.threads;
        scope >= MemoryScope::around(same_block, same_cluster, self.same_rank(one.cluster, other.cluster))
    }

    /// Returns whether two clusters run on the same rank.
    #[inline]
    pub(super) fn same_rank(self, one: u32, other: u32) -> bool {
        self.rank(one) == self.rank(other)
    }
}
