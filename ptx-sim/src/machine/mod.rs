//! Memory, barriers and asynchronous engines of one cluster of blocks, and the checks on how they are used.
//!
//! A [`Machine`] is what the threads of a cluster act on: the executing side decides which thread does what next, and calls
//! one method for each effect. For a seed and an order of calls it does the same each time.
//!
//! # The engines
//!
//! A copy is cut into pieces, and the seed draws when each takes effect: soon, much later, or when nothing else can go on.
//! Until a load lands, its tile holds poison; its mbarrier gets the bytes piece by piece. A store or reduction reads its tile
//! late and piece by piece, and writes later still. Nothing depends on luck, though: a read before the wait is found wherever
//! the copy happens to be.
//!
//! # What comes before what
//!
//! Each thread, each mbarrier and each thread's bulk groups count steps, and vector clocks say which steps of others an agent
//! has come to know of (module `clock`). An access to shared memory has to follow the accesses before it that it conflicts
//! with (module `shadow`). The edges:
//!
//! | instruction | who learns | of what |
//! | --- | --- | --- |
//! | `bar`, `barrier` with wait | those that wait | all before it of all that arrive |
//! | `bar.warp.sync` | each lane | all before it of the other lanes |
//! | `barrier.cluster.arrive`, `.wait` | those that wait (unless `.relaxed`) | all before the arrivals |
//! | `mbarrier.arrive`, `test_wait`, `try_wait` | who sees the phase complete | all before the arrivals of it and of earlier phases |
//! | complete_tx of a load | the same | the pieces whose bytes counted for that phase or an earlier one |
//! | `cp.async.bulk.wait_group[.read]` | the thread | that the tiles of the groups are read |
//! | `cp.async.wait_group`, `.wait_all` | the thread | what its copies of those groups wrote |
//! | `cp.async.mbarrier.arrive` | who sees the phase complete | what the thread's copies before it wrote, and no more |
//! | complete_tx of `st.async`, `red.async` | who sees the phase complete | what they wrote, in the generic proxy |
//! | complete_tx of any copy, `cp.async.mbarrier.arrive` | who sees the phase complete | that what came before their issue is *past* (module `overrun`) |
//! | release, acquire; fence around relaxed | who reads | all before the release |
//! | `fence.proxy.async` | asynchronous operations started later by whoever learns of the fence | all that the thread knew at the fence, of the memory that it names |
//! | `fence.mbarrier_init` | the same | the initialisations that the thread made |
//! | `fence.proxy.tensormap::generic` | copies with that map | the changes to a tensor map in global memory (module `tensor_maps`) |
//!
//! A block's shared memory is there until its last thread ends: what other blocks do with it has to come before the end of one
//! of its threads.
//!
//! # Generic and asynchronous proxy
//!
//! `cp.async` without `.bulk` is in the generic proxy, though it is as late as the others.
//!
//! Knowledge within a block has two halves: what was *seen*, and what of it is *ready* for the asynchronous proxy, because a proxy
//! fence of the memory in question lies on the way (PTX ISA, "Proxies" and "Causality order": the fence may be anywhere on it, at the writer or at who
//! starts the copy). Both travel along every edge. A copy needs generic **writes** before it to be ready, and other copies to be
//! seen: what an asynchronous operation has done is visible to whoever learns of its completion, with no fence (PTX ISA, "Async
//! proxy"). A copy that writes needs generic **reads** before it to be over, and behind a proxy fence.
//!
//! Arrivals at mbarriers, and waits, that keep to the scope of a block hand a third thing to other blocks: that what came
//! before is *over*, and whether a proxy fence lies behind it. Memory may then be read no more and be filled again; what
//! threads wrote to it is not thereby seen.
//!
//! # Not checked
//!
//! * Order of accesses to global memory, but for two things within a cluster: what a bulk store writes is not touched before
//!   the `wait_group` for it (module `stored`), and between what threads write and a copy that reads it lies a proxy fence
//!   (module `written`). What other clusters release through global memory: it is not ordered with anything
//!   here.
//! * Scopes, but those of mbarriers: any other release or acquire is taken to reach as far as it is used.
//! * Strong reads are not remembered, so that a weak write that follows one unordered is not found, nor a missing fence.
//! * A proxy fence between what threads read from global memory and a copy that writes there.
//! * Of several asynchronous reductions of the same bytes of shared memory, only the last one issued has to be waited for.
//! * Uses of an mbarrier that nothing orders before its `mbarrier.inval`, unless they come after it in time.

mod access;
pub mod address;
mod bulk;
mod clock;
mod conflict;
mod copy;
mod copy_async;
mod counters;
mod deadlock;
mod engine;
mod exit;
mod flags;
mod global;
mod mbarrier;
mod mbarrier_ops;
mod names;
mod outside;
mod overrun;
mod record;
mod recorder;
mod reduce;
mod refusal;
mod remote;
mod shadow;
mod state;
mod stored;
mod sync;
mod tensor_maps;
mod types;
mod wide;
mod written;

#[cfg(test)]
mod tests;

pub use copy_async::CopyAsync;
pub use counters::{CopyKind, Counters, Moved};
pub use global::{GlobalFault, GlobalMemory};
pub use names::SharedName;
pub use remote::RemoteStore;
pub use types::{
    Arrive, BarrierUse, BulkAction, BulkCopy, Checks, FenceKind, MachineConfig, Order, Phase, Poll,
    Reduction, Scope, Semantics, Site, Space, TensorAction, TensorCopy, ThreadId, TryWait, Votes, Waiting,
    WaitingFor,
};

pub use crate::report::Stop;
use crate::report::{Finding, Findings, Party};
use access::Access;
use clock::{Acquirer, Epoch};
use copy_async::Copies;
use engine::Engine;
use flags::Flags;
pub(crate) use recorder::{Place, Recorder};
pub(crate) use state::Random;
use state::{Block, Thread};
use stored::Stored;
use sync::ClusterBarrier;
use tensor_maps::Maps;
use written::Written;

/// Another sequence of the seed's numbers, so that the main one stays as it is.
const IMPATIENCE: u64 = 0x5851_f42d_4c95_7f2d;

/// One cluster of blocks.
#[derive(Debug)]
pub struct Machine {
    config: MachineConfig,
    threads: Vec<Thread>,
    blocks: Vec<Block>,
    cluster: ClusterBarrier,
    flags: Flags,
    acquirer: Acquirer,
    engine: Engine,
    maps: Maps,
    /// What threads have issued of `cp.async`, by number; empty before the first.
    copies: Vec<Copies>,
    stored: Stored,
    written: Written,
    random: Random,
    /// Whether waits time out again and again.
    impatient: bool,
    /// The next clock component; those below the number of threads are theirs.
    next_component: u32,
    findings: Findings,
    /// What is no mistake for certain.
    notes: Findings,
    counters: Counters,
    /// Keeps the timeline, where one is wanted.
    recorder: Option<Box<Recorder>>,
}

impl Machine {
    /// A cluster at its start: shared memory is not initialised.
    pub fn new(config: MachineConfig) -> Self {
        let blocks = config.blocks.len() as u32;
        let threads = blocks * config.threads;
        Self {
            threads: (0..threads).map(|component| Thread::new(component, config.checks.order)).collect(),
            blocks: (0..blocks).map(|_| Block::new(config.threads, config.shared_bytes)).collect(),
            cluster: ClusterBarrier::default(),
            flags: Flags::default(),
            acquirer: Acquirer::default(),
            engine: Engine::default(),
            maps: Maps::default(),
            copies: Vec::new(),
            stored: Stored::default(),
            written: Written::default(),
            random: Random::new(config.seed),
            impatient: Random::new(config.seed ^ IMPATIENCE).below(8) == 0,
            next_component: threads,
            findings: Findings::default(),
            notes: Findings::default(),
            counters: Counters::default(),
            recorder: None,
            config,
        }
    }

    /// Records a finding of the executing side.
    pub fn report(&mut self, finding: Finding) {
        self.findings.add(finding);
    }

    /// How many findings there are, like ones counted once.
    pub fn findings_so_far(&self) -> usize {
        self.findings.len()
    }

    /// What was noted that is no mistake for certain.
    pub fn take_notes(&mut self) -> Findings {
        std::mem::take(&mut self.notes)
    }

    /// What was done, in numbers.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// A thread as a finding names it.
    pub fn party(&self, who: ThreadId, site: Site, does: &'static str) -> Party {
        let block = self.config.blocks.get(who.block as usize).copied().unwrap_or_default();
        Party { block, who, site, does }
    }

    /// Records `finding` and stops.
    pub(crate) fn stop<T>(&mut self, finding: Finding) -> Result<T, Stop> {
        Err(self.findings.stop(finding))
    }

    /// Records that `invariant` does not hold where `access` is made, and stops.
    #[cold]
    fn bug<T>(&mut self, access: Access, invariant: &str) -> Result<T, Stop> {
        let party = self.party(access.who, access.site, access.does);
        self.stop(Finding::internal(invariant).with(party))
    }

    fn index(&self, who: ThreadId) -> usize {
        (who.block * self.config.threads + who.thread) as usize
    }

    /// The thread of a clock component, if it is one's.
    fn thread_of(&self, epoch: Epoch) -> Option<ThreadId> {
        let component = epoch.component();
        let per_block = self.config.threads.max(1);
        (component < self.threads.len() as u32)
            .then_some(ThreadId { block: component / per_block, thread: component % per_block })
    }

    /// A PTX line with what `.loc` says of it.
    fn site_of(&self, ptx_line: u32) -> Site {
        Site { ptx_line, source: self.config.lines.get(ptx_line as usize).copied().flatten() }
    }

    fn new_component(&mut self) -> u32 {
        self.next_component += 1;
        self.next_component - 1
    }
}
