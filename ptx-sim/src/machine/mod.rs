//! Memory, barriers and asynchronous engines of one cluster of blocks, and the checks on their use.
//!
//! Threads of a cluster act on a [`Machine`]. The executing side decides which thread runs next,
//! and calls one method for each effect. The machine is deterministic, given a seed and an order of
//! calls.
//!
//! # Components
//!
//! | module | contents |
//! | --- | --- |
//! | `memory` | bytes of shared and global memory, tensor maps, and the history of accesses |
//! | `order` | the happens-before relation, as vector clocks of threads |
//! | `global` | accesses to global memory, of all clusters |
//! | `barrier` | mbarriers, named barriers, the cluster's barrier |
//! | `engine` | asynchronous operations in flight, and the groups that threads wait for |
//! | `mma` | `wgmma` and `mma.sync`, and the arithmetic of tensor cores |
//! | `registers` | registers that warps release and request |
//! | `effect` | the effect of each instruction on the components: the methods of [`Machine`] |
//! | `diagnostics` | findings, built from errors and races that the components detect |
//! | `timeline` | events for a timeline |
//!
//! A component reports no findings itself, and depends on no other component except those that a
//! caller lends it. Clocks, mbarrier counts, groups of copies and conflicts between accesses are
//! defined in [`tma_model::sync`].
//!
//! # Engines
//!
//! A copy is cut into pieces, and the seed decides when each piece takes effect: soon, much later,
//! or when nothing else can make progress. Until a load lands, its tile holds poison; its mbarrier
//! receives the bytes piece by piece. A store or reduction reads its tile late and piece by piece,
//! and writes later still. Detection does not depend on this timing: a read before the wait is
//! found whether or not the copy has landed by then.
//!
//! # Happens-before
//!
//! Each thread, each mbarrier and each thread's bulk groups count steps. Vector clocks record which
//! steps of others an agent knows of (module `order`). An access to shared memory must be ordered
//! after all earlier accesses that it conflicts with (module `memory`). The edges are:
//!
//! - `bar` and `barrier` with a wait: the waiting threads acquire everything before the arrivals.
//! - `bar.warp.sync`: each lane acquires everything before it in the other lanes.
//! - `barrier.cluster.arrive` and `.wait`: unless they are `.relaxed`, the waiting threads acquire
//!   everything before the arrivals.
//! - `mbarrier.arrive` with `test_wait` or `try_wait`: a thread that sees a phase complete acquires
//!   everything before the arrivals of that phase and of earlier ones.
//! - complete_tx of a load: a thread that sees a phase complete acquires the pieces whose bytes
//!   counted for that phase or an earlier one.
//! - complete_tx of `st.async` and `red.async`: it likewise acquires their writes, in the generic
//!   proxy.
//! - `cp.async.mbarrier.arrive`: it likewise acquires the writes of the thread's earlier copies,
//!   and nothing else.
//! - complete_tx of any copy, and `cp.async.mbarrier.arrive`: it also learns that everything before
//!   their issue is *past* ([`tma_model::sync::phase`]).
//! - `cp.async.bulk.wait_group[.read]`: the thread learns that the tiles of the groups have been
//!   read.
//! - `wgmma.wait_group`: the thread learns that the operands of the groups have been read, and that
//!   everything before their issue, in all four warps, is *past*.
//! - `cp.async.wait_group` and `.wait_all`: the thread acquires the writes of its copies in those
//!   groups.
//! - Release and acquire, or fences around relaxed accesses: the reader acquires everything before
//!   the release.
//! - `fence.proxy.async`: asynchronous operations that are issued later, by any thread that has
//!   learned of the fence, come after all that the fencing thread knew, for the memory that the
//!   fence names.
//! - `fence.mbarrier_init`: such operations come after the initialisations that the thread made.
//! - `fence.proxy.tensormap::generic`: copies with that map see the changes to a tensor map in
//!   global memory (module `memory`).
//!
//! The shared memory of a block exists until the block's last thread exits. An access by another
//! block must therefore be ordered before the exit of at least one of its threads.
//!
//! # Generic and asynchronous proxy
//!
//! `cp.async` without `.bulk` belongs to the generic proxy, although it is as late as the other
//! copies.
//!
//! Knowledge within a block has two parts: what was *seen*, and what part of it is *ready* for the
//! asynchronous proxy because a proxy fence for the memory in question lies on the path (PTX ISA,
//! "Proxies" and "Causality order": the fence may be anywhere on the path, in the writer or in the
//! thread that starts the copy). Both parts travel along every edge.
//!
//! - A copy needs earlier generic **writes** to be ready, and other copies to be seen. The effects
//!   of an asynchronous operation are visible without a fence to any thread that learns of its
//!   completion (PTX ISA, "Async proxy").
//! - A copy that writes needs earlier generic **reads** to have finished and to be followed by a
//!   proxy fence. A read of global memory needs no fence if its value was used before, which proves
//!   that it has arrived. A use is an effect on memory or on other threads, or a branch. Arithmetic
//!   does not count, because it may be deferred.
//!
//! Block-scoped arrivals and waits at mbarriers of another block transfer a third kind of
//! knowledge: that earlier accesses are *over*, and whether a proxy fence follows them. The memory
//! may then be refilled, since it is no longer read, but data that threads wrote to it is not
//! thereby visible.
//!
//! # Global memory
//!
//! Clusters learn of each other's steps through strong accesses to global memory, at scopes that
//! include both (module `global`). If the kernel has no such access, nothing orders two clusters.
//! Accesses are checked like those to shared memory. A strong load may observe any store that this
//! order allows; the seed picks one.
//!
//! # Not checked
//!
//! * Scopes of releases and acquires in shared memory, except those of mbarriers: every scope is
//!   taken to be wide enough.
//! * Strong reads of shared memory are not recorded. An unordered weak write after such a read is
//!   not found, nor is a missing fence.
//! * If one piece of global memory has more than 16 mutually unordered reads, the earliest are
//!   forgotten.
//! * A missing proxy fence between threads' reads of global memory and a copy that writes there, in
//!   kernels that are too large to follow the uses of values; and where a thread used the value it
//!   read at the same line before, with no synchronisation since.
//! * If several asynchronous reductions write the same bytes of shared memory, only the last one
//!   issued must be waited for.
//! * Uses of an mbarrier that are not ordered before its `mbarrier.inval`, unless they come later
//!   in simulated time.
#![warn(clippy::wildcard_enum_match_arm)]

pub mod address;
mod barrier;
mod diagnostics;
mod effect;
mod engine;
mod global;
mod index;
mod liveness;
mod memory;
mod mma;
mod order;
mod random;
mod registers;
mod sizes;
mod timeline;
mod types;

#[cfg(test)]
mod tests;

pub use diagnostics::SharedName;
pub use engine::counters::{CopyKind, Counters, Moved};
pub use global::Grid;
pub(crate) use global::{ClusterGrid, Footprint, Footprints};
pub use index::{BarrierId, BlockRank, MapId, OperationId, ThreadId, ThreadIndex, WarpIndex};
pub use memory::{GlobalFault, GlobalMemory};
pub(crate) use mma::{WarpArithmetic, WarpFactors, WarpLanes, WideLanes, multiply_doubles, multiply_in_warp};
pub(crate) use random::Random;
pub use sizes::Width;
pub(crate) use timeline::{Position, Recorder};
pub use types::{
    AccessOrder, Actor, Arrive, BarrierUse, BulkAction, BulkCopy, Checks, Combination, CopyAsync, Fence,
    FencedMemory, GlobalOrder, MachineConfig, MemoryScope, Order, Phase, PhaseWait, Pointer, Poll,
    RankProgress, Reduction, RemoteStore, Scope, Semantics, Site, Space, TensorAction, TensorCopy, TryWait,
    Votes, Waiting, WaitingFor,
};
pub(crate) use types::{LeftOperand, Metadata, Multiply};

pub use crate::report::Stop;
use crate::report::{Finding, Findings, Party};
use crate::trace::Trace;
use barrier::Barriers;
use diagnostics::Diagnostics;
use engine::Engines;
use index::Shape;
use liveness::Liveness;
use memory::Memory;
use mma::TensorCores;
use order::HappensBefore;
use registers::Registers;
use timeline::Timeline;

/// One cluster of blocks. Its components depend on each other only through what a method lends
/// them.
#[derive(Debug)]
pub struct Machine {
    shape: Shape,
    seed: u64,
    checks: Checks,
    memory: Memory,
    order: HappensBefore,
    barriers: Barriers,
    engines: Engines,
    tensor_cores: TensorCores,
    registers: Registers,
    liveness: Liveness,
    diagnostics: Diagnostics,
    timeline: Timeline,
    counters: Counters,
    random: Random,
}

impl Machine {
    /// Creates a cluster at its start, with uninitialised shared memory.
    pub fn new(config: &MachineConfig) -> Self {
        let shape = Shape { blocks: config.blocks.len() as u32, threads: config.threads };
        Self {
            shape,
            seed: config.seed,
            checks: config.checks,
            memory: Memory::new(shape, config),
            order: HappensBefore::new(shape, config.checks.order),
            barriers: Barriers::new(shape, config.shared.end, config.seed),
            engines: Engines::new(shape),
            tensor_cores: TensorCores::new(shape),
            registers: Registers::new(shape, config.thread_registers),
            liveness: Liveness::new(shape),
            diagnostics: Diagnostics::new(shape, config),
            timeline: Timeline::default(),
            counters: Counters::default(),
            random: Random::new(config.seed),
        }
    }

    /// Records a finding of the executing side.
    pub fn report(&mut self, finding: Finding) {
        self.diagnostics.report(finding);
    }

    /// Records `finding` and stops the cluster.
    pub(crate) fn stop<T>(&mut self, finding: Finding) -> Result<T, Stop> {
        Err(self.diagnostics.stop(finding))
    }

    /// Returns the number of findings so far, counting equal ones once.
    pub fn findings_so_far(&self) -> usize {
        self.diagnostics.len()
    }

    /// Takes the notes: observations that need not be mistakes.
    pub fn take_notes(&mut self) -> Findings {
        self.diagnostics.take_notes()
    }

    /// Returns the counts of copies and bytes.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Returns a thread in the form in which findings refer to it.
    pub fn party(&self, thread: ThreadId, site: Site, does: &'static str) -> Party {
        self.diagnostics.party(Actor { thread, site }.does(does))
    }

    /// Starts a timeline of at most `limit` events.
    pub fn record(&mut self, limit: usize) {
        let blocks = self.shape.ranks().map(|rank| self.diagnostics.block(rank)).collect();
        self.timeline.begin(self.diagnostics.rank(), blocks, limit);
    }

    /// Ends the timeline and returns it. The timeline is empty if [`record`](Self::record) was not
    /// called.
    pub fn take_trace(&mut self) -> Trace {
        self.timeline.take()
    }

    pub(crate) fn recorder(&mut self) -> Option<&mut Recorder> {
        self.timeline.recorder()
    }

    /// Records the phase of the mbarrier at this place, after an operation on it.
    fn record_phase(&mut self, location: memory::SharedLocation) {
        self.timeline.phase(location, self.barriers.mbarrier(location));
    }
}
