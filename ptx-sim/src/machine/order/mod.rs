//! The happens-before relation: the clocks of threads, releases to memory, and fences.
//!
//! Source: PTX ISA, "Release and acquire patterns". Each location keeps the knowledge that was
//! released to it. An atomic operation adds to it (continuing the release sequence), and a store
//! replaces it.

mod observed;

use std::collections::{BTreeMap, HashMap};

use tma_model::sync::{Acquirer, Component, Epoch, Knowledge, Order, Releases, View};

use super::index::{BlockRank, PerThread, Shape, ThreadId, WarpIndex};
use super::memory::{Conflict, MemoryLocation, SharedLocation};
use super::sizes::Sizes;
use observed::Observed;

/// The knowledge that the agents of a cluster have of each other.
#[derive(Debug)]
pub(super) struct HappensBefore {
    shape: Shape,
    /// Whether order is checked. If not, no thread acquires anything.
    checked: bool,
    views: PerThread<View>,
    fences: PerThread<Fences>,
    /// The knowledge released to each location.
    released: HashMap<MemoryLocation, Releases>,
    observed: Observed,
    acquirer: Acquirer,
    /// The next clock component. Those below the number of threads belong to the threads.
    next: u32,
    /// The thread that each other component is attributed to: the issuer of the bulk group, or of
    /// the last load to an mbarrier.
    agents: BTreeMap<Component, ThreadId>,
}

/// The effect of a thread's fences on its relaxed accesses.
#[derive(Debug, Default)]
struct Fences {
    /// The knowledge that the last fence releases with later relaxed writes.
    release: Option<Releases>,
    /// The knowledge that relaxed reads have read, to be acquired by the next fence.
    acquire: Option<Releases>,
}

impl HappensBefore {
    pub(super) fn new(shape: Shape, checked: bool) -> Self {
        Self {
            shape,
            checked,
            views: PerThread::new(shape, |component| View::new(component, checked)),
            fences: PerThread::new(shape, |_| Fences::default()),
            released: HashMap::new(),
            observed: Observed::default(),
            acquirer: Acquirer::default(),
            next: shape.all(),
            agents: BTreeMap::new(),
        }
    }

    /// Returns whether order is checked.
    #[inline]
    pub(super) fn is_checked(&self) -> bool {
        self.checked
    }

    /// Returns the knowledge of a thread.
    #[inline]
    pub(super) fn view(&self, thread: ThreadId) -> &View {
        &self.views[thread]
    }

    /// Returns the knowledge of each thread of a warp.
    pub(super) fn of_warp(&self, block: BlockRank, warp: WarpIndex) -> &[View] {
        self.views.lanes(block, warp)
    }

    pub(super) fn view_mut(&mut self, thread: ThreadId) -> &mut View {
        &mut self.views[thread]
    }

    /// Allocates a clock component for an asynchronous agent.
    pub(super) fn new_component(&mut self) -> Component {
        self.next += 1;
        Component::new(self.next - 1)
    }

    /// Attributes an asynchronous component to `thread` from now on.
    pub(super) fn name_agent(&mut self, component: Component, thread: ThreadId) {
        debug_assert!(component.number() >= self.shape.all(), "threads have components of their own");
        self.agents.insert(component, thread);
    }

    /// Returns the thread that an asynchronous component is attributed to.
    pub(super) fn agent(&self, component: Component) -> Option<ThreadId> {
        self.agents.get(&component).copied()
    }

    /// Releases the knowledge of a thread, including its own steps.
    pub(super) fn release(&mut self, thread: ThreadId, releases: &mut Releases) {
        releases.release(&mut self.views[thread]);
    }

    /// Lets a thread acquire released knowledge.
    pub(super) fn acquire(&mut self, thread: ThreadId, acquired: &Knowledge) {
        self.acquirer.acquire(&mut self.views[thread], acquired);
    }

    /// Synchronises the given `lanes` of a warp.
    pub(super) fn sync_lanes(&mut self, block: BlockRank, warp: WarpIndex, lanes: u32) {
        let views = self.views.of_warp(block, warp);
        let mut releases = Releases::default();
        let takes_part = |lane: usize| lanes >> lane & 1 == 1;
        for (_, view) in views.iter_mut().enumerate().filter(|(lane, _)| takes_part(*lane)) {
            releases.release(view);
        }
        let all = releases.join();
        for (_, view) in views.iter_mut().enumerate().filter(|(lane, _)| takes_part(*lane)) {
            self.acquirer.acquire(view, &all);
        }
    }

    /// Executes a strong read.
    pub(super) fn strong_read(
        &mut self,
        thread: ThreadId,
        location: MemoryLocation,
        order: Order,
        sizes: Sizes,
    ) {
        if let MemoryLocation::Shared(location) = location {
            self.observed.read(thread, self.views[thread].epoch(), location, sizes);
        }
        if self.released.is_empty() {
            return;
        }
        let Some(released) = self.released.get_mut(&location) else { return };
        let acquired = released.join();
        if order.acquires() {
            self.acquire(thread, &acquired);
        } else {
            self.fences[thread].acquire.get_or_insert_default().add(&acquired);
        }
    }

    /// Executes a strong store, which replaces the knowledge released to that location.
    pub(super) fn strong_store(&mut self, thread: ThreadId, location: MemoryLocation, order: Order) {
        let releases = order.releases() || self.fences[thread].release.is_some();
        if releases || !self.released.is_empty() {
            self.released.insert(location, Releases::default());
            self.release_to(thread, location, order);
        }
    }

    /// Notes that a strong write to shared memory has been recorded with the current step of its
    /// thread.
    pub(super) fn note_strong_write(&mut self, thread: ThreadId, location: SharedLocation, sizes: Sizes) {
        let view = &mut self.views[thread];
        self.observed.write(thread, view.epoch(), location, sizes);
        view.step();
    }

    /// Returns whether the thread is ordered after a strong read that observed the strong write to
    /// the shared memory of block `rank` that it conflicts with.
    #[cold]
    pub(super) fn has_observed(&self, thread: ThreadId, rank: BlockRank, conflict: &Conflict) -> bool {
        let location = SharedLocation { rank, at: conflict.at };
        conflict.other_writes && self.observed.has(&self.views[thread], conflict.other, location)
    }

    /// Executes an atomic operation, which acquires the released knowledge and adds to it.
    pub(super) fn strong_update(
        &mut self,
        thread: ThreadId,
        location: MemoryLocation,
        order: Order,
        sizes: Sizes,
    ) {
        self.strong_read(thread, location, order, sizes);
        if order.releases() || self.fences[thread].release.is_some() {
            self.release_to(thread, location, order);
        }
    }

    fn release_to(&mut self, thread: ThreadId, location: MemoryLocation, order: Order) {
        let released = self.released.entry(location).or_default();
        if order.releases() {
            released.release(&mut self.views[thread]);
        } else if let Some(fence) = &mut self.fences[thread].release {
            released.add(&fence.join());
        }
    }

    /// Executes a memory fence. Later relaxed writes release the current knowledge, and earlier
    /// relaxed reads acquire.
    ///
    /// Returns the knowledge that later writes release.
    pub(super) fn fence_memory(&mut self, thread: ThreadId, order: Order) -> Option<Releases> {
        if order.acquires()
            && let Some(mut read) = self.fences[thread].acquire.take()
        {
            self.acquire(thread, &read.join());
        }
        if !order.releases() {
            return None;
        }
        let mut release = Releases::default();
        release.release(&mut self.views[thread]);
        self.fences[thread].release = Some(release.clone());
        Some(release)
    }

    /// Returns the knowledge that the thread would release now.
    pub(super) fn released_now(&mut self, thread: ThreadId) -> Knowledge {
        let mut release = Releases::default();
        release.release(&mut self.views[thread]);
        release.join()
    }

    /// Takes a step for a fence that others must learn of, and returns it.
    pub(super) fn fence_step(&mut self, thread: ThreadId) -> Epoch {
        let view = &mut self.views[thread];
        let fence = view.epoch();
        view.step();
        fence
    }
}
