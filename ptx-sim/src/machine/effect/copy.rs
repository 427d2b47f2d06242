//! Starting copies: what the copy engine refuses, what has to be ordered before, and who is told at the end.

use super::Machine;
use super::access::Access;
use super::clock::Epoch;
use super::conflict::Act;
use super::counters::CopyKind;
use super::engine::{Flight, Shape, Way};
use super::mbarrier_ops::GONE;
use super::overrun::Issue;
use super::refusal;
use super::shadow::Manner;
use super::state::{Lent, POISON};
use super::types::{BulkAction, BulkCopy, Reduction, Site, Space, TensorAction, TensorCopy, ThreadId};
use crate::report::{Finding, FindingKind, Stop};
use crate::tensor_map::{Element, UNIT, Walk};

/// What the tile of a tensor copy has to be aligned to. Source: PTX ISA, "cp.async.bulk.tensor", which asks for 128 bytes.
const TILE_ALIGNMENT: u32 = 128;
/// Size and alignment of the mbarrier of a load.
const BARRIER: u32 = super::mbarrier::BYTES;

/// A load into one or several blocks.
#[derive(Clone, Copy, Debug)]
struct Load {
    space: Space,
    to: u64,
    barrier: u64,
    multicast: Option<u16>,
    /// Bytes from the first to the last of the destination, and what it has to be aligned to.
    bytes: u32,
    align: u32,
}

impl Machine {
    /// `cp.async.bulk.tensor`, `cp.reduce.async.bulk.tensor`, `cp.async.bulk.prefetch.tensor`.
    ///
    /// # Errors
    ///
    /// What the copy engine refuses, and tiles or mbarriers that are misaligned or not there.
    pub fn tensor_copy(&mut self, who: ThreadId, copy: &TensorCopy, site: Site) -> Result<(), Stop> {
        let access = Access { who, site, does: "issues the copy" };
        let maps = self.maps.all();
        let Some(map) = maps.get(copy.map as usize) else {
            return self.illegal(access, format!("tensor map {} is not known", copy.map), "");
        };
        if let Err(refusal) = refusal::check(copy, map) {
            return self.illegal(access, refusal.message, refusal.help);
        }
        self.note_outside(access, copy, map);
        let TensorCopy { map: number, descriptor, at, offsets, .. } = *copy;
        let shape = |tile| Shape::Box { map: number, descriptor, at, offsets, tile };
        let units = Walk::new(map, copy.at, copy.offsets).units();
        match copy.action {
            TensorAction::Prefetch => {
                self.prefetched(access, CopyKind::TensorPrefetch, &shape(0), map.tile_bytes());
                Ok(())
            }
            TensorAction::Load { space, tile, barrier, multicast } => {
                let bytes = map.tile_bytes();
                let load = Load { space, to: tile, barrier, multicast, bytes, align: TILE_ALIGNMENT };
                self.load_async(access, load, units, &shape)
            }
            TensorAction::Store { tile } => {
                let (_, at) =
                    self.shared_place(access, Space::Shared, tile, map.tile_bytes(), TILE_ALIGNMENT)?;
                self.store_async(access, shape(at), units, None);
                Ok(())
            }
            TensorAction::Reduce { tile, with } => {
                let (_, at) =
                    self.shared_place(access, Space::Shared, tile, map.tile_bytes(), TILE_ALIGNMENT)?;
                self.store_async(access, shape(at), units, Some((with, map.element)));
                Ok(())
            }
        }
    }

    /// `cp.async.bulk`, `cp.reduce.async.bulk` and `cp.async.bulk.prefetch`.
    ///
    /// # Errors
    ///
    /// What the copy engine refuses, and memory that is misaligned or not there.
    pub fn bulk_copy(&mut self, who: ThreadId, copy: &BulkCopy, site: Site) -> Result<(), Stop> {
        let access = Access { who, site, does: "issues the copy" };
        if !copy.bytes.is_multiple_of(UNIT) {
            let message = format!("a bulk copy of {} bytes, which is not a multiple of 16", copy.bytes);
            return self.illegal(access, message, "");
        }
        let (units, bytes) = (copy.bytes / UNIT, copy.bytes);
        match copy.action {
            BulkAction::Prefetch { global } => {
                self.aligned_global(access, global)?;
                self.prefetched(access, CopyKind::BulkPrefetch, &Shape::Line { global, shared: 0 }, bytes);
                Ok(())
            }
            BulkAction::Load { global, space, to, barrier, multicast } => {
                self.aligned_global(access, global)?;
                let load = Load { space, to, barrier, multicast, bytes, align: UNIT };
                self.load_async(access, load, units, &|shared| Shape::Line { global, shared })
            }
            BulkAction::Store { from, global, reduce } => {
                self.aligned_global(access, global)?;
                let (_, shared) = self.shared_place(access, Space::Shared, from, bytes, UNIT)?;
                self.store_async(access, Shape::Line { global, shared }, units, reduce);
                Ok(())
            }
            BulkAction::ToCluster { from, to, barrier, reduce } => {
                self.copy_across(access, (from, to, barrier), bytes, reduce)
            }
        }
    }

    fn aligned_global(&mut self, access: Access, global: u64) -> Result<(), Stop> {
        if global.is_multiple_of(UNIT.into()) {
            return Ok(());
        }
        let party = self.party(access.who, access.site, access.does);
        let message = format!("the global address {global:#x} of a bulk copy is not a multiple of 16");
        self.stop(Finding::new(FindingKind::Misaligned, message).with(party))
    }

    pub(super) fn illegal<T>(&mut self, access: Access, message: String, help: &str) -> Result<T, Stop> {
        let mut finding = Finding::new(FindingKind::IllegalCopy, message);
        if !help.is_empty() {
            finding = finding.help(help);
        }
        let party = self.party(access.who, access.site, access.does);
        self.stop(finding.with(party))
    }

    fn load_async(
        &mut self,
        access: Access,
        load: Load,
        units: u32,
        shape: &dyn Fn(u32) -> Shape,
    ) -> Result<(), Stop> {
        let (to, at) = self.shared_place(access, load.space, load.to, load.bytes, load.align)?;
        let (with, barrier) = self.shared_place(access, load.space, load.barrier, BARRIER, BARRIER)?;
        if to != with {
            let message = format!("a load into block {to} of the cluster with an mbarrier of block {with}");
            return self.illegal(access, message, "the mbarrier has to be in the block that gets the bytes");
        }
        let targets = match load.multicast {
            None => vec![to],
            Some(mask) => (0..16).filter(|rank| mask >> rank & 1 == 1).collect(),
        };
        let (kind, bytes) = (load_kind(&shape(at), load.multicast), u64::from(units * UNIT));
        self.counters.count(kind, bytes * targets.len() as u64);
        for block in targets {
            if block >= self.blocks.len() {
                let message =
                    format!("a multicast to block {block} of a cluster that has {}", self.blocks.len());
                return self.illegal(access, message, "");
            }
            self.mbarrier_for_copy(access, block, barrier)?;
            let shape = shape(at);
            self.claim(access, block, &shape, units, (0, false));
            self.check_loaded(access, &shape, units);
            self.check_fenced(access, &shape, units);
            let (Access { who, site, .. }, issue) = (access, self.issue_of(access.who));
            let flight = Flight { who, site, shape, way: Way::In { block, barrier }, kind, issue, left: 0 };
            self.record_issue(&flight, units);
            let pieces = self.engine.start(flight, units, &mut self.random);
            self.expect_pieces(access, block, barrier, pieces);
        }
        Ok(())
    }

    fn store_async(
        &mut self,
        access: Access,
        shape: Shape,
        units: u32,
        reduce: Option<(Reduction, Element)>,
    ) {
        let Access { who, site, .. } = access;
        let (component, group) = self.open_group(who, site);
        let block = who.block as usize;
        self.lend(access, block, &shape, units, Epoch::new(component, group));
        self.stores_to(access, &shape, units, group, reduce.map(|(with, _)| with));
        match reduce {
            Some(_) => self.check_fenced(access, &shape, units),
            None => self.overwritten(&shape, units),
        }
        let kind = store_kind(&shape, reduce.is_some());
        let (way, issue) = (Way::Out { block, group, reduce }, Issue::default());
        let flight = Flight { who, site, shape, way, kind, issue, left: 0 };
        self.record_issue(&flight, units);
        let pieces = self.engine.start(flight, units, &mut self.random);
        let index = self.index(who);
        let group = self.threads[index].bulk.group(group);
        group.to_read += pieces;
        group.to_write += pieces;
        self.counters.count(kind, u64::from(units * UNIT));
    }

    fn copy_across(
        &mut self,
        access: Access,
        (from, to, barrier): (u64, u64, u64),
        bytes: u32,
        reduce: Option<(Reduction, Element)>,
    ) -> Result<(), Stop> {
        let (source, shared) = self.shared_place(access, Space::Shared, from, bytes, UNIT)?;
        let (block, to) = self.shared_place(access, Space::SharedCluster, to, bytes, UNIT)?;
        let (with, barrier) = self.shared_place(access, Space::SharedCluster, barrier, BARRIER, BARRIER)?;
        if block == source && reduce.is_none() {
            let message = format!("a copy from block to block that stays in block {block}");
            let help = "[[`bulk_copy_to(..)`||`cp.async.bulk` from shared memory]] goes to another block of the cluster; threads \
                        copy their own";
            return self.illegal(access, message, help);
        }
        if block != with {
            let message = format!("a copy to block {block} of the cluster with an mbarrier of block {with}");
            return self.illegal(access, message, "the mbarrier has to be in the block that gets the bytes");
        }
        self.mbarrier_for_copy(access, block, barrier)?;
        let Some(mbarrier) = self.blocks[block].mbarriers.look(barrier) else {
            return self.bug(access, GONE);
        };
        // The mbarrier that gets the bytes also tells that the source is free.
        let reader = Epoch::new(mbarrier.component, mbarrier.phase.saturating_add(1));
        let (shape, units, moved) =
            (Shape::Line { global: 0, shared }, bytes / UNIT, to.wrapping_sub(shared));
        self.lend(access, source, &shape, units, reader);
        self.claim(access, block, &shape, units, (moved, reduce.is_some()));
        let Access { who, site, .. } = access;
        self.blocks[source].lent.push(Lent { done: reader, who, site });
        let way = Way::Across { from: source, block, to, moved, barrier, reduce };
        let kind = CopyKind::BulkAcross;
        let flight = Flight { who, site, shape, way, kind, issue: self.issue_of(who), left: 0 };
        self.counters.count(kind, bytes.into());
        self.record_issue(&flight, units);
        let pieces = self.engine.start(flight, units, &mut self.random);
        self.expect_pieces(access, block, barrier, pieces);
        Ok(())
    }

    pub(super) fn expect_pieces(&mut self, access: Access, block: usize, barrier: u32, pieces: u32) {
        if let Some(mbarrier) = self.blocks[block].mbarriers.at(barrier) {
            mbarrier.under_way += pieces;
            mbarrier.last_load = Some((mbarrier.phase.saturating_add(1), access.who, access.site));
        }
    }

    /// The units of `shape`, `moved` bytes after their place in it, are the next copy's from now on: poison until they land,
    /// unless it `reduces`.
    fn claim(
        &mut self,
        access: Access,
        block: usize,
        shape: &Shape,
        units: u32,
        (moved, reduces): (u32, bool),
    ) {
        let maps = self.maps.all();
        let (number, threads) = (self.engine.next_number(), self.threads.len() as u32);
        let index = self.index(access.who);
        let (line, order) = (access.site.ptx_line, self.config.checks.order);
        let mut first = None;
        let target = &mut self.blocks[block];
        for unit in (0..units).map(|unit| shape.unit(&maps, unit)) {
            let at = unit.shared.wrapping_add(moved);
            if order {
                let view = &self.threads[index].view;
                let manner = Manner { generic: false, reduces };
                let found = target.shadow.write_async(at, UNIT, view, (number, line), manner, threads);
                first = first.or(found);
            }
            if !reduces {
                target.data[at as usize..(at + UNIT) as usize].fill(POISON);
            }
        }
        if let Some(conflict) = first {
            self.conflict(access, Act::CopyIn, block, conflict);
        }
    }

    /// The units of `shape` are read by a copy from now on, until its step `reader` is known.
    fn lend(&mut self, access: Access, block: usize, shape: &Shape, units: u32, reader: Epoch) {
        if !self.config.checks.order {
            return;
        }
        let maps = self.maps.all();
        let threads = self.threads.len() as u32;
        let index = self.index(access.who);
        let view = &self.threads[index].view;
        let shadow = &mut self.blocks[block].shadow;
        let mut first = None;
        for unit in (0..units).map(|unit| shape.unit(&maps, unit)) {
            let found = shadow.read_async(unit.shared, UNIT, view, reader, access.site.ptx_line, threads);
            first = first.or(found);
        }
        if let Some(conflict) = first {
            self.conflict(access, Act::CopyOut, block, conflict);
        }
    }
}

fn load_kind(shape: &Shape, multicast: Option<u16>) -> CopyKind {
    match (shape, multicast) {
        (Shape::Box { .. }, None) => CopyKind::TensorLoad,
        (Shape::Box { .. }, Some(_)) => CopyKind::TensorMulticast,
        (Shape::Line { .. }, None) => CopyKind::BulkLoad,
        (Shape::Line { .. }, Some(_)) => CopyKind::BulkMulticast,
    }
}

fn store_kind(shape: &Shape, reduces: bool) -> CopyKind {
    match (shape, reduces) {
        (Shape::Box { .. }, false) => CopyKind::TensorStore,
        (Shape::Box { .. }, true) => CopyKind::TensorReduce,
        (Shape::Line { .. }, _) => CopyKind::BulkStore,
    }
}
