//! The stores to places with strong accesses, of which a strong load may see others than the last.
//!
//! As Miri and C11Tester keep them (Lidbury and Donaldson, POPL 2017; Luo and Demsky, ASPLOS 2021):
//! a load sees any store that is not older than the newest that happens before it, and than what a
//! read that happens before it saw (PTX ISA, "Coherence", "Causality"). Atomic operations read the
//! newest store and hand on what was released with it (PTX ISA, "Observation").

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tma_model::sync::MemoryScope;

use super::foreign::Observer;
use super::mark::{Author, GlobalAccess, Rule, unordered};
use super::release::{Release, Released};
use crate::machine::random::Random;

/// The most stores that are kept of a place. Of older ones no load sees any more, which hardware
/// may.
const MOST_STORES: usize = 16;
/// How often in a row a thread sees an old store, so that each loop that waits ends.
const MOST_STALE: u8 = 8;
/// The most bytes of a place.
pub(super) const WIDEST: usize = 16;

/// A store to a place.
#[derive(Debug)]
struct Store {
    value: [u8; WIDEST],
    /// Who made it; of the first one of a history nobody, and it counts as seen by all.
    mark: Option<GlobalAccess>,
    /// The releases of which it is in the release sequence.
    released: Released,
    /// Those that its thread has made by operations on this place, it included.
    own: Vec<Release>,
    /// The first read of each thread that saw it.
    readers: Vec<GlobalAccess>,
}

/// The latest stores to a place, the newest last.
#[derive(Debug)]
pub(super) struct History {
    pub(super) bytes: u32,
    stores: VecDeque<Store>,
    /// Whether the scope of one of them may leave out a block.
    has_narrow: bool,
    /// How often in a row a thread has seen an old one.
    stale: HashMap<Author, u8>,
}

/// The store that a load saw.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) value: [u8; WIDEST],
    pub(super) released: Released,
    pub(super) is_stale: bool,
}

/// Whether a strong access and one of this scope by `author` are morally strong.
fn are_morally_strong(access: &GlobalAccess, author: Author, scope: MemoryScope, threads: u32) -> bool {
    let by = access.author;
    let reach = |theirs| by.reaches(theirs, author, threads) && author.reaches(scope, by, threads);
    access.manner.scope.is_some_and(reach)
}

/// Whether a store happens before, or a read that saw it does.
fn is_known(store: &Store, observer: &Observer<'_>) -> bool {
    store.mark.as_ref().is_some_and(|mark| observer.follows(mark))
        || store.readers.iter().any(|reader| observer.follows(reader))
}

/// The releases that an access synchronises with: nothing of a store that it is not morally strong with.
fn observed(store: &Store, author: Author, scope: MemoryScope, threads: u32) -> Released {
    match &store.mark {
        Some(mark) if are_morally_strong(mark, author, scope, threads) => Arc::clone(&store.released),
        Some(_) | None => Released::default(),
    }
}

impl History {
    /// Of a place that holds `value`.
    pub(super) fn new(bytes: u32, value: [u8; WIDEST]) -> Self {
        let (released, own, readers) = (Released::default(), Vec::new(), Vec::new());
        let first = Store { value, mark: None, released, own, readers };
        Self { bytes, stores: VecDeque::from([first]), has_narrow: false, stale: HashMap::new() }
    }

    /// A store in no order with this access of which one scope leaves out the other thread. The
    /// last one is compared as all accesses are; behind it there may be others that it is strong
    /// for.
    pub(super) fn unreached(
        &self,
        mark: &GlobalAccess,
        observer: &Observer<'_>,
        threads: u32,
    ) -> Option<GlobalAccess> {
        let is_wide = mark.manner.scope.is_none_or(|scope| scope >= MemoryScope::Device);
        if is_wide && !self.has_narrow {
            return None;
        }
        let newer = self.stores.iter().rev().take_while(|store| !is_known(store, observer));
        let mut marks = newer.filter_map(|store| store.mark.as_ref());
        let is_broken = |store: &&GlobalAccess| {
            unordered(store, mark, threads) == Some(Rule::ScopeTooNarrow)
                && !self.is_observed(store, observer, threads)
        };
        marks.find(is_broken).copied()
    }

    /// A strong load.
    pub(super) fn load(
        &mut self,
        mark: &GlobalAccess,
        scope: MemoryScope,
        observer: &Observer<'_>,
        threads: u32,
        random: &mut Random,
    ) -> Option<Seen> {
        let oldest = self.stores.iter().rposition(|store| is_known(store, observer)).unwrap_or(0);
        let newest = self.stores.len().checked_sub(1)?;
        let author = mark.author;
        let stale = self.stale.get(&author).copied().unwrap_or(0);
        let index = match newest - oldest {
            0 => newest,
            _ if stale >= MOST_STALE => newest,
            older => oldest + random.below(older as u64 + 1) as usize,
        };
        let is_stale = index < newest;
        if is_stale {
            self.stale.insert(author, stale + 1);
        } else if stale > 0 {
            self.stale.remove(&author);
        }
        let store = self.stores.get_mut(index)?;
        if !store.readers.iter().any(|reader| reader.author == author) {
            store.readers.push(*mark);
        }
        Some(Seen { value: store.value, released: observed(store, author, scope, threads), is_stale })
    }

    /// Whether the observer comes after a morally strong read that has seen this write: then it comes
    /// after the write as far as this place is concerned (PTX ISA, "Causality Order").
    pub(super) fn is_observed(&self, write: &GlobalAccess, observer: &Observer<'_>, threads: u32) -> bool {
        let is_it = |store: &&Store| {
            store.mark.as_ref().is_some_and(|mark| (mark.author, mark.step) == (write.author, write.step))
        };
        let has_seen = |reader: &GlobalAccess| {
            let scope = reader.manner.scope;
            let strong = scope.is_some_and(|scope| are_morally_strong(write, reader.author, scope, threads));
            strong && observer.follows(reader)
        };
        self.stores.iter().rev().find(is_it).is_some_and(|store| store.readers.iter().any(has_seen))
    }

    /// The newest store, as an atomic operation sees it.
    pub(super) fn newest(&self, author: Author, scope: MemoryScope, threads: u32) -> Released {
        self.stores.back().map(|store| observed(store, author, scope, threads)).unwrap_or_default()
    }

    /// The releases that a thread has made by operations on this place: a release pattern goes on
    /// with each strong write that the thread makes here (PTX ISA, "Release and Acquire Patterns").
    /// What others had released with a store that it has replaced is not among them.
    pub(super) fn own_releases(&self, author: Author) -> Vec<Release> {
        let own = |store: &&Store| store.mark.as_ref().is_some_and(|mark| mark.author == author);
        self.stores.iter().rev().find(own).map(|store| store.own.clone()).unwrap_or_default()
    }

    /// A strong store, or what an atomic operation writes, with the releases that it hands on and
    /// those of its own thread.
    pub(super) fn store(
        &mut self,
        mark: GlobalAccess,
        value: [u8; WIDEST],
        released: Released,
        own: Vec<Release>,
    ) {
        if self.stores.len() == MOST_STORES {
            self.stores.pop_front();
        }
        self.has_narrow |= mark.manner.scope.is_some_and(|scope| scope < MemoryScope::Device);
        self.stores.push_back(Store { value, mark: Some(mark), released, own, readers: Vec::new() });
    }
}
