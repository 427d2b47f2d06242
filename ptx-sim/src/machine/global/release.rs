//! The releases of a store, and the acquires that synchronise with them.
//!
//! Source: PTX ISA, "Release and Acquire Patterns", "Memory Synchronization". A store passes on the
//! releases of its own thread. An atomic operation also passes on those of the store that it read.
//! An acquire synchronises with each release individually: both scopes must include the other
//! thread.

use std::sync::Arc;

use tma_model::sync::MemoryScope;

use super::cross_cluster::CrossClusterKnowledge;
use super::mark::GridThread;
use super::team::TeamLayout;

/// A release by a thread.
#[derive(Clone, Debug)]
pub(super) struct Release {
    /// The scope of the release, or of the fence before the store.
    pub(super) scope: MemoryScope,
    by: GridThread,
    knows: Arc<CrossClusterKnowledge>,
}

impl Release {
    pub(super) fn new(scope: MemoryScope, by: GridThread, knows: CrossClusterKnowledge) -> Self {
        Self { scope, by, knows: Arc::new(knows) }
    }

    fn is_of_device(&self) -> bool {
        self.scope >= MemoryScope::Device
    }

    /// Returns whether both releases are by the same author with the same scope.
    fn is_like(&self, other: &Self) -> bool {
        self.by == other.by && self.scope == other.scope
    }

    /// Returns whether an acquire with this scope by `thread` synchronises with the release.
    fn reaches(&self, thread: GridThread, scope: MemoryScope, layout: TeamLayout) -> bool {
        layout.includes(self.scope.min(scope), self.by, thread)
    }
}

/// The most releases that are kept apart. Keeping the knowledge of many blocks, each about all
/// blocks before it, would exhaust memory, so beyond this number the releases at device scope or
/// wider are merged.
const MOST_BLOCKS: usize = 64;

/// The releases that a store passes on.
#[derive(Clone, Debug, Default)]
pub(super) struct Releases {
    /// One release for each block and scope. The threads that a release reaches do not depend on
    /// the releasing thread within the block.
    of_blocks: Vec<Release>,
    /// The releases at device scope or wider, which are numerous in a kernel whose blocks count at
    /// one location.
    of_devices: Vec<DeviceRelease>,
    /// Whether there are too many releases to keep those at device scope or wider apart. They are then
    /// assumed to reach every acquire on their device, which may hide findings.
    is_merged: bool,
}

/// The joint knowledge of all releases at one scope, the device's or wider, by threads of one rank.
/// All of them reach the same acquires.
#[derive(Clone, Debug)]
struct DeviceRelease {
    scope: MemoryScope,
    /// The rank; `None` if there is only one.
    rank: Option<u32>,
    knows: Arc<CrossClusterKnowledge>,
}

/// The releases of a store, shared by all stores that pass on the same ones.
pub(super) type Released = Arc<Releases>;

/// Adds knowledge.
fn join(known: &mut Arc<CrossClusterKnowledge>, acquired: &CrossClusterKnowledge) {
    if !known.covers(acquired) {
        Arc::make_mut(known).join(acquired);
    }
}

/// Adds a release.
pub(super) fn add_release(released: &mut Released, release: &Release, layout: TeamLayout) {
    let by = GridThread { thread: release.by.thread / layout.threads * layout.threads, ..release.by };
    let release =
        Release { scope: release.scope.min(layout.everyone()), by, knows: Arc::clone(&release.knows) };
    let rank = layout.rank(by.cluster);
    if !released.knows(&release, rank) {
        Arc::make_mut(released).add(release, rank);
    }
}

impl Releases {
    pub(super) fn is_empty(&self) -> bool {
        self.of_blocks.is_empty() && self.of_devices.is_empty()
    }

    fn knows(&self, release: &Release, rank: Option<u32>) -> bool {
        let mut known =
            self.of_blocks.iter().filter(|known| known.is_like(release)).map(|known| &known.knows);
        let is_merged = self.is_merged && release.is_of_device();
        let mut joint = self
            .of_devices
            .iter()
            .filter(|joint| is_merged && (joint.scope, joint.rank) == (release.scope, rank));
        known
            .next()
            .or(joint.next().map(|joint| &joint.knows))
            .is_some_and(|known| known.covers(&release.knows))
    }

    fn add(&mut self, release: Release, rank: Option<u32>) {
        if release.is_of_device() {
            self.add_joint(&DeviceRelease { scope: release.scope, rank, knows: Arc::clone(&release.knows) });
            if self.is_merged {
                return;
            }
        }
        match self.of_blocks.iter_mut().find(|known| known.is_like(&release)) {
            Some(known) => join(&mut known.knows, &release.knows),
            None => self.of_blocks.push(release),
        }
        if self.of_blocks.len() > MOST_BLOCKS && !self.of_devices.is_empty() {
            self.merge();
        }
    }

    fn add_joint(&mut self, release: &DeviceRelease) {
        let is_like = |known: &&mut DeviceRelease| (known.scope, known.rank) == (release.scope, release.rank);
        match self.of_devices.iter_mut().find(is_like) {
            Some(known) => join(&mut known.knows, &release.knows),
            None => self.of_devices.push(release.clone()),
        }
    }

    fn merge(&mut self) {
        self.is_merged = true;
        self.of_blocks.retain(|known| !known.is_of_device());
    }

    /// Adds the releases of `others`.
    pub(super) fn join(all: &mut Released, others: &Self, layout: TeamLayout) {
        others.of_blocks.iter().for_each(|release| add_release(all, release, layout));
        if others.is_merged {
            let all = Arc::make_mut(all);
            others.of_devices.iter().for_each(|joint| all.add_joint(joint));
            all.merge();
        }
    }

    /// Returns the knowledge that an acquire with this scope by `thread` receives, and the
    /// knowledge that it misses because a scope excludes the other thread.
    pub(super) fn split(
        &self,
        thread: GridThread,
        scope: MemoryScope,
        layout: TeamLayout,
    ) -> [Vec<&Arc<CrossClusterKnowledge>>; 2] {
        let (mut reached, mut missed) = (Vec::new(), Vec::new());
        let is_joint = scope >= MemoryScope::Device || self.is_merged;
        if is_joint {
            for joint in &self.of_devices {
                let is_reached = joint.rank == layout.rank(thread.cluster)
                    || joint.scope.min(scope) == MemoryScope::System;
                let part = if is_reached { &mut reached } else { &mut missed };
                part.push(&joint.knows);
            }
        }
        for release in self.of_blocks.iter().filter(|release| !is_joint || !release.is_of_device()) {
            let part = if release.reaches(thread, scope, layout) { &mut reached } else { &mut missed };
            part.push(&release.knows);
        }
        [reached, missed]
    }
}
