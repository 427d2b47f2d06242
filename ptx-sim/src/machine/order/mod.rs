//! What comes before what: the clocks of threads, what was released to memory, and fences.
//!
//! Source: PTX ISA, "Release and acquire patterns". A location keeps what was released to it; an
//! atomic operation adds to it (it continues the release sequence), a store replaces it.

mod observed;

use std::collections::{BTreeMap, HashMap};

use tma_model::sync::{Acquirer, Component, Epoch, Knowledge, Order, Releases, View};

use super::index::{BlockRank, PerThread, Shape, ThreadId, WarpIndex};
use super::memory::{Conflict, Place, SharedPlace};
use super::sizes::Sizes;
use observed::Observed;

/// What the agents of a cluster know of each other.
#[derive(Debug)]
pub(super) struct HappensBefore {
    shape: Shape,
    /// Whether order is checked. If not, nobody learns anything.
    checked: bool,
    views: PerThread<View>,
    fences: PerThread<Fences>,
    /// What was released to each location.
    released: HashMap<Place, Releases>,
    observed: Observed,
    acquirer: Acquirer,
    /// The next clock component; those below the number of threads are theirs.
    next: u32,
    /// Whom the other components stand for: who issued the bulk group, or the last load to an
    /// mbarrier.
    agents: BTreeMap<Component, ThreadId>,
}

/// What a thread's fences make of relaxed accesses.
#[derive(Debug, Default)]
struct Fences {
    /// What its last fence releases with later relaxed writes.
    release: Option<Releases>,
    /// What relaxed reads have read, to be acquired by the next fence.
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

    /// Whether order is checked.
    #[inline]
    pub(super) fn is_checked(&self) -> bool {
        self.checked
    }

    /// What a thread knows.
    #[inline]
    pub(super) fn view(&self, who: ThreadId) -> &View {
        &self.views[who]
    }

    /// What each thread of a warp knows.
    pub(super) fn of_warp(&self, block: BlockRank, warp: WarpIndex) -> &[View] {
        self.views.lanes(block, warp)
    }

    pub(super) fn view_mut(&mut self, who: ThreadId) -> &mut View {
        &mut self.views[who]
    }

    /// A clock component of something asynchronous.
    pub(super) fn new_component(&mut self) -> Component {
        self.next += 1;
        Component::new(self.next - 1)
    }

    /// `who` is now the thread that an asynchronous component stands for.
    pub(super) fn name_agent(&mut self, component: Component, who: ThreadId) {
        debug_assert!(component.number() >= self.shape.all(), "threads have components of their own");
        self.agents.insert(component, who);
    }

    /// The thread that an asynchronous component stands for.
    pub(super) fn agent(&self, component: Component) -> Option<ThreadId> {
        self.agents.get(&component).copied()
    }

    /// A thread releases what it knows and has done.
    pub(super) fn release(&mut self, who: ThreadId, releases: &mut Releases) {
        releases.release(&mut self.views[who]);
    }

    /// A thread acquires what was released.
    pub(super) fn acquire(&mut self, who: ThreadId, news: &Knowledge) {
        self.acquirer.acquire(&mut self.views[who], news);
    }

    /// The threads of `lanes` of a warp meet.
    pub(super) fn meet(&mut self, block: BlockRank, warp: WarpIndex, lanes: u32) {
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

    /// A strong read.
    pub(super) fn strong_read(&mut self, who: ThreadId, place: Place, order: Order, sizes: Sizes) {
        if let Place::Shared(place) = place {
            self.observed.read(who, self.views[who].epoch(), place, sizes);
        }
        if self.released.is_empty() {
            return;
        }
        let Some(released) = self.released.get_mut(&place) else { return };
        let news = released.join();
        if order.acquires() {
            self.acquire(who, &news);
        } else {
            self.fences[who].acquire.get_or_insert_default().add(&news);
        }
    }

    /// A strong store, which replaces what was released there.
    pub(super) fn strong_store(&mut self, who: ThreadId, place: Place, order: Order) {
        let releases = order.releases() || self.fences[who].release.is_some();
        if releases || !self.released.is_empty() {
            self.released.insert(place, Releases::default());
            self.release_to(who, place, order);
        }
    }

    /// A strong write to shared memory has been recorded with the current step of its thread.
    pub(super) fn wrote_strongly(&mut self, who: ThreadId, place: SharedPlace, sizes: Sizes) {
        let view = &mut self.views[who];
        self.observed.write(who, view.epoch(), place, sizes);
        view.step();
    }

    /// Whether a thread comes after a strong read that has seen the strong write to the shared
    /// memory of block `rank` that it is in conflict with.
    #[cold]
    pub(super) fn has_observed(&self, who: ThreadId, rank: BlockRank, conflict: &Conflict) -> bool {
        let place = SharedPlace { rank, at: conflict.at };
        conflict.other_writes && self.observed.has(&self.views[who], conflict.other, place)
    }

    /// An atomic operation, which reads what was released, and adds to it.
    pub(super) fn strong_update(&mut self, who: ThreadId, place: Place, order: Order, sizes: Sizes) {
        self.strong_read(who, place, order, sizes);
        if order.releases() || self.fences[who].release.is_some() {
            self.release_to(who, place, order);
        }
    }

    fn release_to(&mut self, who: ThreadId, place: Place, order: Order) {
        let released = self.released.entry(place).or_default();
        if order.releases() {
            released.release(&mut self.views[who]);
        } else if let Some(fence) = &mut self.fences[who].release {
            released.add(&fence.join());
        }
    }

    /// A memory fence: later relaxed writes release what is known now, and earlier relaxed reads
    /// acquire.
    ///
    /// The answer is what they release.
    pub(super) fn fence_memory(&mut self, who: ThreadId, order: Order) -> Option<Releases> {
        if order.acquires()
            && let Some(mut read) = self.fences[who].acquire.take()
        {
            self.acquire(who, &read.join());
        }
        if !order.releases() {
            return None;
        }
        let mut release = Releases::default();
        release.release(&mut self.views[who]);
        self.fences[who].release = Some(release.clone());
        Some(release)
    }

    /// What a thread releases now.
    pub(super) fn released_now(&mut self, who: ThreadId) -> Knowledge {
        let mut release = Releases::default();
        release.release(&mut self.views[who]);
        release.join()
    }

    /// A fence that others have to come to know of: the answer is its step.
    pub(super) fn fence_step(&mut self, who: ThreadId) -> Epoch {
        let view = &mut self.views[who];
        let fence = view.epoch();
        view.step();
        fence
    }
}
