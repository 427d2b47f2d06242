//! The accesses of asynchronous operations. All of them are recorded here, when the operation
//! starts.

use std::ops::Range;

use tma_model::sync::{AccessKind, Epoch, View};

use super::operation::{AsyncOp, Part, SharedTarget, Source, Target, Unit};
use crate::machine::diagnostics::Act;
use crate::machine::global::{GlobalAccess, GlobalConflict, Manner};
use crate::machine::index::{BlockRank, OperationId};
use crate::machine::memory::{Conflict, IN_FLIGHT, Mark, Memory, POISON, Store, Stretch, TileChunk, joined};
use crate::machine::order::HappensBefore;
use crate::machine::types::Action;

/// An earlier access that conflicts with the start of an operation.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) enum Clash {
    /// A conflict in the shared memory of a block.
    Shared { action: Action, act: Act, rank: BlockRank, conflict: Conflict },
    /// A bulk store to global memory that no thread has waited for.
    NotStored { action: Action, address: u64, stretch: Stretch },
    /// A conflict in global memory.
    Global { action: Action, manner: Manner, conflict: GlobalConflict },
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
    ) -> Vec<Clash> {
        let mut clashes = Vec::new();
        for part in self.parts() {
            match self.reads {
                Source::Shared { rank, done } => {
                    clashes.extend(self.read_shared(&part, rank, done, memory, order));
                }
                Source::Global | Source::Value(_) => {}
            }
            match self.writes {
                Target::Shared(target) => {
                    let step = part.done.unwrap_or_else(|| in_flight(number));
                    clashes.extend(self.write_shared(&part, target, step, memory, order));
                }
                Target::Global { .. } => {}
            }
            match self.reads {
                Source::Global => {
                    // For `cp.async` this was already reported like a load's.
                    let unfinished =
                        if self.is_in_async_proxy() { self.read_unfinished(&part, memory) } else { None };
                    let conflict = self.read_global(&part, number, memory, order.view(part.who));
                    clashes.extend(unfinished.or(conflict));
                }
                Source::Shared { .. } | Source::Value(_) => {}
            }
            match self.writes {
                Target::Global { done } => clashes.extend(self.write_global(&part, done, memory, order)),
                Target::Shared(_) => {}
            }
        }
        clashes
    }

    /// Records a read of shared memory that lasts until the step `done` is known.
    fn read_shared(
        &self,
        part: &Part,
        rank: BlockRank,
        done: Epoch,
        memory: &mut Memory,
        order: &HappensBefore,
    ) -> Option<Clash> {
        if !order.is_checked() {
            return None;
        }
        let (view, shadow) = (order.view(part.who), &mut memory.shared[rank].shadow);
        let reader = Mark { step: done, line: self.issuer.site.ptx_line };
        let mut first = None;
        self.units.for_each(part.units.clone(), |_, unit| {
            let found = shadow.read_async(unit.shared, unit.bytes, view, reader);
            first = first.or(found);
        });
        let (action, act) = (self.starts(part.who), Act::CopyOut);
        first.map(|conflict| Clash::Shared { action, act, rank, conflict })
    }

    /// Records a write of shared memory that lasts until `step` is known.
    fn write_shared(
        &self,
        part: &Part,
        target: SharedTarget,
        step: Epoch,
        memory: &mut Memory,
        order: &HappensBefore,
    ) -> Option<Clash> {
        let (view, shared) = (order.view(part.who), &mut memory.shared[target.rank]);
        let (write, mark) = (self.write(), Mark { step, line: self.issuer.site.ptx_line });
        let tile = self.tile();
        let mut first = None;
        self.units.for_each(part.units.clone(), |number, unit| {
            let at = target.place(&unit);
            shared.lay_out(at, tile.clone().map(|tile| TileChunk::new(tile, number)));
            if order.is_checked() {
                let found = shared.shadow.write_async(at, unit.bytes, view, write, mark);
                first = first.or(found);
            }
            if self.combination.is_none() {
                shared.bytes_mut(at, unit.bytes as usize).fill(POISON);
            }
        });
        let (action, act) = (self.starts(part.who), Act::CopyIn);
        first.map(|conflict| Clash::Shared { action, act, rank: target.rank, conflict })
    }

    /// Finds a bulk store that no thread has waited for, to memory that the operation reads.
    fn read_unfinished(&self, part: &Part, memory: &Memory) -> Option<Clash> {
        if memory.stores.is_empty() {
            return None;
        }
        let unfinished = |unit: Unit| {
            let (start, end) = unit.stretch()?;
            Some((start, memory.stores.at(start, end.wrapping_sub(start))?))
        };
        let (address, stretch) = self.units.some(part.units.clone()).find_map(unfinished)?;
        Some(Clash::NotStored { action: self.starts(part.who), address, stretch })
    }

    /// Records a read of global memory that lasts until the operation has landed.
    fn read_global(
        &self,
        part: &Part,
        number: OperationId,
        memory: &mut Memory,
        view: &View,
    ) -> Option<Clash> {
        if memory.accesses.is_off() {
            return None;
        }
        let manner = match self.is_in_async_proxy() {
            true => Manner::of_copy(AccessKind::Read),
            false => Manner::generic(AccessKind::Read, None),
        };
        self.access_global(part, part.done.unwrap_or_else(|| in_flight(number)), manner, memory, view)
    }

    fn access_global(
        &self,
        part: &Part,
        step: Epoch,
        manner: Manner,
        memory: &mut Memory,
        view: &View,
    ) -> Option<Clash> {
        let author = memory.accesses.author(part.who);
        let access = GlobalAccess { step, author, line: self.issuer.site.ptx_line, manner };
        let stretches = self.stretches(part.units.clone());
        let conflict = memory.accesses.access(&access, view, stretches)?;
        Some(Clash::Global { action: self.starts(part.who), manner, conflict })
    }

    /// Records a write of global memory. A write that is combined with the contents of memory also
    /// reads them.
    fn write_global(
        &self,
        part: &Part,
        done: Epoch,
        memory: &mut Memory,
        order: &HappensBefore,
    ) -> Option<Clash> {
        if !order.is_checked() {
            return None;
        }
        let group = part.done.map_or(0, Epoch::count);
        let reduction = self.combination.map(|combination| combination.with);
        let store = Store { issuer: self.issuer, group, reduction };
        let unordered = memory.stores.add(store, self.stretches(part.units.clone()));
        let action = self.starts(part.who);
        let unfinished = unordered.map(|(address, stretch)| Clash::NotStored { action, address, stretch });
        if memory.accesses.is_off() {
            return unfinished;
        }
        let kind = if self.combination.is_some() { AccessKind::Reduce } else { AccessKind::Write };
        let conflict = self.access_global(part, done, Manner::of_copy(kind), memory, order.view(part.who));
        unfinished.or(conflict)
    }

    /// Returns the ranges of units in global memory, as merged pairs of start and end.
    pub(in crate::machine) fn stretches(&self, units: Range<u32>) -> impl Iterator<Item = (u64, u64)> + '_ {
        joined(self.units.some(units).filter_map(|unit| unit.stretch()))
    }
}
