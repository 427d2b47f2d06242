//! An asynchronous operation: its source, its destination, and the mechanism that signals its
//! completion.
//!
//! | operation | source | destination | completion |
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
use crate::machine::memory::{LoadedTile, SharedLocation};
use crate::machine::types::{Action, Actor, Combination};
use crate::tensor_map::{TensorMap, UNIT, Walk};

/// An operation in flight.
#[derive(Debug)]
pub(in crate::machine) struct AsyncOp {
    pub(in crate::machine) issuer: Actor,
    pub(in crate::machine) kind: OpKind,
    /// The bytes that the operation moves.
    pub(in crate::machine) units: Units,
    pub(in crate::machine) reads: Source,
    pub(in crate::machine) writes: Target,
    /// The operation that combines the data with the contents of memory; `None` if it replaces
    /// them.
    pub(in crate::machine) combination: Option<Combination>,
    pub(in crate::machine) completes: Completion,
    /// The knowledge of the past at the time of issue.
    pub(in crate::machine) issue: Issue,
}

/// The instruction of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::machine) enum OpKind {
    /// `cp.async.bulk`, with a tensor map or without.
    Bulk(CopyKind),
    /// `cp.async` without `.bulk`.
    CopyAsync,
    /// `st.async`, `red.async`.
    RemoteStore,
}

/// The source of an operation.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) enum Source {
    /// Global memory.
    Global,
    /// The shared memory of a block, and the step at which it has been read.
    Shared { rank: BlockRank, done: Epoch },
    /// A value of a thread.
    Value([u8; 16]),
}

/// The destination of an operation.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) enum Target {
    /// Global memory, and the step at which it has been written.
    Global { done: Epoch },
    /// Shared memory.
    Shared(SharedTarget),
}

/// The shared memory of a block, `moved` bytes after the offsets that the operation's units name.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) struct SharedTarget {
    pub(in crate::machine) rank: BlockRank,
    pub(in crate::machine) moved: u32,
}

impl SharedTarget {
    /// Returns the offsets that the units name.
    pub(in crate::machine) const fn of(rank: BlockRank) -> Self {
        Self { rank, moved: 0 }
    }

    /// Returns the destination of a unit.
    #[inline]
    pub(in crate::machine) const fn offset(self, unit: &Unit) -> u32 {
        unit.shared.wrapping_add(self.moved)
    }
}

/// The mechanism by which others learn that an operation is complete.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) enum Completion {
    /// An mbarrier in the destination block counts its bytes.
    Mbarrier(SharedLocation),
    /// The operation belongs to a bulk group of the thread that issued it.
    BulkGroup(Epoch),
    /// Each lane's part belongs to a batch of that thread.
    Batches,
}

/// The bytes of an operation, divided into units.
#[derive(Clone, Debug)]
pub(in crate::machine) enum Units {
    /// A box of a tensor map, with its tile at an offset in shared memory.
    Box(TensorBox),
    /// Contiguous bytes: global address and shared offset.
    Line { global: u64, shared: u32, bytes: u32 },
    /// The copies of the lanes of a warp. Each is a unit.
    Lanes(Vec<LaneCopy>),
}

/// A box of a tensor map.
#[derive(Clone, Debug)]
pub(in crate::machine) struct TensorBox {
    pub(in crate::machine) map: Rc<TensorMap>,
    /// The address of the map in global memory, if it is there.
    pub(in crate::machine) descriptor: Option<u64>,
    pub(in crate::machine) at: [i32; 5],
    pub(in crate::machine) offsets: [u16; 3],
    pub(in crate::machine) tile: u32,
}

/// The `cp.async` of a lane.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) struct LaneCopy {
    pub(in crate::machine) thread: ThreadId,
    pub(in crate::machine) shared: u32,
    pub(in crate::machine) bytes: u32,
    pub(in crate::machine) global: u64,
    /// The number of bytes that are read. The rest become zeros.
    pub(in crate::machine) read: u32,
    /// The contents of the source when the copy was issued.
    pub(in crate::machine) before: [u8; 16],
    /// The thread's batch that the copy belongs to.
    pub(in crate::machine) batch: Epoch,
}

/// Up to 16 bytes of an operation.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) struct Unit {
    /// Their offset in shared memory, and their number.
    pub(in crate::machine) shared: u32,
    pub(in crate::machine) bytes: u32,
    /// The address of the first byte in global memory; `None` if all bytes are outside the tensor.
    pub(in crate::machine) global: Option<u64>,
    /// The range of bytes that lie in the tensor.
    pub(in crate::machine) inside: (u32, u32),
}

impl Unit {
    /// Returns the range of global addresses of the bytes that lie in the tensor.
    pub(in crate::machine) fn range(&self) -> Option<(u64, u64)> {
        let (global, (from, to)) = (self.global?, self.inside);
        Some((global.wrapping_add(from.into()), global.wrapping_add(to.into())))
    }
}

/// The part of an operation that one thread has issued.
#[derive(Clone, Debug)]
pub(in crate::machine) struct ThreadPart {
    pub(in crate::machine) thread: ThreadId,
    /// The step of its completion, if it is determined at issue.
    pub(in crate::machine) done: Option<Epoch>,
    pub(in crate::machine) units: Range<u32>,
}

impl OpKind {
    /// Returns the proxy of the operation. Source: PTX ISA, "Async proxy"; "cp.async", "st.async".
    const fn proxy(self) -> Proxy {
        match self {
            Self::Bulk(_) => Proxy::Async,
            Self::CopyAsync | Self::RemoteStore => Proxy::Generic,
        }
    }

    /// Returns the verbs for the issuing thread, in the present and in the past tense.
    pub(in crate::machine) const fn does(self) -> (&'static str, &'static str) {
        match self {
            Self::Bulk(_) | Self::CopyAsync => ("issues the copy", "issued the copy"),
            Self::RemoteStore => ("issues the store", "issued the store"),
        }
    }
}

impl AsyncOp {
    /// Returns the action of the thread `thread` that starts the operation or a part of it.
    pub(in crate::machine) fn starts(&self, thread: ThreadId) -> Action {
        Action { thread, site: self.issuer.site, does: self.kind.does().0 }
    }

    /// Returns the action of the thread `thread` that has issued the operation or a part of it.
    pub(in crate::machine) fn issued(&self, thread: ThreadId) -> Action {
        Action { thread, site: self.issuer.site, does: self.kind.does().1 }
    }

    /// Returns the tile that the operation moves, if it is a box without an interleaved layout.
    pub(in crate::machine) fn tile(&self) -> Option<Rc<LoadedTile>> {
        match &self.units {
            Units::Box(TensorBox { map, .. }) => LoadedTile::of(map),
            Units::Line { .. } | Units::Lanes(_) => None,
        }
    }

    /// Returns the operation's write as an access.
    pub(in crate::machine) fn write(&self) -> Access {
        let kind = if self.combination.is_some() { AccessKind::Reduce } else { AccessKind::Write };
        Access::weak(self.kind.proxy(), kind)
    }

    /// Returns whether the operation uses the asynchronous proxy.
    pub(in crate::machine) fn is_in_async_proxy(&self) -> bool {
        self.kind.proxy() == Proxy::Async
    }

    /// Returns the parts of the operation, by the threads that issued them.
    pub(in crate::machine) fn thread_parts(&self) -> impl Iterator<Item = ThreadPart> + '_ {
        let (lanes, done) = match (&self.units, self.completes) {
            (Units::Lanes(lanes), _) => (lanes.as_slice(), None),
            (Units::Box(_) | Units::Line { .. }, Completion::BulkGroup(group)) => {
                ([].as_slice(), Some(group))
            }
            (Units::Box(_) | Units::Line { .. }, Completion::Mbarrier(_) | Completion::Batches) => {
                ([].as_slice(), None)
            }
        };
        let whole = ThreadPart { thread: self.issuer.thread, done, units: 0..self.units.len() };
        let of_lane = |(number, lane): (u32, &LaneCopy)| ThreadPart {
            thread: lane.thread,
            done: Some(lane.batch),
            units: number..number + 1,
        };
        let is_undivided = lanes.is_empty();
        is_undivided.then_some(whole).into_iter().chain((0..).zip(lanes).map(of_lane))
    }
}

impl Units {
    /// Returns the number of units.
    pub(in crate::machine) fn len(&self) -> u32 {
        match self {
            Self::Box(tensor) => tensor.walk().units(),
            Self::Line { bytes, .. } => bytes.div_ceil(UNIT),
            Self::Lanes(lanes) => lanes.len() as u32,
        }
    }

    /// Returns a unit.
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

    /// Calls `each` for a range of units, in order.
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

    /// Returns a range of units.
    pub(in crate::machine) fn some(&self, range: Range<u32>) -> impl Iterator<Item = Unit> + '_ {
        range.map(|number| self.get(number))
    }

    /// Returns the total number of bytes of shared memory.
    pub(in crate::machine) fn all_bytes(&self) -> u32 {
        self.bytes(0..self.len())
    }

    /// Returns the number of bytes of shared memory in a range of units.
    pub(in crate::machine) fn bytes(&self, range: Range<u32>) -> u32 {
        match self {
            Self::Box(_) => (range.end - range.start) * UNIT,
            Self::Line { bytes, .. } => (*bytes).min(range.end * UNIT) - range.start * UNIT,
            Self::Lanes(_) => self.some(range).map(|unit| unit.bytes).sum(),
        }
    }
}

/// Returns a unit of a box, whose tile is at this shared offset.
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
