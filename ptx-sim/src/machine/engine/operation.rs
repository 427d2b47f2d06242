//! An asynchronous operation: what it reads, what it writes, and how others learn that it is
//! complete.
//!
//! | operation | reads | writes | completes |
//! | --- | --- | --- | --- |
//! | `cp.async.bulk.tensor`, `cp.async.bulk`, loads | global | shared | mbarrier |
//! | the same, stores and reductions | shared | global | bulk group |
//! | `cp.async.bulk` between blocks | shared | shared | mbarrier |
//! | `cp.async` | global | shared | its threads' batches |
//! | `st.async`, `red.async` | a value | shared | mbarrier |

use std::ops::Range;
use std::rc::Rc;

use tma_model::sync::{Access, AccessKind, Epoch, Issue, Proxy};

use super::counters::CopyKind;
use crate::machine::index::{BlockRank, ThreadId};
use crate::machine::memory::{LoadedTile, SharedPlace};
use crate::machine::types::{Action, Actor, Combination};
use crate::tensor_map::{TensorMap, UNIT, Walk};

/// An operation under way.
#[derive(Debug)]
pub(in crate::machine) struct AsyncOp {
    pub(in crate::machine) issuer: Actor,
    pub(in crate::machine) kind: OpKind,
    /// The bytes that it moves.
    pub(in crate::machine) units: Units,
    pub(in crate::machine) reads: Source,
    pub(in crate::machine) writes: Target,
    /// How they are combined with what is there; none where they replace it.
    pub(in crate::machine) combination: Option<Combination>,
    pub(in crate::machine) completes: Completion,
    /// What had happened when it was issued.
    pub(in crate::machine) issue: Issue,
}

/// Which instruction it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::machine) enum OpKind {
    /// `cp.async.bulk`, with a tensor map or without.
    Bulk(CopyKind),
    /// `cp.async` without `.bulk`.
    CopyAsync,
    /// `st.async`, `red.async`.
    RemoteStore,
}

/// Where it reads.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) enum Source {
    /// Global memory.
    Global,
    /// The shared memory of a block, and the step with which that has been read.
    Shared { rank: BlockRank, done: Epoch },
    /// Nowhere: a thread's value.
    Value([u8; 16]),
}

/// Where it writes.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) enum Target {
    /// Global memory, and the step with which that has been written.
    Global { done: Epoch },
    /// Shared memory.
    Shared(SharedTarget),
}

/// The shared memory of a block, `moved` bytes after the places that an operation's units name.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) struct SharedTarget {
    pub(in crate::machine) rank: BlockRank,
    pub(in crate::machine) moved: u32,
}

impl SharedTarget {
    /// The place that the units name.
    pub(in crate::machine) const fn of(rank: BlockRank) -> Self {
        Self { rank, moved: 0 }
    }

    /// Where a unit goes.
    #[inline]
    pub(in crate::machine) const fn place(self, unit: &Unit) -> u32 {
        unit.shared.wrapping_add(self.moved)
    }
}

/// How others learn that it is complete.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) enum Completion {
    /// An mbarrier counts its bytes, in the block that they go to.
    Mbarrier(SharedPlace),
    /// It is a part of a bulk group of the thread that issued it.
    BulkGroup(Epoch),
    /// Each lane's part is of a batch of that thread.
    Batches,
}

/// The bytes of an operation, cut into units.
#[derive(Clone, Debug)]
pub(in crate::machine) enum Units {
    /// A box of a tensor map, whose tile is at a shared offset.
    Box(TensorBox),
    /// Bytes that lie together: global address and shared offset.
    Line { global: u64, shared: u32, bytes: u32 },
    /// Those of the lanes of a warp, each a unit.
    Lanes(Vec<LaneCopy>),
}

/// A box of a tensor map.
#[derive(Clone, Debug)]
pub(in crate::machine) struct TensorBox {
    pub(in crate::machine) map: Rc<TensorMap>,
    /// Where the map lies in global memory, if it does.
    pub(in crate::machine) descriptor: Option<u64>,
    pub(in crate::machine) at: [i32; 5],
    pub(in crate::machine) offsets: [u16; 3],
    pub(in crate::machine) tile: u32,
}

/// `cp.async` of a lane.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) struct LaneCopy {
    pub(in crate::machine) who: ThreadId,
    pub(in crate::machine) shared: u32,
    pub(in crate::machine) bytes: u32,
    pub(in crate::machine) global: u64,
    /// How many of the bytes are read; the others become zero.
    pub(in crate::machine) read: u32,
    /// What the source held when the copy was issued.
    pub(in crate::machine) before: [u8; 16],
    /// The thread's batch that it is of.
    pub(in crate::machine) batch: Epoch,
}

/// Up to 16 bytes of an operation.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) struct Unit {
    /// Where they are in shared memory, and how many.
    pub(in crate::machine) shared: u32,
    pub(in crate::machine) bytes: u32,
    /// Where the first one is in global memory; none if all of them are outside of the tensor.
    pub(in crate::machine) global: Option<u64>,
    /// Those of them that are in the tensor.
    pub(in crate::machine) inside: (u32, u32),
}

impl Unit {
    /// Where the bytes that are in the tensor are in global memory: the first address, and the end.
    pub(in crate::machine) fn stretch(&self) -> Option<(u64, u64)> {
        let (global, (from, to)) = (self.global?, self.inside);
        Some((global.wrapping_add(from.into()), global.wrapping_add(to.into())))
    }
}

/// A part of an operation that one thread has issued.
#[derive(Clone, Debug)]
pub(in crate::machine) struct Part {
    pub(in crate::machine) who: ThreadId,
    /// The step with which it is known to be complete, if that is certain when it is issued.
    pub(in crate::machine) done: Option<Epoch>,
    pub(in crate::machine) units: Range<u32>,
}

impl OpKind {
    /// The proxy that it goes through. Source: PTX ISA, "Async proxy"; "cp.async", "st.async".
    const fn proxy(self) -> Proxy {
        match self {
            Self::Bulk(_) => Proxy::Async,
            Self::CopyAsync | Self::RemoteStore => Proxy::Generic,
        }
    }

    /// What its thread does as it starts, and what it has done later.
    pub(in crate::machine) const fn does(self) -> (&'static str, &'static str) {
        match self {
            Self::Bulk(_) | Self::CopyAsync => ("issues the copy", "issued the copy"),
            Self::RemoteStore => ("issues the store", "issued the store"),
        }
    }
}

impl AsyncOp {
    /// What its thread, or that of a part of it, does as it starts.
    pub(in crate::machine) fn starts(&self, who: ThreadId) -> Action {
        Action { who, site: self.issuer.site, does: self.kind.does().0 }
    }

    /// What its thread, or that of a part of it, has done.
    pub(in crate::machine) fn issued(&self, who: ThreadId) -> Action {
        Action { who, site: self.issuer.site, does: self.kind.does().1 }
    }

    /// The tile that it moves, if it is a whole one and not interleaved.
    pub(in crate::machine) fn tile(&self) -> Option<Rc<LoadedTile>> {
        match &self.units {
            Units::Box(TensorBox { map, .. }) => LoadedTile::of(map),
            Units::Line { .. } | Units::Lanes(_) => None,
        }
    }

    /// How it writes.
    pub(in crate::machine) fn write(&self) -> Access {
        let kind = if self.combination.is_some() { AccessKind::Reduce } else { AccessKind::Write };
        Access::weak(self.kind.proxy(), kind)
    }

    /// Whether it is in the asynchronous proxy.
    pub(in crate::machine) fn is_in_async_proxy(&self) -> bool {
        self.kind.proxy() == Proxy::Async
    }

    /// Its parts, by the threads that issued them.
    pub(in crate::machine) fn parts(&self) -> impl Iterator<Item = Part> + '_ {
        let (lanes, done) = match (&self.units, self.completes) {
            (Units::Lanes(lanes), _) => (lanes.as_slice(), None),
            (Units::Box(_) | Units::Line { .. }, Completion::BulkGroup(group)) => {
                ([].as_slice(), Some(group))
            }
            (Units::Box(_) | Units::Line { .. }, Completion::Mbarrier(_) | Completion::Batches) => {
                ([].as_slice(), None)
            }
        };
        let whole = Part { who: self.issuer.who, done, units: 0..self.units.len() };
        let of_lane = |(number, lane): (u32, &LaneCopy)| Part {
            who: lane.who,
            done: Some(lane.batch),
            units: number..number + 1,
        };
        let is_whole = lanes.is_empty();
        is_whole.then_some(whole).into_iter().chain((0..).zip(lanes).map(of_lane))
    }
}

impl Units {
    /// How many.
    pub(in crate::machine) fn len(&self) -> u32 {
        match self {
            Self::Box(tensor) => tensor.walk().units(),
            Self::Line { bytes, .. } => bytes.div_ceil(UNIT),
            Self::Lanes(lanes) => lanes.len() as u32,
        }
    }

    /// One of them.
    pub(in crate::machine) fn get(&self, number: u32) -> Unit {
        match self {
            Self::Box(tensor) => boxed(&tensor.walk(), number, tensor.tile),
            &Self::Line { global, shared, bytes } => {
                let first = number * UNIT;
                let bytes = bytes.saturating_sub(first).min(UNIT);
                let global = Some(global.wrapping_add(first.into()));
                Unit { shared: shared + first, bytes, global, inside: (0, bytes) }
            }
            Self::Lanes(lanes) => {
                let lane = &lanes[number as usize];
                let global = Some(lane.global);
                Unit { shared: lane.shared, bytes: lane.bytes, global, inside: (0, lane.read) }
            }
        }
    }

    /// Calls `each` with some of them, in their order.
    #[inline]
    pub(in crate::machine) fn for_each(&self, range: Range<u32>, mut each: impl FnMut(u32, Unit)) {
        match self {
            Self::Box(tensor) => {
                let walk = tensor.walk();
                range.for_each(|number| each(number, boxed(&walk, number, tensor.tile)));
            }
            Self::Line { .. } | Self::Lanes(_) => range.for_each(|number| each(number, self.get(number))),
        }
    }

    /// Some of them.
    pub(in crate::machine) fn some(&self, range: Range<u32>) -> impl Iterator<Item = Unit> + '_ {
        range.map(|number| self.get(number))
    }

    /// How many bytes of shared memory they are.
    pub(in crate::machine) fn all_bytes(&self) -> u32 {
        self.bytes(0..self.len())
    }

    /// How many bytes of shared memory some of them are.
    pub(in crate::machine) fn bytes(&self, range: Range<u32>) -> u32 {
        match self {
            Self::Box(_) => (range.end - range.start) * UNIT,
            Self::Line { bytes, .. } => (*bytes).min(range.end * UNIT) - range.start * UNIT,
            Self::Lanes(_) => self.some(range).map(|unit| unit.bytes).sum(),
        }
    }
}

/// A unit of a box, whose tile is at this shared offset.
#[inline]
fn boxed(walk: &Walk<'_>, number: u32, tile: u32) -> Unit {
    let unit = walk.unit(number, tile);
    Unit { shared: unit.shared, bytes: UNIT, global: unit.global, inside: (unit.from, unit.to) }
}

impl TensorBox {
    pub(in crate::machine) fn walk(&self) -> Walk<'_> {
        Walk::new(&self.map, self.at, self.offsets)
    }
}
