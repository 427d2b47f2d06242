//! What bulk stores write in global memory, until the thread that issued them has waited for it.
//!
//! `cp.async.bulk.wait_group.read` tells only that the tile has been read; what was stored is there to be read after a
//! `cp.async.bulk.wait_group` (PTX ISA, "cp.async.bulk.wait_group"). Who else in the cluster learns of that wait is not
//! followed: once the issuing thread has made it, the memory counts as written for all. Until then another store or
//! reduction to the same place has no order with it, not even in the same group, and only reductions by one operation may
//! come in any.

use std::collections::BTreeMap;

use super::Machine;
use super::access::Access;
use super::engine::Shape;
use super::types::{Reduction, Site, ThreadId};
use crate::report::{Finding, FindingKind};

/// A stretch of global memory that a store is writing.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    end: u64,
    who: ThreadId,
    /// The bulk group that the store is of.
    group: u32,
    site: Site,
    /// What is done with what is there; a plain store, if nothing.
    reduction: Option<Reduction>,
}

/// All of them, by where they begin. A later store to the same place takes the place of the earlier one.
#[derive(Debug, Default)]
pub(super) struct Stored(BTreeMap<u64, Stretch>);

impl Stored {
    /// Forgets what groups of `who` up to `last` have written.
    pub(super) fn complete(&mut self, who: ThreadId, last: u32) {
        self.0.retain(|_, stretch| stretch.who != who || stretch.group > last);
    }

    /// The stretch that has bytes among the `len` bytes at `address`.
    #[inline]
    fn at(&self, address: u64, len: u64) -> Option<Stretch> {
        if self.0.is_empty() {
            return None;
        }
        let (_, stretch) = self.0.range(..address.saturating_add(len)).next_back()?;
        (stretch.end > address).then_some(*stretch)
    }
}

impl Machine {
    /// Remembers where a store or reduction of bulk group `group` writes, and checks that no other one is on its way there.
    pub(super) fn stores_to(
        &mut self,
        access: Access,
        shape: &Shape,
        units: u32,
        group: u32,
        reduction: Option<Reduction>,
    ) {
        if !self.config.checks.order {
            return;
        }
        let Access { who, site, .. } = access;
        let maps = self.maps.all();
        // Units that lie together are one stretch.
        let mut open: Option<(u64, u64)> = None;
        let mut unordered = None;
        let stored = &mut self.stored;
        let mut close = |(start, end)| {
            let other = stored.at(start, end - start);
            let other = other.filter(|other| reduction.is_none() || other.reduction != reduction);
            unordered = unordered.or(other.map(|other| (start, other)));
            stored.0.insert(start, Stretch { end, who, group, site, reduction });
        };
        for unit in (0..units).map(|number| shape.unit(&maps, number)) {
            let Some(global) = unit.global else { continue };
            let (start, end) = (global.wrapping_add(unit.from.into()), global.wrapping_add(unit.to.into()));
            open = match open {
                Some((first, last)) if last == start => Some((first, end)),
                Some(stretch) => {
                    close(stretch);
                    Some((start, end))
                }
                None => Some((start, end)),
            };
        }
        open.map(&mut close);
        if let Some((address, other)) = unordered {
            self.not_stored(access, address, other);
        }
    }

    /// Checks that no store to the `len` bytes at `address` of global memory is still to be waited for.
    #[inline]
    pub(super) fn check_stored(&mut self, access: Access, address: u64, len: u64) {
        if let Some(stretch) = self.stored.at(address, len) {
            self.not_stored(access, address, stretch);
        }
    }

    /// As [`check_stored`](Self::check_stored), of all that a load reads.
    pub(super) fn check_loaded(&mut self, access: Access, shape: &Shape, units: u32) {
        if self.stored.0.is_empty() {
            return;
        }
        let maps = self.maps.all();
        let place = (0..units).map(|number| shape.unit(&maps, number)).find_map(|unit| {
            let start = unit.global?.wrapping_add(unit.from.into());
            Some((start, self.stored.at(start, (unit.to - unit.from).into())?))
        });
        if let Some((address, stretch)) = place {
            self.not_stored(access, address, stretch);
        }
    }

    #[cold]
    fn not_stored(&mut self, access: Access, address: u64, stretch: Stretch) {
        let message = format!("a bulk store to global memory at {address:#x} is not known to be complete");
        let finding = Finding::new(FindingKind::InFlight, message)
            .with(self.party(access.who, access.site, access.does))
            .with(self.party(stretch.who, stretch.site, "issued the store"))
            .help(
                "[[`bulk_wait_group::<0>()`||`cp.async.bulk.wait_group`]] by the thread that issued the store: \
                 [[`bulk_wait_group_read` waits||with `.read` it waits]] only until the tile is read, not until it is written",
            );
        self.report(finding);
    }
}
