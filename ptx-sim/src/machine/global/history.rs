//! The history of stores to locations with strong accesses. A strong load may observe stores other
//! than the last one.
//!
//! The histories follow Miri and C11Tester (Lidbury and Donaldson, POPL 2017; Luo and Demsky,
//! ASPLOS 2021). A load observes any store that is not older than the newest store that happens
//! before it, or than a store observed by a read that happens before it (PTX ISA, "Coherence",
//! "Causality"). An atomic operation reads the newest store, and passes on the releases of that
//! store (PTX ISA, "Observation").

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tma_model::sync::MemoryScope;

use super::cross_cluster::Observer;
use super::mark::{AccessRule, GlobalAccess, GridThread, unordered};
use super::release::{Release, Released};
use super::team::TeamLayout;
use crate::machine::random::Random;

/// The most stores that are kept of a location. Loads no longer observe older stores, which
/// hardware might.
const MOST_STORES: usize = 16;
/// The most times in a row that a thread observes an old store. The limit makes polling loops end.
const MOST_STALE: u8 = 8;
/// The most bytes of a location.
pub(super) const WIDEST: usize = 16;

/// A store to a location.
#[derive(Debug)]
struct Store {
    value: [u8; WIDEST],
    /// The access that made the store. `None` for the first entry of a history, the initial
    /// contents, which counts as visible to all.
    mark: Option<GlobalAccess>,
    /// The releases whose release sequences include this store.
    released: Released,
    /// The releases that the store's own thread has made by operations on this location, this store
    /// included.
    own: Vec<Release>,
    /// The first read of each thread that observed the store.
    readers: Vec<GlobalAccess>,
}

/// The latest stores to a location, newest last.
#[derive(Debug)]
pub(super) struct History {
    pub(super) bytes: u32,
    stores: VecDeque<Store>,
    /// Whether the scope of one of the stores excludes threads of the launch.
    has_narrow: bool,
    /// How many times in a row each thread has observed an old store.
    stale: HashMap<GridThread, u8>,
}

/// The store that a load observed.
#[derive(Debug)]
pub(super) struct ObservedStore {
    pub(super) value: [u8; WIDEST],
    pub(super) released: Released,
    pub(super) is_stale: bool,
}

/// Returns whether a strong access and one by `grid_thread` with this scope are morally strong.
fn are_morally_strong(
    access: &GlobalAccess,
    grid_thread: GridThread,
    scope: MemoryScope,
    layout: TeamLayout,
) -> bool {
    let reach = |theirs: MemoryScope| layout.includes(theirs.min(scope), access.grid_thread, grid_thread);
    access.attributes.scope.is_some_and(reach)
}

/// Returns whether a store, or a read that observed it, happens before the observer.
fn is_known(store: &Store, observer: &Observer<'_>) -> bool {
    store.mark.as_ref().is_some_and(|mark| observer.follows(mark))
        || store.readers.iter().any(|reader| observer.follows(reader))
}

/// Returns the releases that an access synchronises with: none, unless the access and the store are
/// morally strong.
fn observed(store: &Store, grid_thread: GridThread, scope: MemoryScope, layout: TeamLayout) -> Released {
    match &store.mark {
        Some(mark) if are_morally_strong(mark, grid_thread, scope, layout) => Arc::clone(&store.released),
        Some(_) | None => Released::default(),
    }
}

impl History {
    /// Starts the history of a location that holds `value`.
    pub(super) fn new(bytes: u32, value: [u8; WIDEST]) -> Self {
        let (released, own, readers) = (Released::default(), Vec::new(), Vec::new());
        let first = Store { value, mark: None, released, own, readers };
        Self { bytes, stores: VecDeque::from([first]), has_narrow: false, stale: HashMap::new() }
    }

    /// Returns a store that is unordered with this access and whose scope, or the access's,
    /// excludes the other thread. The table compares the last store like any other access, but
    /// there may be older ones that are not morally strong with this access.
    pub(super) fn unreached(&self, mark: &GlobalAccess, observer: &Observer<'_>) -> Option<GlobalAccess> {
        let is_wide = mark.attributes.scope.is_none_or(|scope| scope >= observer.layout.everyone());
        if is_wide && !self.has_narrow {
            return None;
        }
        let newer = self.stores.iter().rev().take_while(|store| !is_known(store, observer));
        let mut marks = newer.filter_map(|store| store.mark.as_ref());
        let is_broken = |store: &&GlobalAccess| {
            unordered(store, mark, observer.layout) == Some(AccessRule::ScopeTooNarrow)
                && !self.is_observed(store, observer)
        };
        marks.find(is_broken).copied()
    }

    /// Executes a strong load.
    pub(super) fn load(
        &mut self,
        mark: &GlobalAccess,
        scope: MemoryScope,
        observer: &Observer<'_>,
        random: &mut Random,
    ) -> Option<ObservedStore> {
        let oldest = self.stores.iter().rposition(|store| is_known(store, observer)).unwrap_or(0);
        let newest = self.stores.len().checked_sub(1)?;
        let grid_thread = mark.grid_thread;
        let stale = self.stale.get(&grid_thread).copied().unwrap_or(0);
        let index = match newest - oldest {
            0 => newest,
            _ if stale >= MOST_STALE => newest,
            older => oldest + random.below(older as u64 + 1) as usize,
        };
        let is_stale = index < newest;
        if is_stale {
            self.stale.insert(grid_thread, stale + 1);
        } else if stale > 0 {
            self.stale.remove(&grid_thread);
        }
        let store = self.stores.get_mut(index)?;
        if !store.readers.iter().any(|reader| reader.grid_thread == grid_thread) {
            store.readers.push(*mark);
        }
        Some(ObservedStore {
            value: store.value,
            released: observed(store, grid_thread, scope, observer.layout),
            is_stale,
        })
    }

    /// Returns whether a morally strong read that observed this write happens before the observer.
    /// If so, the write precedes the observer in causality order as far as this location is
    /// concerned (PTX ISA, "Causality Order").
    pub(super) fn is_observed(&self, write: &GlobalAccess, observer: &Observer<'_>) -> bool {
        let is_it = |store: &&Store| {
            store
                .mark
                .as_ref()
                .is_some_and(|mark| (mark.grid_thread, mark.step) == (write.grid_thread, write.step))
        };
        let has_seen = |reader: &GlobalAccess| {
            let scope = reader.attributes.scope;
            let strong = scope
                .is_some_and(|scope| are_morally_strong(write, reader.grid_thread, scope, observer.layout));
            strong && observer.follows(reader)
        };
        self.stores.iter().rev().find(is_it).is_some_and(|store| store.readers.iter().any(has_seen))
    }

    /// Returns the releases of the newest store, as observed by an atomic operation.
    pub(super) fn newest(&self, grid_thread: GridThread, scope: MemoryScope, layout: TeamLayout) -> Released {
        self.stores.back().map(|store| observed(store, grid_thread, scope, layout)).unwrap_or_default()
    }

    /// Returns the releases that a thread has made by operations on this location. A release
    /// pattern continues with each strong write that the thread makes here (PTX ISA, "Release and
    /// Acquire Patterns"). Releases of a store by another thread, which the thread's own store has
    /// replaced, are not included.
    pub(super) fn own_releases(&self, grid_thread: GridThread) -> Vec<Release> {
        let own = |store: &&Store| store.mark.as_ref().is_some_and(|mark| mark.grid_thread == grid_thread);
        self.stores.iter().rev().find(own).map(|store| store.own.clone()).unwrap_or_default()
    }

    /// Adds a strong store, or the write of an atomic operation, with the releases that it passes
    /// on and those of its own thread.
    pub(super) fn store(
        &mut self,
        mark: GlobalAccess,
        value: [u8; WIDEST],
        released: Released,
        own: Vec<Release>,
        layout: TeamLayout,
    ) {
        if self.stores.len() == MOST_STORES {
            self.stores.pop_front();
        }
        self.has_narrow |= mark.attributes.scope.is_some_and(|scope| scope < layout.everyone());
        self.stores.push_back(Store { value, mark: Some(mark), released, own, readers: Vec::new() });
    }
}
