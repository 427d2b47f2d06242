//! The accesses of an asynchronous operation, which are recorded as it starts: the one place that
//! tells memory of them.

use tma_model::sync::{Epoch, Memory as FencedMemory};

use super::operation::{AsyncOp, Part, SharedTarget, Source, Target, Unit};
use crate::machine::diagnostics::Act;
use crate::machine::index::{BlockRank, OperationId};
use crate::machine::memory::{Conflict, IN_FLIGHT, Mark, Memory, POISON, Store, Stretch, TileChunk, Write};
use crate::machine::order::HappensBefore;
use crate::machine::types::Action;

/// An earlier access that the start of an operation does not go with.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) enum Clash {
    /// In the shared memory of a block.
    Shared { action: Action, act: Act, rank: BlockRank, conflict: Conflict },
    /// A bulk store to global memory that nobody has waited for.
    NotStored { action: Action, address: u64, stretch: Stretch },
    /// A thread's write to global memory, behind which no proxy fence lies.
    NotFenced { action: Action, address: u64, write: Write },
}

/// The step that stands for an operation that is to land and whose completion has no step yet.
fn in_flight(operation: OperationId) -> Epoch {
    Epoch::new(IN_FLIGHT, operation.0)
}

impl AsyncOp {
    /// Records what it reads and writes from now on. Shared memory that it is to replace holds
    /// poison until then.
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
                Target::Global => {}
            }
            match self.reads {
                // `cp.async` reads global memory as its threads do.
                Source::Global if self.is_in_async_proxy() => {
                    clashes.extend(self.read_unfinished(&part, memory));
                    clashes.extend(self.read_unfenced(&part, memory, order));
                }
                Source::Global | Source::Shared { .. } | Source::Value(_) => {}
            }
            match self.writes {
                Target::Global => clashes.extend(self.write_global(&part, memory, order)),
                Target::Shared(_) => {}
            }
        }
        clashes
    }

    /// Shared memory is read from now on, until the step `done` is known.
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

    /// Shared memory is this operation's from now on, until `step` is known.
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

    /// A bulk store to what is read that nobody has waited for.
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

    /// A thread's write to what is read that comes before, with no proxy fence between.
    fn read_unfenced(&self, part: &Part, memory: &Memory, order: &HappensBefore) -> Option<Clash> {
        if memory.writes.is_empty() {
            return None;
        }
        let view = order.view(part.who);
        let is_unfenced = |step| view.follows(step) && !view.sees_async(step, FencedMemory::Global);
        let unfenced = |unit: Unit| {
            let (start, end) = unit.stretch()?;
            Some((start, memory.writes.find(start, end.wrapping_sub(start), is_unfenced)?))
        };
        let (address, write) = self.units.some(part.units.clone()).find_map(unfenced)?;
        Some(Clash::NotFenced { action: self.starts(part.who), address, write })
    }

    /// Global memory is this operation's from now on. Where that is combined with what is there, it
    /// is read as well.
    fn write_global(&self, part: &Part, memory: &mut Memory, order: &HappensBefore) -> Vec<Clash> {
        let mut clashes = Vec::new();
        let stretches = || self.units.some(part.units.clone()).filter_map(|unit| unit.stretch());
        if order.is_checked() {
            let group = part.done.map_or(0, Epoch::count);
            let reduction = self.combination.map(|combination| combination.with);
            let store = Store { issuer: self.issuer, group, reduction };
            let unordered = memory.stores.add(store, stretches());
            let action = self.starts(part.who);
            clashes.extend(unordered.map(|(address, stretch)| Clash::NotStored { action, address, stretch }));
        }
        if self.combination.is_some() {
            clashes.extend(self.read_unfenced(part, memory, order));
        } else if !memory.writes.is_empty() {
            stretches().for_each(|(start, end)| memory.writes.forget(start, end.wrapping_sub(start)));
        }
        clashes
    }
}
