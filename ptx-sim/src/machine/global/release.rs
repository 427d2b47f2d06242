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

    fn is_wide(&self) -> bool {
        self.scope >= MemoryScope::Device
    }

    /// Returns whether both releases are by the same author with the same scope.
    fn is_like(&self, other: &Self) -> bool {
        self.by == other.by && self.scope == other.scope
    }

    /// Returns whether an acquire with this scope by `thread` synchronises with the release.
    fn reaches(&self, thread: GridThread, scope: MemoryScope, threads: u32) -> bool {
        self.by.reaches(self.scope, thread, threads) && thread.reaches(scope, self.by, threads)
    }
}

/// The most releases that are kept apart. Keeping the knowledge of many blocks, each about all
/// blocks before it, would exhaust memory, so beyond this number the releases at device scope are
/// merged.
const MOST_BLOCKS: usize = 64;

/// The releases that a store passes on.
#[derive(Clone, Debug, Default)]
pub(super) struct Releases {
    /// One release for each block and scope. The threads that a release reaches do not depend on
    /// the releasing thread within the block.
    of_blocks: Vec<Release>,
    /// The joint knowledge of all releases at device scope. These reach every acquire of that
    /// scope, and are numerous in a kernel whose blocks count at one location.
    of_device: Option<Arc<CrossClusterKnowledge>>,
    /// Whether there are too many releases to keep those at device scope apart. They are then
    /// assumed to reach every acquire, which may hide findings.
    is_merged: bool,
}

/// The releases of a store, shared by all stores that pass on the same ones.
pub(super) type Released = Arc<Releases>;

/// Adds knowledge.
fn join(known: &mut Arc<CrossClusterKnowledge>, acquired: &CrossClusterKnowledge) {
    if !known.covers(acquired) {
        Arc::make_mut(known).join(acquired);
    }
}

/// Adds a release. Blocks have `threads` threads.
pub(super) fn add_release(released: &mut Released, release: &Release, threads: u32) {
    let threads = threads.max(1);
    let by = GridThread { thread: release.by.thread / threads * threads, ..release.by };
    let release =
        Release { scope: release.scope.min(MemoryScope::Device), by, knows: Arc::clone(&release.knows) };
    if !released.knows(&release) {
        Arc::make_mut(released).add(release);
    }
}

impl Releases {
    pub(super) fn is_empty(&self) -> bool {
        self.of_blocks.is_empty() && self.of_device.is_none()
    }

    fn knows(&self, release: &Release) -> bool {
        let mut known =
            self.of_blocks.iter().filter(|known| known.is_like(release)).map(|known| &known.knows);
        let merge_ranges = self.of_device.as_ref().filter(|_| self.is_merged && release.is_wide());
        known.next().or(merge_ranges).is_some_and(|known| known.covers(&release.knows))
    }

    fn add(&mut self, release: Release) {
        if release.is_wide() {
            self.add_wide(&release.knows);
            if self.is_merged {
                return;
            }
        }
        match self.of_blocks.iter_mut().find(|known| known.is_like(&release)) {
            Some(known) => join(&mut known.knows, &release.knows),
            None => self.of_blocks.push(release),
        }
        if self.of_blocks.len() > MOST_BLOCKS && self.of_device.is_some() {
            self.merge_wide();
        }
    }

    fn add_wide(&mut self, knows: &Arc<CrossClusterKnowledge>) {
        match &mut self.of_device {
            Some(known) => join(known, knows),
            None => self.of_device = Some(Arc::clone(knows)),
        }
    }

    fn merge_wide(&mut self) {
        self.is_merged = true;
        self.of_blocks.retain(|known| !known.is_wide());
    }

    /// Adds the releases of `others`.
    pub(super) fn join(all: &mut Released, others: &Self, threads: u32) {
        others.of_blocks.iter().for_each(|release| add_release(all, release, threads));
        if let Some(knows) = others.of_device.as_ref().filter(|_| others.is_merged) {
            let all = Arc::make_mut(all);
            all.add_wide(knows);
            all.merge_wide();
        }
    }

    /// Returns the knowledge that an acquire with this scope by `thread` receives, and the
    /// knowledge that it misses because a scope excludes the other thread.
    pub(super) fn split(
        &self,
        thread: GridThread,
        scope: MemoryScope,
        threads: u32,
    ) -> [Vec<&Arc<CrossClusterKnowledge>>; 2] {
        let merge_ranges = self.of_device.as_ref().filter(|_| scope >= MemoryScope::Device || self.is_merged);
        let (mut reached, mut missed) = (Vec::from_iter(merge_ranges), Vec::new());
        for release in self.of_blocks.iter().filter(|release| merge_ranges.is_none() || !release.is_wide()) {
            let part = if release.reaches(thread, scope, threads) { &mut reached } else { &mut missed };
            part.push(&release.knows);
        }
        [reached, missed]
    }
}
