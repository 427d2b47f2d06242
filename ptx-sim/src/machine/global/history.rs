//! The stores to places with strong accesses, of which a strong load may see others than the last.
//!
//! As Miri and C11Tester keep them (Lidbury and Donaldson, POPL 2017; Luo and Demsky, ASPLOS 2021):
//! a load sees any store that is not older than the newest that happens before it, and than what a
//! read that happens before it saw (PTX ISA, "Coherence", "Causality"). Atomic operations read the
//! newest store and hand on what was released with it (PTX ISA, "Observation").

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tma_model::sync::MemoryScope;

use super::foreign::{Foreign, Observer};
use super::mark::{Author, GlobalAccess};
use crate::machine::random::Random;

/// The most stores that are kept of a place. Of older ones no load sees any more, which hardware
/// may.
const MOST_STORES: usize = 16;
/// How often in a row a thread sees an old store, so that each loop that waits ends.
const MOST_STALE: u8 = 8;
/// The most bytes of a place.
pub(super) const WIDEST: usize = 16;
/// The sizes of places.
pub(super) const SIZES: [u32; 5] = [1, 2, 4, 8, WIDEST as u32];

/// A release that a store makes or hands on.
#[derive(Clone, Debug)]
pub(super) struct Release {
    /// The scope of the release, or of the fence before the store.
    scope: MemoryScope,
    /// Who released; none of several threads, of which each scope includes the whole device.
    by: Option<Author>,
    pub(super) knows: Arc<Foreign>,
}

impl Release {
    pub(super) fn new(scope: MemoryScope, by: Author, knows: Foreign) -> Self {
        Self { scope, by: Some(by), knows: Arc::new(knows) }
    }

    /// Whether an acquire of this scope by `who` synchronises with it.
    pub(super) fn reaches(&self, who: Author, scope: MemoryScope, threads: u32) -> bool {
        self.by.is_none_or(|by| by.reaches(self.scope, who, threads) && who.reaches(scope, by, threads))
    }
}

/// All that was released with a store. Shared by those that have it.
pub(super) type Released = Arc<Vec<Release>>;

/// Adds a release to others, those at the scope of the device in one.
pub(super) fn add_release(released: &mut Released, release: Release) {
    let is_wide = |release: &Release| release.scope >= MemoryScope::Device;
    let alike = |known: &Release| match (is_wide(known), is_wide(&release)) {
        (true, true) => true,
        (false, false) => known.scope == release.scope && known.by == release.by,
        (true, false) | (false, true) => false,
    };
    let is_known = |known: &Release| {
        alike(known) && (known.by.is_none() || known.by == release.by) && known.knows.covers(&release.knows)
    };
    if released.iter().any(is_known) {
        return;
    }
    let list = Arc::make_mut(released);
    match list.iter_mut().find(|known| alike(known)) {
        Some(known) => {
            let mut all = Foreign::clone(&known.knows);
            if all.join(&release.knows) {
                known.knows = Arc::new(all);
            }
            if known.by != release.by {
                known.by = None;
            }
        }
        None => list.push(release),
    }
}

/// A store to a place.
#[derive(Debug)]
struct Store {
    value: [u8; WIDEST],
    /// Who made it; of the first one of a history nobody, and it counts as seen by all.
    mark: Option<GlobalAccess>,
    released: Released,
    /// The first read of each thread that saw it.
    readers: Vec<GlobalAccess>,
}

/// The latest stores to a place, the newest last.
#[derive(Debug)]
pub(super) struct History {
    pub(super) bytes: u32,
    stores: VecDeque<Store>,
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
        let first = Store { value, mark: None, released: Released::default(), readers: Vec::new() };
        Self { bytes, stores: VecDeque::from([first]), stale: HashMap::new() }
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
        let is_known = |store: &Store| {
            store.mark.as_ref().is_some_and(|mark| observer.follows(mark))
                || store.readers.iter().any(|reader| observer.follows(reader))
        };
        let oldest = self.stores.iter().rposition(is_known).unwrap_or(0);
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

    /// All that was released with the newest store, whoever looks.
    pub(super) fn all_released(&self) -> Released {
        self.stores.back().map(|store| Arc::clone(&store.released)).unwrap_or_default()
    }

    /// The releases of the last store of this thread: its release pattern goes on with each
    /// strong store that it makes here.
    pub(super) fn own_released(&self, author: Author) -> Released {
        let own = |store: &&Store| store.mark.as_ref().is_some_and(|mark| mark.author == author);
        self.stores.iter().rev().find(own).map(|store| Arc::clone(&store.released)).unwrap_or_default()
    }

    /// A strong store, or what an atomic operation writes.
    pub(super) fn store(&mut self, mark: GlobalAccess, value: [u8; WIDEST], released: Released) {
        if self.stores.len() == MOST_STORES {
            self.stores.pop_front();
        }
        self.stores.push_back(Store { value, mark: Some(mark), released, readers: Vec::new() });
    }
}
