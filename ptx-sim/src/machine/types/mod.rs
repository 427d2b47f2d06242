//! The small types that the executing side and the machine share.

use std::ops::Range;
use std::sync::Arc;

mod copy;
mod multiply;

pub use copy::{BulkAction, BulkCopy, Combination, CopyAsync, RemoteStore, TensorAction, TensorCopy};
pub(crate) use multiply::{LeftOperand, Metadata, Multiply};
pub use tma_model::ReduceOp as Reduction;
use tma_model::sync::{Arrival, Awaited};

use super::index::{BarrierId, ThreadId};
use super::{GlobalMemory, Grid, SharedName};
pub use crate::isa::{AccessOrder, Fence, FencedMemory, MemoryScope, Order, Scope, Semantics, Site, Space};

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
    /// Order between all accesses to global memory, and old values that strong loads may see. Only
    /// together with `order`, which by itself looks for proxy fences before copies of global memory.
    pub global_order: GlobalOrder,
}

/// Which kernels' accesses to global memory have to be ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GlobalOrder {
    /// None.
    Never,
    /// Those of kernels with strong accesses to global memory (`ld` and `st` with an order, `atom`,
    /// `red`): their blocks communicate.
    WhereStrong,
    /// All.
    Always,
}

impl Checks {
    /// All of them.
    pub const ALL: Self = Self { order: true, global_initialised: true, global_order: GlobalOrder::Always };
    /// None of them.
    pub const NONE: Self = Self { order: false, global_initialised: false, global_order: GlobalOrder::Never };
}

/// A cluster of blocks, to be run.
#[derive(Clone, Debug)]
pub struct MachineConfig {
    /// Index in the grid of each block, by rank in the cluster.
    pub blocks: Vec<[u32; 3]>,
    /// Threads of a block.
    pub threads: u32,
    /// The `.shared::cta` addresses of a block's shared memory, static and dynamic.
    pub shared: Range<u32>,
    /// Decides every choice that the hardware is free to make.
    pub seed: u64,
    /// What is checked.
    pub checks: Checks,
    /// Registers of each thread at the start; none if that is not known.
    pub thread_registers: Option<u32>,
    /// Global memory, shared with the other clusters.
    pub global: Arc<GlobalMemory>,
    /// Whether the kernel has copies: only then proxy fences of global memory matter.
    pub copies: bool,
    /// Of each PTX line, whether what threads load from global memory there is used before anybody
    /// can learn of the load; the machine is told when the others are used. None if no copy writes
    /// global memory: otherwise a proxy fence is asked for between the two.
    pub used_at_once: Option<Arc<[bool]>>,
    /// The number of the cluster in the grid.
    pub cluster: u32,
    /// The accesses of all clusters to global memory, of a kernel with strong ones there.
    pub grid: Option<Arc<Grid>>,
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

/// What a thread that cannot go on is at. The executing side says so to
/// [`Machine::deadlocked`](super::Machine::deadlocked).
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
    /// `wgmma.wait_group`, with how many groups may be left.
    MultiplyGroups(u32),
    /// `setmaxnreg.inc`, with how many registers a thread is to have.
    Registers(u32),
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
