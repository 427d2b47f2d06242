//! Bulk stores to global memory that the issuing thread has not waited for.
//!
//! `cp.async.bulk.wait_group.read` only guarantees that the tile has been read. The stored data can
//! be read after a `cp.async.bulk.wait_group` (PTX ISA, "cp.async.bulk.wait_group"). Knowledge of
//! that wait is not tracked through the cluster: once the issuing thread has waited, the memory
//! counts as written for all threads. Until then, another store or reduction to the same location
//! is unordered with it, even within one group. Only reductions with the same operation may come in
//! any order.

use std::collections::BTreeMap;

use crate::machine::index::ThreadId;
use crate::machine::types::{Actor, Reduction};

/// A range of global memory that a store is writing.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) struct UnfinishedStore {
    end: u64,
    pub(in crate::machine) issuer: Actor,
    /// The bulk group that the store belongs to.
    group: u32,
    /// The operation that combines the data with the contents of memory; `None` for a plain store.
    reduction: Option<Reduction>,
}

/// A store: its issuer, its bulk group, and the operation that combines its data with the contents
/// of memory.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) struct BulkStore {
    pub(in crate::machine) issuer: Actor,
    pub(in crate::machine) group: u32,
    pub(in crate::machine) reduction: Option<Reduction>,
}

/// The ranges that bulk stores are writing, by their starts. A later store to the same location
/// replaces the earlier one.
#[derive(Debug, Default)]
pub(in crate::machine) struct UnfinishedStores(BTreeMap<u64, UnfinishedStore>);

impl UnfinishedStores {
    /// Returns whether there are none.
    #[inline]
    pub(in crate::machine) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets the stores in groups of `thread` up to `last`.
    pub(in crate::machine) fn complete(&mut self, thread: ThreadId, last: u32) {
        self.0.retain(|_, store| store.issuer.thread != thread || store.group > last);
    }

    /// Returns a store that overlaps the `len` bytes at `address`.
    #[inline]
    pub(in crate::machine) fn at(&self, address: u64, len: u64) -> Option<UnfinishedStore> {
        if self.0.is_empty() {
            return None;
        }
        let (_, store) = self.0.range(..address.saturating_add(len)).next_back()?;
        (store.end > address).then_some(*store)
    }

    /// Adds a store to these ranges, joined pairs of start and end. Returns a location that another
    /// store is writing to, if the two may not come in any order.
    pub(in crate::machine) fn add(
        &mut self,
        store: BulkStore,
        ranges: impl Iterator<Item = (u64, u64)>,
    ) -> Option<(u64, UnfinishedStore)> {
        let BulkStore { issuer, group, reduction } = store;
        let mut unordered = None;
        for (start, end) in ranges {
            let other = self.at(start, end - start);
            let other = other.filter(|other| reduction.is_none() || other.reduction != reduction);
            unordered = unordered.or(other.map(|other| (start, other)));
            self.0.insert(start, UnfinishedStore { end, issuer, group, reduction });
        }
        unordered
    }
}

/// Merges ranges that follow each other without a gap.
pub(in crate::machine) fn merge_ranges(
    ranges: impl Iterator<Item = (u64, u64)>,
) -> impl Iterator<Item = (u64, u64)> {
    let mut ranges = ranges.peekable();
    std::iter::from_fn(move || {
        let (start, mut end) = ranges.next()?;
        while let Some((_, last)) = ranges.next_if(|&(next, _)| next == end) {
            end = last;
        }
        Some((start, end))
    })
}
