//! Small types that the executing side and the machine share.

use std::ops::Range;
use std::sync::Arc;

mod copy;
mod multiply;

pub use copy::{BulkAction, BulkCopy, Combination, CopyAsync, RemoteStore, TensorAction, TensorCopy};
pub(crate) use multiply::{LeftOperand, Metadata, Multiply};
pub use tma_model::ReduceOp as Reduction;
use tma_model::sync::{Arrival, AwaitedPhase};

use super::index::{BarrierId, ThreadId};
use super::{GlobalMemory, Grid, SharedName};
pub use crate::isa::{AccessOrder, Fence, FencedMemory, MemoryScope, Order, Scope, Semantics, Site, Space};

/// A thread at an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actor {
    /// The thread.
    pub thread: ThreadId,
    /// The instruction.
    pub site: Site,
}

impl Actor {
    /// Describes an action of the thread there, with the words that a finding uses.
    pub(super) const fn does(self, does: &'static str) -> Action {
        Action { thread: self.thread, site: self.site, does }
    }
}

/// An action of a thread at an instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Action {
    pub(super) thread: ThreadId,
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
    /// Returns `address` in `space`.
    #[inline]
    pub const fn new(space: Space, address: u64) -> Self {
        Self { space, address }
    }

    /// Returns `address` in `.global`.
    pub(super) const fn global(address: u64) -> Self {
        Self::new(Space::Global, address)
    }

    /// Returns `address` in `.shared::cta`.
    pub(super) const fn shared(address: u64) -> Self {
        Self::new(Space::Shared, address)
    }

    /// Returns `address` in `.shared::cluster`.
    pub(super) const fn cluster(address: u64) -> Self {
        Self::new(Space::SharedCluster, address)
    }
}

/// The result of an instruction that may block the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Poll {
    /// Done: the thread goes on.
    Ready,
    /// The thread stays at this instruction, which is tried again later.
    Blocked,
}

/// The result of `mbarrier.try_wait`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryWait {
    /// The phase is complete: the predicate is true.
    Complete,
    /// The time limit has passed: the predicate is false.
    TimedOut,
    /// The thread stays at this instruction, which is tried again later.
    Blocked,
}

/// The checks beyond bounds and alignment, which are always checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checks {
    /// Order between accesses to shared memory, and reads of uninitialised memory.
    pub order: bool,
    /// Reads of uninitialised global memory.
    pub global_initialised: bool,
    /// Order between all accesses to global memory, and old values that strong loads may observe.
    /// This requires `order`, which by itself only looks for proxy fences before copies of global
    /// memory.
    pub global_order: GlobalOrder,
}

/// The kernels whose accesses to global memory must be ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GlobalOrder {
    /// No kernels.
    Never,
    /// Kernels with strong accesses to global memory (`ld` and `st` with an order, `atom`, `red`),
    /// since their blocks communicate.
    WhereStrong,
    /// All kernels.
    Always,
}

impl Checks {
    /// All checks.
    pub const ALL: Self = Self { order: true, global_initialised: true, global_order: GlobalOrder::Always };
    /// No checks.
    pub const NONE: Self = Self { order: false, global_initialised: false, global_order: GlobalOrder::Never };
}

/// The configuration of one cluster.
#[derive(Clone, Debug)]
pub struct MachineConfig {
    /// Index in the grid of each block, by rank in the cluster.
    pub blocks: Vec<[u32; 3]>,
    /// Threads of a block.
    pub threads: u32,
    /// The `.shared::cta` addresses of a block's shared memory, static and dynamic.
    pub shared: Range<u32>,
    /// Picks whatever the hardware is free to choose.
    pub seed: u64,
    /// The checks to make.
    pub checks: Checks,
    /// Registers of each thread at the start; `None` if unknown.
    pub thread_registers: Option<u32>,
    /// Global memory, shared with the other clusters.
    pub global: Arc<GlobalMemory>,
    /// Whether the kernel has asynchronous copies. Only then do proxy fences of global memory
    /// matter.
    pub copies: bool,
    /// For each PTX line, whether a value that threads load from global memory there is used before
    /// any other thread can learn of the load. For the other lines the executing side reports the
    /// use. `None` if no copy writes global memory; otherwise a proxy fence is required between the
    /// load and the copy.
    pub used_immediately: Option<Arc<[bool]>>,
    /// The number of the cluster in the grid. In a team those of rank 0 come first, then those of
    /// rank 1.
    pub cluster: u32,
    /// The number of clusters of each rank.
    pub clusters: u32,
    /// The number of ranks, 1 unless a team of devices runs the kernel.
    pub ranks: u32,
    /// The accesses of all clusters to global memory, if the kernel makes strong ones there.
    pub grid: Option<Arc<Grid>>,
    /// The names that the PTX gives to ranges of shared memory.
    pub names: Arc<[SharedName]>,
    /// `.loc` of each PTX line. Lines count from 1, so index 0 is unused.
    pub lines: Arc<[Option<(u32, u32)>]>,
}

/// A thread's use of `bar` or `barrier`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarrierUse {
    /// The barrier, 0 to 15.
    pub id: BarrierId,
    /// The number of threads that take part; all threads of the block if `None`.
    pub threads: Option<u32>,
    /// `.arrive`: the thread does not wait.
    pub arrive_only: bool,
    /// `.aligned`, which `bar` implies: all threads of a warp arrive together, at the same
    /// instruction.
    pub aligned: bool,
    /// The predicate of `.red`; false otherwise.
    pub vote: bool,
}

/// The counts of a `barrier.red`.
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
    /// The counts that the arrival changes.
    pub arrival: Arrival,
    /// `.release.cta`, which is the default, `.release.cluster`, or `.relaxed`.
    pub semantics: Semantics,
}

impl Arrive {
    /// A plain `mbarrier.arrive`.
    pub const ONE: Self = Self { arrival: Arrival::ONE, semantics: Semantics::RELEASE };
}

/// The phase that a wait is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The phase with this parity, out of the current and the preceding one.
    Parity(bool),
    /// The phase of a state that an arrival returned.
    State(u64),
}

impl Phase {
    /// Returns the phase that the operand of a wait, a parity or a state, denotes.
    pub(crate) const fn of(operand: u64, is_parity: bool) -> Self {
        if is_parity { Self::Parity(operand & 1 != 0) } else { Self::State(operand) }
    }

    /// Returns the awaited phase, without checking which mbarrier a state belongs to.
    pub(super) const fn awaited(self) -> AwaitedPhase {
        match self {
            Self::Parity(parity) => AwaitedPhase::Parity(parity),
            Self::State(state) => AwaitedPhase::Number((state >> 32) as u32),
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

/// The reason why a thread cannot go on. The executing side passes it to
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
        /// The number of groups that may be pending.
        pending: u32,
        /// `.read`.
        read: bool,
    },
    /// `cp.async.wait_group`, with the number of groups that may be pending; `None` is
    /// `cp.async.wait_all`.
    AsyncGroups(Option<u32>),
    /// `wgmma.wait_group`, with the number of groups that may be pending.
    MultiplyGroups(u32),
    /// `setmaxnreg.inc`, with the number of registers of a thread that it requests.
    Registers(u32),
    /// Other lanes of the warp, as a mask.
    Warp(u32),
    /// A change of memory, in a polling loop. The pointer is the last address read.
    Memory(Pointer),
    /// Nothing: a loop that does not end.
    Nothing,
}

/// How many clusters of a rank of a team have not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankProgress {
    /// Clusters that run.
    pub running: u64,
    /// Clusters that have not begun.
    pub waiting: u64,
}

/// A thread that cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The thread.
    pub thread: ThreadId,
    /// The reason.
    pub event: WaitingFor,
    /// The instruction.
    pub site: Site,
}
