//! Bulk and tensor copies, and stores to other blocks: their translation to asynchronous
//! operations, and the checks that the copy engine makes.

use std::rc::Rc;

use tma_model::help::Help;
use tma_model::sync::Issue;

use super::mbarrier::MBARRIER;
use crate::machine::Machine;
use crate::machine::engine::counters::CopyKind;
use crate::machine::engine::{
    AsyncOp, Completion, OpKind, PieceSplit, SharedTarget, Source, Target, TensorBox, Units, refusal,
};
use crate::machine::index::BlockRank;
use crate::machine::memory::{AccessLayout, OutgoingCopy, SharedLocation};
use crate::machine::types::{
    Action, Actor, BulkAction, BulkCopy, Combination, Pointer, RemoteStore, Space, TensorAction, TensorCopy,
};
use crate::report::{Finding, FindingKind, Stop, counted};
use crate::tensor_map::{TensorMap, UNIT};

/// The required alignment of the tile of a tensor copy. Source: PTX ISA, "cp.async.bulk.tensor",
/// which requires 128 bytes.
const TILE_ALIGNMENT: u32 = 128;

/// The destination of a load: the tile, the mbarrier, and the blocks that receive both.
#[derive(Clone, Copy, Debug)]
struct LoadTarget {
    to: Pointer,
    layout: AccessLayout,
    barrier: Pointer,
    multicast: Option<u16>,
}

/// A copy from one block to another.
#[derive(Clone, Copy, Debug)]
struct BlockToBlockCopy {
    from: u64,
    to: u64,
    barrier: u64,
    bytes: u32,
    combination: Option<Combination>,
}

impl Machine {
    /// `cp.async.bulk.tensor`, `cp.reduce.async.bulk.tensor`, `cp.async.bulk.prefetch.tensor`.
    ///
    /// # Errors
    ///
    /// If the copy engine refuses the copy, or the tile or the mbarrier is misaligned or does not
    /// exist.
    pub fn tensor_copy(&mut self, issuer: Actor, copy: &TensorCopy) -> Result<(), Stop> {
        let action = issuer.does("issues the copy");
        let TensorCopy { map: number, descriptor, at, offsets, .. } = *copy;
        let Some(map) = self.memory.maps.get(number).map(Rc::clone) else {
            return self.illegal(action, format!("tensor map {number} is unknown"), None);
        };
        if let Err(refusal) = refusal::check(copy, &map) {
            return self.illegal(action, refusal.message, refusal.help);
        }
        self.check_rows(action, copy, &map);
        self.diagnostics.note_outside(action, copy, &map);
        let bytes = map.tile_bytes();
        let layout = AccessLayout { bytes, align: TILE_ALIGNMENT };
        let element = map.element;
        let units = |tile| {
            let map = Rc::clone(&map);
            Units::Box(TensorBox { map, descriptor, at, offsets, tile })
        };
        match copy.action {
            TensorAction::Prefetch => {
                self.prefetch(CopyKind::TensorPrefetch, &units(0), bytes, issuer);
                Ok(())
            }
            TensorAction::Load { space, tile, barrier, multicast } => {
                let (to, barrier) = (Pointer::new(space, tile), Pointer::new(space, barrier));
                let kind = match multicast {
                    None => CopyKind::TensorLoad,
                    Some(_) => CopyKind::TensorMulticast,
                };
                self.load_async(issuer, kind, LoadTarget { to, layout, barrier, multicast }, units)
            }
            TensorAction::Store { tile } => {
                let location = self.locate_shared(action, Pointer::shared(tile), layout)?;
                self.store_async(issuer, CopyKind::TensorStore, units(location.at), None);
                Ok(())
            }
            TensorAction::Reduce { tile, with } => {
                let location = self.locate_shared(action, Pointer::shared(tile), layout)?;
                let combination = Some(Combination { with, element });
                self.store_async(issuer, CopyKind::TensorReduce, units(location.at), combination);
                Ok(())
            }
        }
    }

    /// Reports stores through a map in global memory that write beyond the rows of its tensor. A
    /// map in the parameters comes from the host, where the runtime refuses such maps (TMA0518).
    fn check_rows(&mut self, action: Action, copy: &TensorCopy, map: &TensorMap) {
        let stores = match copy.action {
            TensorAction::Store { .. } | TensorAction::Reduce { .. } => true,
            TensorAction::Load { .. } | TensorAction::Prefetch => false,
        };
        if !stores || copy.descriptor.is_none() {
            return;
        }
        if let Some(bytes) = map.ragged_row() {
            let message = format!(
                "a store through a map with rows of {bytes} bytes writes beyond the row, since it writes \
                 whole units of {UNIT} bytes"
            );
            let party = self.diagnostics.party(action);
            let finding = Finding::new(FindingKind::OutOfBounds, message)
                .with(party)
                .help("make the innermost extent a multiple of 16 bytes, or only load through the map");
            self.report(finding);
        }
    }

    /// `cp.async.bulk`, `cp.reduce.async.bulk` and `cp.async.bulk.prefetch`.
    ///
    /// # Errors
    ///
    /// If the copy engine refuses the copy, or memory is misaligned or does not exist.
    pub fn bulk_copy(&mut self, issuer: Actor, copy: &BulkCopy) -> Result<(), Stop> {
        let action = issuer.does("issues the copy");
        let bytes = copy.bytes;
        if !bytes.is_multiple_of(UNIT) {
            let message = format!("a bulk copy has {bytes} bytes, which is not a multiple of 16");
            return self.illegal(action, message, None);
        }
        let layout = AccessLayout { bytes, align: UNIT };
        match copy.action {
            BulkAction::Prefetch { global } => {
                self.aligned_global(action, global)?;
                let units = Units::Line { global, shared: 0, bytes };
                self.prefetch(CopyKind::BulkPrefetch, &units, bytes, issuer);
                Ok(())
            }
            BulkAction::Load { global, space, to, barrier, multicast } => {
                self.aligned_global(action, global)?;
                let (to, barrier) = (Pointer::new(space, to), Pointer::new(space, barrier));
                let kind = match multicast {
                    None => CopyKind::BulkLoad,
                    Some(_) => CopyKind::BulkMulticast,
                };
                let target = LoadTarget { to, layout, barrier, multicast };
                self.load_async(issuer, kind, target, |shared| Units::Line { global, shared, bytes })
            }
            BulkAction::Store { from, global, reduce } => {
                self.aligned_global(action, global)?;
                let location = self.locate_shared(action, Pointer::shared(from), layout)?;
                let units = Units::Line { global, shared: location.at, bytes };
                self.store_async(issuer, CopyKind::BulkStore, units, reduce);
                Ok(())
            }
            BulkAction::ToCluster { from, to, barrier, reduce } => {
                let copy = BlockToBlockCopy { from, to, barrier, bytes, combination: reduce };
                self.copy_between_blocks(issuer, copy)
            }
        }
    }

    fn aligned_global(&mut self, action: Action, global: u64) -> Result<(), Stop> {
        if global.is_multiple_of(UNIT.into()) {
            return Ok(());
        }
        let message = format!("the global address {global:#x} of a bulk copy is not a multiple of 16");
        self.refuse(action, FindingKind::Misaligned, message)
    }

    fn load_async(
        &mut self,
        issuer: Actor,
        kind: CopyKind,
        target: LoadTarget,
        units: impl Fn(u32) -> Units,
    ) -> Result<(), Stop> {
        let action = issuer.does("issues the copy");
        let to = self.locate_shared(action, target.to, target.layout)?;
        let barrier = self.locate_shared(action, target.barrier, MBARRIER)?;
        if to.rank != barrier.rank {
            let (to, with) = (to.rank, barrier.rank);
            let message = format!(
                "a load into block {to} of the cluster completes on an mbarrier of block \
                {with}"
            );
            return self.illegal(action, message, Some(Help::CompleteAtReceiver));
        }
        let ranks: Vec<BlockRank> = match target.multicast {
            None => vec![to.rank],
            Some(mask) => (0..16).filter(|rank| mask >> rank & 1 == 1).map(BlockRank).collect(),
        };
        let bytes = u64::from(units(to.at).all_bytes());
        self.counters.count(kind, bytes * ranks.len() as u64);
        for rank in ranks {
            if rank.0 >= self.shape.blocks {
                let blocks = counted(self.shape.blocks, "block");
                let message = format!("a multicast goes to block {rank}, but the cluster has {blocks}");
                return self.illegal(action, message, None);
            }
            let barrier = SharedLocation { rank, ..barrier };
            self.mbarrier_for_copy(action, barrier)?;
            let op = AsyncOp {
                issuer,
                kind: OpKind::Bulk(kind),
                units: units(to.at),
                reads: Source::Global,
                writes: Target::Shared(SharedTarget::of(rank)),
                combination: None,
                completes: Completion::Mbarrier(barrier),
                issue: self.issue_of(issuer.thread),
            };
            self.start(op, PieceSplit::Random);
        }
        Ok(())
    }

    fn store_async(&mut self, issuer: Actor, kind: CopyKind, units: Units, combination: Option<Combination>) {
        let (group, written) = self.engines.open_group(issuer, &mut self.order);
        self.counters.count(kind, units.all_bytes().into());
        let op = AsyncOp {
            issuer,
            kind: OpKind::Bulk(kind),
            units,
            reads: Source::Shared { rank: issuer.thread.block, done: group },
            writes: Target::Global { done: written },
            combination,
            completes: Completion::BulkGroup(group),
            issue: Issue::default(),
        };
        self.start(op, PieceSplit::Random);
    }

    fn copy_between_blocks(&mut self, issuer: Actor, copy: BlockToBlockCopy) -> Result<(), Stop> {
        let action = issuer.does("issues the copy");
        let BlockToBlockCopy { from, to, barrier, bytes, combination } = copy;
        let layout = AccessLayout { bytes, align: UNIT };
        let source = self.locate_shared(action, Pointer::shared(from), layout)?;
        let to = self.locate_shared(action, Pointer::cluster(to), layout)?;
        let barrier = self.locate_shared(action, Pointer::cluster(barrier), MBARRIER)?;
        if to.rank == source.rank && combination.is_none() {
            let message = format!("a copy between blocks stays in block {}", to.rank);
            return self.illegal(action, message, Some(Help::CopyToOtherBlock));
        }
        if to.rank != barrier.rank {
            let (to, with) = (to.rank, barrier.rank);
            let message = format!(
                "a copy to block {to} of the cluster completes on an mbarrier of block \
                {with}"
            );
            return self.illegal(action, message, Some(Help::CompleteAtReceiver));
        }
        self.mbarrier_for_copy(action, barrier)?;
        let Some(mbarrier) = self.barriers.mbarrier(barrier) else {
            return Err(self.diagnostics.bug(action, "an mbarrier disappeared during an instruction"));
        };
        // The mbarrier that counts the bytes also signals that the source has been read.
        let done = mbarrier.next_phase();
        let moved = to.at.wrapping_sub(source.at);
        let op = AsyncOp {
            issuer,
            kind: OpKind::Bulk(CopyKind::BulkBetweenBlocks),
            units: Units::Line { global: 0, shared: source.at, bytes },
            reads: Source::Shared { rank: source.rank, done },
            writes: Target::Shared(SharedTarget { rank: to.rank, moved }),
            combination,
            completes: Completion::Mbarrier(barrier),
            issue: self.issue_of(issuer.thread),
        };
        self.counters.count(CopyKind::BulkBetweenBlocks, bytes.into());
        self.memory.shared[source.rank].outgoing.push(OutgoingCopy { done, issuer });
        self.start(op, PieceSplit::Random);
        Ok(())
    }

    /// `st.async` and `red.async`: asynchronous generic-proxy writes of a thread to the shared
    /// memory of a block of its cluster, tracked by an mbarrier there.
    ///
    /// Source: PTX ISA, "st.async" and "red.async": weak and relaxed operations, whose complete-tx
    /// operation has release semantics at cluster scope.
    ///
    /// # Errors
    ///
    /// If the access is out of bounds or misaligned, there is no mbarrier, or it is in another
    /// block than the destination.
    pub fn remote_store(&mut self, issuer: Actor, store: &RemoteStore) -> Result<(), Stop> {
        let action = issuer.does("issues the store");
        let RemoteStore { space, to, value, bytes, barrier, reduce } = *store;
        debug_assert!(space != Space::Global, "st.async goes to shared memory");
        let to = self.locate_shared(action, Pointer::new(space, to), AccessLayout::natural(bytes))?;
        let barrier = self.locate_mbarrier(action, Pointer::new(space, barrier))?;
        if to.rank != barrier.rank {
            let (to, with) = (to.rank, barrier.rank);
            let message = format!(
                "a store to block {to} of the cluster completes on an mbarrier of block \
                {with}"
            );
            return self.illegal(action, message, Some(Help::CompleteAtReceiver));
        }
        let op = AsyncOp {
            issuer,
            kind: OpKind::RemoteStore,
            units: Units::Line { global: 0, shared: to.at, bytes },
            reads: Source::Value(value),
            writes: Target::Shared(SharedTarget::of(to.rank)),
            combination: reduce,
            completes: Completion::Mbarrier(barrier),
            issue: self.issue_of(issuer.thread),
        };
        self.start(op, PieceSplit::Whole);
        Ok(())
    }
}
