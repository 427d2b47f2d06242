//! Strong accesses to global memory, and memory fences.
//!
//! Source: PTX ISA, "Release and Acquire Patterns", "Synchronizes", "Fence-SC". A release pattern
//! synchronises with an acquire pattern that observes it if the first operation of the release
//! pattern and the last of the acquire pattern are morally strong. The scopes of fences count as
//! well.

use std::sync::Arc;

use tma_model::sync::{AccessKind, MemoryScope, Order};

use super::cross_cluster::{CrossClusterKnowledge, Observer};
use super::history::{History, WIDEST};
use super::mark::{AccessAttributes, AccessRule, GlobalAccess, GlobalConflict};
use super::release::{Release, Released, Releases, add_release};
use super::table::pieces;
use super::{FenceRelease, GlobalAccesses, Pending, State};
use crate::machine::index::ThreadId;
use crate::machine::memory::GlobalMemory;
use crate::machine::order::HappensBefore;
use crate::machine::sizes::Sizes;

/// The most stores to one location observed by relaxed reads that are kept before they are joined.
const MOST_PENDING: usize = 8;

/// A strong access of a thread.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) struct StrongAccess {
    pub(in crate::machine) thread: ThreadId,
    pub(in crate::machine) line: u32,
    pub(in crate::machine) address: u64,
    pub(in crate::machine) order: Order,
    pub(in crate::machine) scope: MemoryScope,
    pub(in crate::machine) sizes: Sizes,
}

impl StrongAccess {
    pub(in crate::machine) fn attributes(&self, kind: AccessKind) -> AccessAttributes {
        AccessAttributes::generic(kind, Some(self.scope)).of(self.sizes)
    }
}

impl State {
    /// Returns the history of a location, and starts it from the contents of memory if necessary.
    /// `None` if the location overlaps others or is too wide.
    fn history(&mut self, address: u64, len: u32, global: &GlobalMemory) -> Option<&mut History> {
        if len as usize > WIDEST {
            return None;
        }
        if self.histories.get(&address).is_none_or(|history| history.bytes != len) {
            if !self.overlapping(address, len.into()).is_empty() {
                return None;
            }
            let mut value = [0; WIDEST];
            global.read(address, value.get_mut(..len as usize)?).ok()?;
            for piece in pieces(address, len.into()) {
                self.table.line(piece.line).has_history = true;
            }
            self.histories.insert(address, History::new(len, value));
        }
        self.histories.get_mut(&address)
    }
}

impl GlobalAccesses {
    fn mark(&self, access: &StrongAccess, kind: AccessKind, order: &HappensBefore) -> GlobalAccess {
        GlobalAccess {
            step: order.view(access.thread).epoch(),
            grid_thread: self.grid_thread(access.thread),
            line: access.line,
            attributes: access.attributes(kind),
        }
    }

    /// Executes a strong load. `out` holds the contents of memory, and receives the value that the
    /// load observes.
    pub(in crate::machine) fn load(
        &mut self,
        access: StrongAccess,
        out: &mut [u8],
        global: &GlobalMemory,
        order: &mut HappensBefore,
    ) -> Option<GlobalConflict> {
        let grid = self.grid()?;
        let mut guard = grid.state();
        let state = &mut *guard;
        let mark = self.mark(&access, AccessKind::Read, order);
        let (cluster, layout, view) = (self.cluster, self.layout, order.view(access.thread));
        let observer = Observer { cluster, layout, view, imports: &self.imports };
        let len = out.len() as u32;
        let conflict = state.access(access.address, len.into(), &mark, &observer);
        let (mut seen, mut unreached) = (None, None);
        if let Some(history) = state.history(access.address, len, global) {
            unreached = history.unreached(&mark, &observer);
            seen = history.load(&mark, access.scope, &observer, &mut self.random);
        }
        let conflict = conflict.or_else(|| unreached.map(|other| too_narrow(&access, other)));
        let released = match seen {
            Some(seen) => {
                if let Some(value) = seen.value.get(..out.len()) {
                    out.copy_from_slice(value);
                }
                self.stale_reads += u64::from(seen.is_stale);
                seen.released
            }
            // The load has another size than the stores, so it observes none of them.
            None => Released::default(),
        };
        drop(guard);
        self.observe(access, released, order);
        self.with_cause(access.thread, conflict)
    }

    /// Executes a strong store.
    pub(in crate::machine) fn store(
        &mut self,
        access: StrongAccess,
        bytes: &[u8],
        global: &GlobalMemory,
        order: &mut HappensBefore,
    ) -> Option<GlobalConflict> {
        self.change(access, bytes.len() as u32, global, order, MemoryChange::Store(bytes))
    }

    /// Executes a strong access that changes memory: a store, or an atomic operation.
    pub(in crate::machine) fn change(
        &mut self,
        access: StrongAccess,
        len: u32,
        global: &GlobalMemory,
        order: &mut HappensBefore,
        change: MemoryChange<'_>,
    ) -> Option<GlobalConflict> {
        let grid = self.grid()?;
        let mut guard = grid.state();
        let state = &mut *guard;
        let mark = self.mark(&access, AccessKind::Write, order);
        let (cluster, layout, view) = (self.cluster, self.layout, order.view(access.thread));
        let observer = Observer { cluster, layout, view, imports: &self.imports };
        let conflict = state.access(access.address, len.into(), &mark, &observer);
        let grid_thread = mark.grid_thread;
        let mut unreached = None;
        let (inherited, own) = match state.history(access.address, len, global) {
            Some(history) => {
                unreached = history.unreached(&mark, &observer);
                let inherited = match &change {
                    MemoryChange::Store(_) => Released::default(),
                    MemoryChange::Update { .. } => history.newest(grid_thread, access.scope, layout),
                };
                (inherited, history.own_releases(grid_thread))
            }
            // A location of a new size replaces those that it overlaps, and observes none of their
            // stores.
            None => {
                state.forget_histories(access.address, len.into());
                (Released::default(), Vec::new())
            }
        };
        let conflict = conflict.or_else(|| unreached.map(|other| too_narrow(&access, other)));
        let mut value = [0; WIDEST];
        match change {
            MemoryChange::Store(bytes) => {
                if let (Some(to), Some(from)) =
                    (value.get_mut(..bytes.len()), bytes.get(..WIDEST.min(bytes.len())))
                {
                    to.copy_from_slice(from);
                }
            }
            MemoryChange::Update { reads, update } => {
                value = update();
                if reads {
                    self.observe(access, Arc::clone(&inherited), order);
                }
            }
        }
        let own = self.own_releases(access, own, order);
        let released = self.released_by(access.thread, inherited, &own);
        if let Some(history) = state.history(access.address, len, global) {
            history.store(mark, value, released, own, layout);
        }
        self.with_cause(access.thread, conflict)
    }

    /// Returns the releases of a thread by operations on a location: the `earlier` ones and that of
    /// this write. The new release knows everything that earlier ones of the same or a narrower
    /// scope know, so those are dropped.
    fn own_releases(
        &mut self,
        access: StrongAccess,
        mut earlier: Vec<Release>,
        order: &mut HappensBefore,
    ) -> Vec<Release> {
        if access.order.releases() {
            let knows = self.imports.export(self.cluster, &order.released_now(access.thread));
            earlier.retain(|known| known.scope > access.scope);
            earlier.push(Release::new(access.scope, self.grid_thread(access.thread), knows));
        }
        earlier
    }

    /// Returns the releases of a strong write: the inherited ones, those of its thread by
    /// operations on the location, and those of its thread's fences.
    fn released_by(&mut self, thread: ThreadId, inherited: Released, own: &[Release]) -> Released {
        let (grid_thread, cluster, layout) = (self.grid_thread(thread), self.cluster, self.layout);
        let mut released = inherited;
        if let Some(fences) = self.fences.get_mut(&thread) {
            for (scope, fence) in fences {
                let release = match fence {
                    FenceRelease::Made(release) => release.clone(),
                    FenceRelease::Raw(raw) => {
                        let knows = self.imports.export(cluster, &raw.join());
                        let release = Release::new(*scope, grid_thread, knows);
                        *fence = FenceRelease::Made(release.clone());
                        release
                    }
                };
                add_release(&mut released, &release, layout);
            }
        }
        own.iter().for_each(|release| add_release(&mut released, release, layout));
        released
    }

    /// Handles a strong read that has observed a store with these releases.
    fn observe(&mut self, access: StrongAccess, released: Released, order: &mut HappensBefore) {
        if access.order.acquires() {
            self.acquire(access.thread, &released, access.scope, order);
            // An acquire also synchronises with the stores that earlier reads of the location
            // observed.
            let earlier: Vec<_> = match self.pending.get(&access.thread) {
                Some(pending) => pending
                    .iter()
                    .filter(|pending| pending.address == access.address)
                    .map(|pending| Arc::clone(&pending.released))
                    .collect(),
                None => return,
            };
            for released in earlier {
                self.acquire(access.thread, &released, access.scope, order);
            }
        } else if !released.is_empty() {
            let pending = self.pending.entry(access.thread).or_default();
            let is_known =
                |known: &Pending| known.address == access.address && Arc::ptr_eq(&known.released, &released);
            if pending.iter().any(is_known) {
                return;
            }
            let same_location = |known: &Pending| known.address == access.address;
            let mut released = released;
            if pending.iter().filter(|known| same_location(known)).count() >= MOST_PENDING {
                for known in pending.extract_if(.., |known| same_location(known)) {
                    Releases::join(&mut released, &known.released, self.layout);
                }
            }
            pending.push(Pending { address: access.address, released });
        }
    }

    /// Lets a thread synchronise with those releases that its scope allows.
    fn acquire(
        &mut self,
        thread: ThreadId,
        released: &Released,
        scope: MemoryScope,
        order: &mut HappensBefore,
    ) {
        let [reached, missed] = released.split(self.grid_thread(thread), scope, self.layout);
        for known in reached {
            self.learn(thread, known, order);
        }
        for known in missed {
            self.missed.entry(thread).or_default().join(known);
        }
    }

    /// Lets a thread learn released knowledge.
    fn learn(&mut self, thread: ThreadId, acquired: &CrossClusterKnowledge, order: &mut HappensBefore) {
        if let Some(own) = acquired.of(self.cluster) {
            order.acquire(thread, own);
        }
        let component = (!self.imports.has(thread)).then(|| order.new_component());
        self.imports.add(thread, acquired, self.cluster, order.view_mut(thread), component);
    }

    /// The acquire part of a memory fence: acquires the releases that earlier relaxed reads
    /// observed.
    pub(in crate::machine) fn fence_acquires(
        &mut self,
        thread: ThreadId,
        scope: MemoryScope,
        order: &mut HappensBefore,
    ) {
        let Some(pending) = self.pending.remove(&thread) else { return };
        for read in &pending {
            self.acquire(thread, &read.released, scope, order);
        }
        // A later fence with a wider scope may still acquire these.
        if scope < self.layout.everyone() {
            self.pending.insert(thread, pending);
        }
    }

    /// The release part of a memory fence: its release takes effect with later strong stores.
    pub(in crate::machine) fn fence_releases(
        &mut self,
        thread: ThreadId,
        scope: MemoryScope,
        releases: tma_model::sync::Releases,
    ) {
        let fences = self.fences.entry(thread).or_default();
        // A later fence with the same or a wider scope releases everything that a narrower one
        // does.
        fences.retain(|known, _| *known > scope);
        fences.insert(scope, FenceRelease::Raw(releases));
    }

    /// The sequentially consistent part of `fence.sc`: orders the fence after those that precede it
    /// in the total order.
    pub(in crate::machine) fn fence_sequentially(
        &mut self,
        thread: ThreadId,
        scope: MemoryScope,
        order: &mut HappensBefore,
    ) {
        let Some(grid) = self.grid() else { return };
        let mut state = grid.state();
        let (own, block, layout) = (self.cluster, thread.block.0, self.layout);
        let mutual = |&(theirs, cluster, of): &(MemoryScope, u32, u32)| {
            let same_cluster = cluster == own;
            let same_block = same_cluster && of == block;
            theirs.min(scope) >= MemoryScope::around(same_block, same_cluster, layout.same_rank(cluster, own))
        };
        let earlier: Vec<_> =
            state.sequential.iter().filter(|(key, _)| mutual(key)).map(|(_, known)| known.clone()).collect();
        for known in earlier {
            self.learn(thread, &known, order);
        }
        let knows = self.imports.export(self.cluster, &order.released_now(thread));
        state.sequential.entry((scope, own, block)).or_default().join(&knows);
    }
}

/// Returns the conflict with a store that is not the last one.
fn too_narrow(access: &StrongAccess, other: GlobalAccess) -> GlobalConflict {
    GlobalConflict { rule: AccessRule::ScopeTooNarrow, address: access.address, other }
}

/// A change to the contents of a location.
pub(in crate::machine) enum MemoryChange<'c> {
    Store(&'c [u8]),
    Update { reads: bool, update: &'c mut dyn FnMut() -> [u8; WIDEST] },
}
