//! Memory, barriers and asynchronous engines of one cluster of blocks, and the checks on how they
//! are used.
//!
//! A [`Machine`] is what the threads of a cluster act on: the executing side decides which thread
//! does what next, and calls one method for each effect. For a seed and an order of calls it does
//! the same each time.
//!
//! # The parts
//!
//! | part | what it is |
//! | --- | --- |
//! | `memory` | bytes of shared and global memory, tensor maps, and who accessed what |
//! | `order` | the clocks of threads: what comes before what |
//! | `global` | accesses to global memory, of all clusters |
//! | `barrier` | mbarriers, named barriers, the cluster's barrier |
//! | `engine` | asynchronous operations under way, and the groups that threads wait for |
//! | `mma` | multiplications of tensor cores, and their arithmetic |
//! | `registers` | registers that warps give back and ask for |
//! | `effect` | what each instruction does to the parts: the methods of [`Machine`] |
//! | `diagnostics` | findings, out of what the parts refuse or find in no order |
//! | `timeline` | what is kept for a timeline |
//!
//! A part reports nothing and knows no other part but those that it is lent for a call. Clocks,
//! counts of mbarriers, groups of copies and the conflicts of accesses are [`tma_model::sync`]'s.
//!
//! # The engines
//!
//! A copy is cut into pieces, and the seed draws when each takes effect: soon, much later, or when
//! nothing else can go on. Until a load lands, its tile holds poison; its mbarrier gets the bytes
//! piece by piece. A store or reduction reads its tile late and piece by piece, and writes later
//! still. Nothing depends on luck, though: a read before the wait is found wherever the copy
//! happens to be.
//!
//! # What comes before what
//!
//! Each thread, each mbarrier and each thread's bulk groups count steps, and vector clocks say
//! which steps of others an agent has come to know of (module `order`). An access to shared memory
//! has to follow the accesses before it that it conflicts with (module `memory`). The edges:
//!
//! | instruction | who learns | of what |
//! | --- | --- | --- |
//! | `bar`, `barrier` with wait | those that wait | all before it of all that arrive |
//! | `bar.warp.sync` | each lane | all before it of the other lanes |
//! | `barrier.cluster.arrive`, `.wait` | those that wait (unless `.relaxed`) | all before the arrivals |
//! | `mbarrier.arrive`, `test_wait`, `try_wait` | who sees the phase complete | all before the arrivals of it and of earlier phases |
//! | complete_tx of a load | the same | the pieces whose bytes counted for that phase or an earlier one |
//! | `cp.async.bulk.wait_group[.read]` | the thread | that the tiles of the groups are read |
//! | `wgmma.wait_group` | the thread | that the operands of the groups are read; and that what came before their issue, in all four warps, is *past* |
//! | `cp.async.wait_group`, `.wait_all` | the thread | what its copies of those groups wrote |
//! | `cp.async.mbarrier.arrive` | who sees the phase complete | what the thread's copies before it wrote, and no more |
//! | complete_tx of `st.async`, `red.async` | who sees the phase complete | what they wrote, in the generic proxy |
//! | complete_tx of any copy, `cp.async.mbarrier.arrive` | who sees the phase complete | that what came before their issue is *past* ([`tma_model::sync::phase`]) |
//! | release, acquire; fence around relaxed | who reads | all before the release |
//! | `fence.proxy.async` | asynchronous operations started later by whoever learns of the fence | all that the thread knew at the fence, of the memory that it names |
//! | `fence.mbarrier_init` | the same | the initialisations that the thread made |
//! | `fence.proxy.tensormap::generic` | copies with that map | the changes to a tensor map in global memory (module `memory`) |
//!
//! A block's shared memory is there until its last thread ends: what other blocks do with it has to
//! come before the end of one of its threads.
//!
//! # Generic and asynchronous proxy
//!
//! `cp.async` without `.bulk` is in the generic proxy, though it is as late as the others.
//!
//! Knowledge within a block has two halves: what was *seen*, and what of it is *ready* for the
//! asynchronous proxy, because a proxy fence of the memory in question lies on the way (PTX ISA,
//! "Proxies" and "Causality order": the fence may be anywhere on it, at the writer or at who starts
//! the copy). Both travel along every edge. A copy needs generic **writes** before it to be ready,
//! and other copies to be seen: what an asynchronous operation has done is visible to whoever
//! learns of its completion, with no fence (PTX ISA, "Async proxy"). A copy that writes needs
//! generic **reads** before it to be over, and behind a proxy fence. A read of global memory needs no
//! fence where its value was used before, so that it has arrived: by what memory or other threads
//! see, or by a branch. Arithmetic alone may be put off.
//!
//! Arrivals at mbarriers, and waits, that keep to the scope of a block hand a third thing to other
//! blocks: that what came before is *over*, and whether a proxy fence lies behind it. Memory may
//! then be read no more and be filled again; what threads wrote to it is not thereby seen.
//!
//! # Global memory
//!
//! Clusters learn of each other's steps through strong accesses to global memory, at scopes that
//! include both (module `global`). Without any such access in the kernel nothing orders two
//! clusters. Accesses are checked like those to shared memory; a strong load may see any store that
//! this order allows, which the seed picks.
//!
//! # Not checked
//!
//! * Scopes of releases and acquires in shared memory, but those of mbarriers: they are taken to
//!   reach as far as they are used.
//! * Strong reads of shared memory are not remembered, so that a weak write that follows one
//!   unordered is not found, nor a missing fence.
//! * Of more than 16 reads of one piece of global memory that are in no order, the first ones are
//!   forgotten.
//! * A proxy fence between reads of global memory by threads and a copy that writes there, in kernels
//!   so large that the uses of values are not followed; and where a thread has used what it read at
//!   the same line before, with no synchronisation since.
//! * Of several asynchronous reductions of the same bytes of shared memory, only the last one
//!   issued has to be waited for.
//! * Uses of an mbarrier that nothing orders before its `mbarrier.inval`, unless they come after it
//!   in time.
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
pub(crate) use mma::{WarpFactors, WarpLanes, WarpManner, WideLanes, multiply_doubles, multiply_in_warp};
pub(crate) use random::Random;
pub use sizes::Width;
pub(crate) use timeline::{Position, Recorder};
pub use types::{
    AccessOrder, Actor, Arrive, BarrierUse, BulkAction, BulkCopy, Checks, Combination, CopyAsync, Fence,
    FencedMemory, GlobalOrder, MachineConfig, MemoryScope, Order, Phase, PhaseWait, Pointer, Poll, Reduction,
    RemoteStore, Scope, Semantics, Site, Space, TensorAction, TensorCopy, TryWait, Votes, Waiting,
    WaitingFor,
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

/// One cluster of blocks: its parts, each of which knows nothing of the others but what it is lent.
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
    /// A cluster at its start: shared memory is not initialised.
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

    /// Records `finding` and stops.
    pub(crate) fn stop<T>(&mut self, finding: Finding) -> Result<T, Stop> {
        Err(self.diagnostics.stop(finding))
    }

    /// How many findings there are, like ones counted once.
    pub fn findings_so_far(&self) -> usize {
        self.diagnostics.len()
    }

    /// What was noted that is no mistake for certain.
    pub fn take_notes(&mut self) -> Findings {
        self.diagnostics.take_notes()
    }

    /// What was done, in numbers.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// A thread as a finding names it.
    pub fn party(&self, who: ThreadId, site: Site, does: &'static str) -> Party {
        self.diagnostics.party(Actor { who, site }.does(does))
    }

    /// Keeps a timeline from now on, of at most `limit` events.
    pub fn record(&mut self, limit: usize) {
        let blocks = self.shape.ranks().map(|rank| self.diagnostics.block(rank)).collect();
        self.timeline.begin(blocks, limit);
    }

    /// Ends the timeline; nothing is in it if [`record`](Self::record) was not called.
    pub fn take_trace(&mut self) -> Trace {
        self.timeline.take()
    }

    pub(crate) fn recorder(&mut self) -> Option<&mut Recorder> {
        self.timeline.recorder()
    }

    /// Something was done to the mbarrier at a place.
    fn record_phase(&mut self, place: memory::SharedPlace) {
        self.timeline.phase(place, self.barriers.mbarrier(place));
    }
}
