//! What bulk stores write in global memory, until the thread that issued them has waited for it.
//!
//! `cp.async.bulk.wait_group.read` tells only that the tile has been read; what was stored is there
//! to be read after a `cp.async.bulk.wait_group` (PTX ISA, "cp.async.bulk.wait_group"). Who else in
//! the cluster learns of that wait is not followed: once the issuing thread has made it, the memory
//! counts as written for all. Until then another store or reduction to the same place has no order
//! with it, not even in the same group, and only reductions by one operation may come in any.

use std::collections::BTreeMap;

use crate::machine::index::ThreadId;
use crate::machine::types::{Actor, Reduction};

/// A stretch of global memory that a store is writing.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) struct Stretch {
    end: u64,
    pub(in crate::machine) issuer: Actor,
    /// The bulk group that the store is of.
    group: u32,
    /// What is done with what is there; a plain store, if nothing.
    reduction: Option<Reduction>,
}

/// A store: who issued it, in which bulk group, and how it combines what it writes with what is
/// there.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) struct Store {
    pub(in crate::machine) issuer: Actor,
    pub(in crate::machine) group: u32,
    pub(in crate::machine) reduction: Option<Reduction>,
}

/// What bulk stores are writing, by where it begins. A later store to the same place takes the
/// place of the earlier one.
#[derive(Debug, Default)]
pub(in crate::machine) struct UnfinishedStores(BTreeMap<u64, Stretch>);

impl UnfinishedStores {
    /// Whether there are none.
    #[inline]
    pub(in crate::machine) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets what groups of `who` up to `last` have written.
    pub(in crate::machine) fn complete(&mut self, who: ThreadId, last: u32) {
        self.0.retain(|_, stretch| stretch.issuer.who != who || stretch.group > last);
    }

    /// The stretch that has bytes among the `len` bytes at `address`.
    #[inline]
    pub(in crate::machine) fn at(&self, address: u64, len: u64) -> Option<Stretch> {
        if self.0.is_empty() {
            return None;
        }
        let (_, stretch) = self.0.range(..address.saturating_add(len)).next_back()?;
        (stretch.end > address).then_some(*stretch)
    }

    /// Adds a store to these stretches, each from a first address to an end, joined. The answer is a place
    /// that another store is on its way to, which may not come in any order with it.
    pub(in crate::machine) fn add(
        &mut self,
        store: Store,
        stretches: impl Iterator<Item = (u64, u64)>,
    ) -> Option<(u64, Stretch)> {
        let Store { issuer, group, reduction } = store;
        let mut unordered = None;
        for (start, end) in stretches {
            let other = self.at(start, end - start);
            let other = other.filter(|other| reduction.is_none() || other.reduction != reduction);
            unordered = unordered.or(other.map(|other| (start, other)));
            self.0.insert(start, Stretch { end, issuer, group, reduction });
        }
        unordered
    }
}

/// Stretches of which none begins where the one before it ends.
pub(in crate::machine) fn joined(
    stretches: impl Iterator<Item = (u64, u64)>,
) -> impl Iterator<Item = (u64, u64)> {
    let mut stretches = stretches.peekable();
    std::iter::from_fn(move || {
        let (start, mut end) = stretches.next()?;
        while let Some((_, last)) = stretches.next_if(|&(next, _)| next == end) {
            end = last;
        }
        Some((start, end))
    })
}
