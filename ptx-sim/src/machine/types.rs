//! The small types that the executing side and the machine share.

use std::sync::Arc;

pub use tma_model::ReduceOp as Reduction;
use tma_model::sync::{Arrival, Awaited};

use super::index::{BarrierId, MapId, ThreadId};
use super::{GlobalMemory, SharedName};
pub use crate::isa::{Fence, FencedMemory, Order, Scope, Semantics, Site, Space};
use crate::tensor_map::DataType;

/// A thread at an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actor {
    /// The thread.
    pub who: ThreadId,
    /// The instruction.
    pub site: Site,
}

impl Actor {
    /// What it does there, as a finding says it.
    pub(super) const fn does(self, does: &'static str) -> Action {
        Action { who: self.who, site: self.site, does }
    }
}

/// What a thread does at an instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Action {
    pub(super) who: ThreadId,
    pub(super) site: Site,
    pub(super) does: &'static str,
}

/// An address in a state space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// The space.
    pub space: Space,
    /// The address.
    pub address: u64,
}

impl Pointer {
    /// `address` of `space`.
    #[inline]
    pub const fn new(space: Space, address: u64) -> Self {
        Self { space, address }
    }

    /// `address` of `.global`.
    pub(super) const fn global(address: u64) -> Self {
        Self::new(Space::Global, address)
    }

    /// `address` of `.shared::cta`.
    pub(super) const fn shared(address: u64) -> Self {
        Self::new(Space::Shared, address)
    }

    /// `address` of `.shared::cluster`.
    pub(super) const fn cluster(address: u64) -> Self {
        Self::new(Space::SharedCluster, address)
    }
}

/// The answer of an instruction that a thread may have to wait in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Poll {
    /// Done: the thread goes on.
    Ready,
    /// The thread stays at this instruction, which is tried again later.
    Blocked,
}

/// The answer of `mbarrier.try_wait`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryWait {
    /// The phase is complete: the predicate is true.
    Complete,
    /// The time is over: the predicate is false.
    TimedOut,
    /// The thread stays at this instruction, which is tried again later.
    Blocked,
}

/// What is checked beyond bounds and alignment, which always are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checks {
    /// Order between accesses to shared memory, and reads of what nobody wrote.
    pub order: bool,
    /// Reads of global memory that nobody wrote.
    pub global_initialised: bool,
}

impl Checks {
    /// All of them.
    pub const ALL: Self = Self { order: true, global_initialised: true };
    /// None of them.
    pub const NONE: Self = Self { order: false, global_initialised: false };
}

/// A cluster of blocks, to be run.
#[derive(Clone, Debug)]
pub struct MachineConfig {
    /// Index in the grid of each block, by rank in the cluster.
    pub blocks: Vec<[u32; 3]>,
    /// Threads of a block.
    pub threads: u32,
    /// Shared memory of a block in bytes, static and dynamic.
    pub shared_bytes: u32,
    /// Decides every choice that the hardware is free to make.
    pub seed: u64,
    /// What is checked.
    pub checks: Checks,
    /// Global memory, shared with the other clusters.
    pub global: Arc<GlobalMemory>,
    /// Whether the kernel has bulk or tensor copies. Only then what threads write to global memory is
    /// remembered for them.
    pub copies: bool,
    /// What the PTX calls places in shared memory.
    pub names: Arc<[SharedName]>,
    /// `.loc` of each PTX line; index 0 is line 0, which is none.
    pub lines: Arc<[Option<(u32, u32)>]>,
}

/// How a thread comes to `bar` or `barrier`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarrierUse {
    /// The barrier, 0 to 15.
    pub id: BarrierId,
    /// The number of threads that take part; all of the block if none.
    pub threads: Option<u32>,
    /// `.arrive`: the thread does not wait.
    pub arrive_only: bool,
    /// `.aligned`, which `bar` is: all threads of a warp come together, at one instruction.
    pub aligned: bool,
    /// The predicate of `.red`; false otherwise.
    pub vote: bool,
}

/// What `barrier.red` counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Votes {
    /// Threads whose predicate was true.
    pub yes: u32,
    /// All threads.
    pub all: u32,
}

/// An arrive-on operation on an mbarrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrive {
    /// What it counts.
    pub arrival: Arrival,
    /// `.release.cta`, which is the default, `.release.cluster`, or `.relaxed`.
    pub semantics: Semantics,
}

impl Arrive {
    /// `mbarrier.arrive`.
    pub const ONE: Self = Self { arrival: Arrival::ONE, semantics: Semantics::RELEASE };
}

/// The phase that a wait is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The one with this parity: of the current and the preceding one.
    Parity(bool),
    /// The one of a state that an arrive gave.
    State(u64),
}

impl Phase {
    /// That of a wait's operand, which is a parity or a state.
    pub(crate) const fn of(operand: u64, is_parity: bool) -> Self {
        if is_parity { Self::Parity(operand & 1 != 0) } else { Self::State(operand) }
    }

    /// The phase that is meant, of whichever mbarrier a state is.
    pub(super) const fn awaited(self) -> Awaited {
        match self {
            Self::Parity(parity) => Awaited::Parity(parity),
            Self::State(state) => Awaited::Number((state >> 32) as u32),
        }
    }
}

/// A wait for a phase of an mbarrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseWait {
    /// The phase.
    pub phase: Phase,
    /// `.acquire.cta`, which is the default, `.acquire.cluster`, or `.relaxed`.
    pub semantics: Semantics,
}

/// What a thread that cannot go on is at. The executing side says so to [`Machine::deadlocked`](super::Machine::deadlocked).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitingFor {
    /// `bar` or `barrier`.
    Barrier(BarrierId),
    /// `barrier.cluster.wait`.
    Cluster,
    /// A wait on an mbarrier.
    Mbarrier {
        /// The mbarrier.
        pointer: Pointer,
        /// The phase it waits for.
        phase: Phase,
    },
    /// `cp.async.bulk.wait_group`.
    BulkGroups {
        /// How many may be left.
        pending: u32,
        /// `.read`.
        read: bool,
    },
    /// `cp.async.wait_group`, with how many groups may be left; none is `cp.async.wait_all`.
    AsyncGroups(Option<u32>),
    /// Other lanes of its warp, by mask.
    Warp(u32),
    /// A change of memory, in a loop that reads it again and again: what it reads last.
    Memory(Pointer),
    /// Nothing: a loop that does not end.
    Nothing,
}

/// A thread that cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The thread.
    pub who: ThreadId,
    /// What for.
    pub what: WaitingFor,
    /// Where.
    pub site: Site,
}

/// What a tensor copy does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorAction {
    /// Global to shared memory; completes on an mbarrier.
    Load {
        /// Space of `tile` and of `barrier`.
        space: Space,
        /// The tile.
        tile: u64,
        /// The mbarrier that gets the bytes.
        barrier: u64,
        /// `.multicast::cluster`: the blocks that get the tile and the bytes, at the same offsets.
        multicast: Option<u16>,
    },
    /// Shared to global memory; completes with a bulk group.
    Store {
        /// The tile, in the thread's own block.
        tile: u64,
    },
    /// As `Store`, combining with what is there.
    Reduce {
        /// The tile, in the thread's own block.
        tile: u64,
        /// How.
        with: Reduction,
    },
    /// To the L2 cache only.
    Prefetch,
}

/// `cp.async.bulk.tensor`, `cp.reduce.async.bulk.tensor`, `cp.async.bulk.prefetch.tensor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorCopy {
    /// The map: see [`Machine::know_map`](super::Machine::know_map).
    pub map: MapId,
    /// Where the map lies in global memory; none for one in the kernel's parameters.
    pub descriptor: Option<u64>,
    /// Innermost first; those beyond the rank are ignored.
    pub at: [i32; 5],
    /// The number of coordinates.
    pub rank: u32,
    /// `.im2col` or `.im2col_no_offs`, not `.tile`.
    pub im2col: bool,
    /// The offsets of `.im2col`, innermost first; zeros without.
    pub offsets: [u16; 3],
    /// What to do.
    pub action: TensorAction,
}

/// How the elements of a copy are combined with what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Combination {
    /// The operation.
    pub with: Reduction,
    /// The elements' type.
    pub element: DataType,
}

impl From<(Reduction, DataType)> for Combination {
    fn from((with, element): (Reduction, DataType)) -> Self {
        Self { with, element }
    }
}

/// `cp.async.bulk`, `cp.reduce.async.bulk`: bytes that lie together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkCopy {
    /// How many, a multiple of 16.
    pub bytes: u32,
    /// From where to where.
    pub action: BulkAction,
}

/// From where to where a [`BulkCopy`] goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkAction {
    /// Global to shared memory; completes on an mbarrier.
    Load {
        /// The source.
        global: u64,
        /// Space of `to` and of `barrier`.
        space: Space,
        /// The destination.
        to: u64,
        /// The mbarrier that gets the bytes.
        barrier: u64,
        /// `.multicast::cluster`.
        multicast: Option<u16>,
    },
    /// Shared to global memory; completes with a bulk group.
    Store {
        /// The source, in the thread's own block.
        from: u64,
        /// The destination.
        global: u64,
        /// How the bytes are combined with what is there; none of a plain copy.
        reduce: Option<Combination>,
    },
    /// The thread's own block's shared memory to that of another; completes on an mbarrier there.
    ToCluster {
        /// The source, in the thread's own block.
        from: u64,
        /// The destination, of space `shared::cluster`.
        to: u64,
        /// The mbarrier that gets the bytes, of space `shared::cluster`.
        barrier: u64,
        /// How the bytes are combined with what is there; none of a plain copy.
        reduce: Option<Combination>,
    },
    /// To the L2 cache only.
    Prefetch {
        /// The source.
        global: u64,
    },
}

/// `cp.async` of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyAsync {
    /// The thread.
    pub who: ThreadId,
    /// The destination, in the thread's own block.
    pub to: u64,
    /// The source, in global memory.
    pub from: u64,
    /// Bytes that are written: 4, 8 or 16.
    pub bytes: u32,
    /// Bytes that are read; the others become zero.
    pub read: u32,
}

/// `st.async`, and with `reduce` `red.async`, of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteStore {
    /// Space of `to` and of `barrier`: `shared::cluster` or generic.
    pub space: Space,
    /// The destination.
    pub to: u64,
    /// The value.
    pub value: [u8; 16],
    /// How many bytes it has: 4, 8 or 16.
    pub bytes: u32,
    /// The mbarrier that gets the bytes, in the same block.
    pub barrier: u64,
    /// How the value is combined with what is there.
    pub reduce: Option<Combination>,
}
