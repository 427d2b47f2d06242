//! The accesses of asynchronous operations. All of them are recorded here, when the operation
//! starts.

use std::ops::Range;

use tma_model::sync::{AccessKind, Epoch, View};

use super::operation::{AsyncOp, SharedTarget, Source, Target, ThreadPart, Unit};
use crate::machine::diagnostics::LaterAccess;
use crate::machine::global::{AccessAttributes, GlobalAccess, GlobalConflict};
use crate::machine::index::{BlockRank, OperationId};
use crate::machine::memory::{
    BulkStore, Conflict, IN_FLIGHT, Mark, Memory, POISON, TileChunk, UnfinishedStore, merge_ranges,
};
use crate::machine::order::HappensBefore;
use crate::machine::types::Action;

/// An earlier access that conflicts with the start of an operation.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) enum StartConflict {
    /// A conflict in the shared memory of a block.
    Shared { action: Action, later_access: LaterAccess, rank: BlockRank, conflict: Conflict },
    /// A bulk store to global memory that no thread has waited for.
    NotStored { action: Action, address: u64, store: UnfinishedStore },
    /// A conflict in global memory.
    Global { action: Action, attributes: AccessAttributes, conflict: GlobalConflict },
}

/// Returns the step that represents an operation whose completion has no step yet.
fn in_flight(operation: OperationId) -> Epoch {
    Epoch::new(IN_FLIGHT, operation.0)
}

impl AsyncOp {
    /// Records the reads and writes of the operation from now on. Shared memory that it will
    /// replace holds poison until then.
    pub(in crate::machine) fn record_accesses(
        &self,
        number: OperationId,
        memory: &mut Memory,
        order: &HappensBefore,
    ) -> Vec<StartConflict> {
        let mut start_conflicts = Vec::new();
        for part in self.thread_parts() {
            match self.reads {
                Source::Shared { rank, done } => {
                    start_conflicts.extend(self.read_shared(&part, rank, done, memory, order));
                }
                Source::Global | Source::Value(_) => {}
            }
            match self.writes {
                Target::Shared(target) => {
                    let step = part.done.unwrap_or_else(|| in_flight(number));
                    start_conflicts.extend(self.write_shared(&part, target, step, memory, order));
                }
                Target::Global { .. } => {}
            }
            match self.reads {
                Source::Global => {
                    // For `cp.async` this was already reported like a load's.
                    let unfinished =
                        if self.is_in_async_proxy() { self.read_unfinished(&part, memory) } else { None };
                    let conflict = self.read_global(&part, number, memory, order.view(part.thread));
                    start_conflicts.extend(unfinished.or(conflict));
                }
                Source::Shared { .. } | Source::Value(_) => {}
            }
            match self.writes {
                Target::Global { done } => {
                    start_conflicts.extend(self.write_global(&part, done, memory, order));
                }
                Target::Shared(_) => {}
            }
        }
        start_conflicts
    }

    /// Records a read of shared memory that lasts until the step `done` is known.
    fn read_shared(
        &self,
        part: &ThreadPart,
        rank: BlockRank,
        done: Epoch,
        memory: &mut Memory,
        order: &HappensBefore,
    ) -> Option<StartConflict> {
        if !order.is_checked() {
            return None;
        }
        let (view, shadow) = (order.view(part.thread), &mut memory.shared[rank].shadow);
        let reader = Mark { step: done, line: self.issuer.site.ptx_line };
        let mut first = None;
        self.units.for_each(part.units.clone(), |_, unit| {
            let found = shadow.read_async(unit.shared, unit.bytes, view, reader);
            first = first.or(found);
        });
        let (action, later_access) = (self.starts(part.thread), LaterAccess::CopyOut);
        first.map(|conflict| StartConflict::Shared { action, later_access, rank, conflict })
    }

    /// Records a write of shared memory that lasts until `step` is known.
    fn write_shared(
        &self,
        part: &ThreadPart,
        target: SharedTarget,
        step: Epoch,
        memory: &mut Memory,
        order: &HappensBefore,
    ) -> Option<StartConflict> {
        let (view, shared) = (order.view(part.thread), &mut memory.shared[target.rank]);
        let (write, mark) = (self.write(), Mark { step, line: self.issuer.site.ptx_line });
        let tile = self.tile();
        let mut first = None;
        self.units.for_each(part.units.clone(), |number, unit| {
            let at = target.offset(&unit);
            shared.set_tile_chunk(at, tile.clone().map(|tile| TileChunk::new(tile, number)));
            if order.is_checked() {
                let found = shared.shadow.write_async(at, unit.bytes, view, write, mark);
                first = first.or(found);
            }
            if self.combination.is_none() {
                shared.bytes_mut(at, unit.bytes as usize).fill(POISON);
            }
        });
        let (action, later_access) = (self.starts(part.thread), LaterAccess::CopyIn);
        first.map(|conflict| StartConflict::Shared { action, later_access, rank: target.rank, conflict })
    }

    /// Finds a bulk store that no thread has waited for, to memory that the operation reads.
    fn read_unfinished(&self, part: &ThreadPart, memory: &Memory) -> Option<StartConflict> {
        if memory.stores.is_empty() {
            return None;
        }
        let unfinished = |unit: Unit| {
            let (start, end) = unit.range()?;
            Some((start, memory.stores.at(start, end.wrapping_sub(start))?))
        };
        let (address, store) = self.units.some(part.units.clone()).find_map(unfinished)?;
        Some(StartConflict::NotStored { action: self.starts(part.thread), address, store })
    }

    /// Records a read of global memory that lasts until the operation has landed.
    fn read_global(
        &self,
        part: &ThreadPart,
        number: OperationId,
        memory: &mut Memory,
        view: &View,
    ) -> Option<StartConflict> {
        if memory.accesses.is_off() {
            return None;
        }
        let attributes = match self.is_in_async_proxy() {
            true => AccessAttributes::of_copy(AccessKind::Read),
            false => AccessAttributes::generic(AccessKind::Read, None),
        };
        self.access_global(part, part.done.unwrap_or_else(|| in_flight(number)), attributes, memory, view)
    }

    fn access_global(
        &self,
        part: &ThreadPart,
        step: Epoch,
        attributes: AccessAttributes,
        memory: &mut Memory,
        view: &View,
    ) -> Option<StartConflict> {
        let grid_thread = memory.accesses.grid_thread(part.thread);
        let access = GlobalAccess { step, grid_thread, line: self.issuer.site.ptx_line, attributes };
        let ranges = self.ranges(part.units.clone());
        let conflict = memory.accesses.access(&access, view, ranges)?;
        Some(StartConflict::Global { action: self.starts(part.thread), attributes, conflict })
    }

    /// Records a write of global memory. A write that is combined with the contents of memory also
    /// reads them.
    fn write_global(
        &self,
        part: &ThreadPart,
        done: Epoch,
        memory: &mut Memory,
        order: &HappensBefore,
    ) -> Option<StartConflict> {
        if !order.is_checked() {
            return None;
        }
        let group = part.done.map_or(0, Epoch::count);
        let reduction = self.combination.map(|combination| combination.with);
        let store = BulkStore { issuer: self.issuer, group, reduction };
        let unordered = memory.stores.add(store, self.ranges(part.units.clone()));
        let action = self.starts(part.thread);
        let unfinished =
            unordered.map(|(address, store)| StartConflict::NotStored { action, address, store });
        if memory.accesses.is_off() {
            return unfinished;
        }
        let kind = if self.combination.is_some() { AccessKind::Reduce } else { AccessKind::Write };
        let conflict =
            self.access_global(part, done, AccessAttributes::of_copy(kind), memory, order.view(part.thread));
        unfinished.or(conflict)
    }

    /// Returns the ranges of units in global memory, as merged pairs of start and end.
    pub(in crate::machine) fn ranges(&self, units: Range<u32>) -> impl Iterator<Item = (u64, u64)> + '_ {
        merge_ranges(self.units.some(units).filter_map(|unit| unit.range()))
    }
}
