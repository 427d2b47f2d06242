//! What was released with a store, and which acquires synchronise with it.
//!
//! Source: PTX ISA, "Release and Acquire Patterns", "Memory Synchronization". A store hands on the
//! releases of its own thread, and an atomic operation also those of the store that it has read. An
//! acquire synchronises with each of them for itself: both scopes have to include the other thread.

use std::sync::Arc;

use tma_model::sync::MemoryScope;

use super::foreign::Foreign;
use super::mark::Author;

/// A release that a thread has made.
#[derive(Clone, Debug)]
pub(super) struct Release {
    /// The scope of the release, or of the fence before the store.
    pub(super) scope: MemoryScope,
    by: Author,
    knows: Arc<Foreign>,
}

impl Release {
    pub(super) fn new(scope: MemoryScope, by: Author, knows: Foreign) -> Self {
        Self { scope, by, knows: Arc::new(knows) }
    }

    fn is_wide(&self) -> bool {
        self.scope >= MemoryScope::Device
    }

    /// Whether it is of the same block and scope.
    fn is_like(&self, other: &Self) -> bool {
        self.by == other.by && self.scope == other.scope
    }

    /// Whether an acquire of this scope by `who` synchronises with it.
    fn reaches(&self, who: Author, scope: MemoryScope, threads: u32) -> bool {
        self.by.reaches(self.scope, who, threads) && who.reaches(scope, self.by, threads)
    }
}

/// The most blocks whose releases at the scope of the device are kept apart: what each of many
/// blocks knows of all before it would fill memory.
const MOST_BLOCKS: usize = 64;

/// The releases that a store hands on.
#[derive(Clone, Debug, Default)]
pub(super) struct Releases {
    /// One for each block and scope: whom a release reaches does not depend on the thread within
    /// the block.
    of_blocks: Vec<Release>,
    /// What all of them know that are at the scope of the device: those reach each acquire of that
    /// scope, and are many in a kernel whose blocks count at one place.
    of_device: Option<Arc<Foreign>>,
    /// Whether these are of too many blocks to be kept apart. Then they are taken to reach each
    /// acquire, which finds less.
    is_crowded: bool,
}

/// All that was released with a store. Shared by those that have it.
pub(super) type Released = Arc<Releases>;

/// Adds what others know to what is known.
fn join(known: &mut Arc<Foreign>, news: &Foreign) {
    if !known.covers(news) {
        Arc::make_mut(known).join(news);
    }
}

/// Adds a release, of blocks of so many threads.
pub(super) fn add_release(released: &mut Released, release: &Release, threads: u32) {
    let threads = threads.max(1);
    let by = Author { thread: release.by.thread / threads * threads, ..release.by };
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
        let joined = self.of_device.as_ref().filter(|_| self.is_crowded && release.is_wide());
        known.next().or(joined).is_some_and(|known| known.covers(&release.knows))
    }

    fn add(&mut self, release: Release) {
        if release.is_wide() {
            self.add_wide(&release.knows);
            if self.is_crowded {
                return;
            }
        }
        match self.of_blocks.iter_mut().find(|known| known.is_like(&release)) {
            Some(known) => join(&mut known.knows, &release.knows),
            None => self.of_blocks.push(release),
        }
        if self.of_blocks.len() > MOST_BLOCKS && self.of_device.is_some() {
            self.crowd();
        }
    }

    fn add_wide(&mut self, knows: &Arc<Foreign>) {
        match &mut self.of_device {
            Some(known) => join(known, knows),
            None => self.of_device = Some(Arc::clone(knows)),
        }
    }

    fn crowd(&mut self) {
        self.is_crowded = true;
        self.of_blocks.retain(|known| !known.is_wide());
    }

    /// Adds others.
    pub(super) fn join(all: &mut Released, others: &Self, threads: u32) {
        others.of_blocks.iter().for_each(|release| add_release(all, release, threads));
        if let Some(knows) = others.of_device.as_ref().filter(|_| others.is_crowded) {
            let all = Arc::make_mut(all);
            all.add_wide(knows);
            all.crowd();
        }
    }

    /// What an acquire of this scope by `who` learns, and then what it does not learn because a
    /// scope leaves out the other thread.
    pub(super) fn split(&self, who: Author, scope: MemoryScope, threads: u32) -> [Vec<&Arc<Foreign>>; 2] {
        let joined = self.of_device.as_ref().filter(|_| scope >= MemoryScope::Device || self.is_crowded);
        let (mut reached, mut missed) = (Vec::from_iter(joined), Vec::new());
        for release in self.of_blocks.iter().filter(|release| joined.is_none() || !release.is_wide()) {
            let part = if release.reaches(who, scope, threads) { &mut reached } else { &mut missed };
            part.push(&release.knows);
        }
        [reached, missed]
    }
}
