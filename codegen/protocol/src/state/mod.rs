//! The state of an execution: groups of threads, blocks and barriers.

pub(super) mod visit;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use tma_front::ir::{MatchOp, ParamId, Scalar, ShuffleOp, StmtId, VoteOp, WarpOp, WarpReduceOp};
use tma_model::sync::{
    BulkGroups, Clock, Component, Epoch, Issue, Issues, Knowledge, MbarrierCount, PhaseOrder, Releases, View,
};

use super::choices::Decisions;
use super::explore::input::Input;
use super::facts::Facts;
use super::finding::BarrierState;
use super::history::History;
use super::memory::global::GlobalRecord;
use super::memory::{Memory, Site};
use super::term::{SymbolCounts, Term};
use super::to_u32;
use super::value::Value;

/// One execution: everything that its rest depends on, and the records of what has happened in it.
///
/// `visit` says of each field what it contributes to the normal form by which executions are
/// compared.
#[derive(Clone, Debug)]
pub(super) struct Execution {
    /// The path condition.
    pub(super) facts: Facts,
    pub(super) symbols: SymbolCounts,
    pub(super) agents: Vec<Agent>,
    pub(super) blocks: Vec<Block>,
    /// Accesses to global memory that copies share with threads or with each other.
    pub(super) globals: Vec<GlobalRecord>,
    /// The rendezvous of the cluster, and that of the grid.
    pub(super) cluster: Rendezvous,
    pub(super) grid: Rendezvous,
    /// The number of clock components that have been allocated.
    pub(super) components: u32,
    /// The group of threads that takes steps now.
    pub(super) current: usize,
    /// A count of events that other groups may wait for.
    pub(super) event_count: u64,
    pub(super) decisions: Decisions,
    pub(super) history: History,
}

impl Execution {
    /// Returns an execution at its start.
    pub(super) fn new(input: &Input<'_>) -> Self {
        let block_count = input.cluster.iter().product::<u32>() as usize;
        let of_blocks = (0..block_count).flat_map(|block| input.groups.iter().map(move |of| (block, of)));
        let agents: Vec<_> = of_blocks
            .enumerate()
            .map(|(number, (block, threads))| {
                let me = Component::new(to_u32(number));
                Agent::new(input, block, Rc::clone(threads), me)
            })
            .collect();
        Self {
            facts: Facts::default(),
            symbols: SymbolCounts::default(),
            components: to_u32(agents.len()),
            agents,
            blocks: vec![Block::default(); block_count],
            globals: vec![],
            cluster: Rendezvous::default(),
            grid: Rendezvous::default(),
            current: 0,
            event_count: 0,
            decisions: Decisions::default(),
            history: History::default(),
        }
    }
}

/// A group of threads of one block that follow the same path.
#[derive(Clone, Debug)]
pub(super) struct Agent {
    pub(super) block: usize,
    pub(super) threads: Rc<[u32]>,
    /// The index of the next step.
    pub(super) at: usize,
    /// The values of the variables in the slice, in the order of `Steps::variables`.
    pub(super) locals: Vec<Value>,
    pub(super) counters: Vec<Option<Counter>>,
    pub(super) view: View,
    /// The group's own clock step at its last wait; 0 before any.
    pub(super) waited: u32,
    /// The loops around the next step, outermost first, and the iteration of each. Iterations count
    /// from 1; 0 means that the first one has not begun.
    pub(super) iterations: Vec<(StmtId, u32)>,
    pub(super) is_done: bool,
    /// The round of the rendezvous that the group has arrived in and not left.
    pub(super) arrived_round: Option<u32>,
    /// The rendezvous of that round, or the last one.
    pub(super) rendezvous: RendezvousKind,
    /// Knowledge released by a complete round of a named barrier, until the group leaves the round
    /// and acquires it.
    pub(super) pending_release: Option<Knowledge>,
    /// The locals that change from one iteration of a loop to the next.
    pub(super) loop_changes: LoopChanges,
    /// The `sync_cluster` at which the group has arrived and waits.
    pub(super) cluster_sync: Option<StmtId>,
    /// The round of the cluster barrier that the group has arrived in.
    pub(super) cluster_round: Option<u32>,
    pub(super) stores: Stores,
    /// The number of multiplications that the group has issued.
    pub(super) multiplications: u32,
    /// The parameters of tensor maps in memory of which the group has acquired at least one.
    pub(super) acquired: BTreeSet<ParamId>,
    /// Polls that have failed since the group last passed a wait or left a barrier of the block. 2
    /// means that the group now waits until its poll succeeds.
    pub(super) failed_polls: u32,
}

impl Agent {
    fn new(input: &Input<'_>, block: usize, threads: Rc<[u32]>, me: Component) -> Self {
        Self {
            block,
            threads,
            at: 0,
            locals: vec![Value::Unknown; input.code.variables.len()],
            counters: vec![None; input.code.counters],
            view: View::new(me, true),
            waited: 0,
            iterations: vec![],
            is_done: false,
            arrived_round: None,
            cluster_round: None,
            stores: Stores::default(),
            multiplications: 0,
            failed_polls: 0,
            acquired: BTreeSet::new(),
            cluster_sync: None,
            rendezvous: RendezvousKind::default(),
            pending_release: None,
            loop_changes: LoopChanges::default(),
        }
    }
}

/// A kind of rendezvous.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum RendezvousKind {
    /// `sync_grid`.
    #[default]
    Grid,
    /// A barrier of the block, by number.
    Named(u32),
    /// An operation of a warp, by the index of the warp in its block.
    Warp(u32, WarpRendezvous),
}

/// Warp operations that lanes execute together. Lanes at two different ones wait for each other
/// forever.
///
/// Source: PTX ISA, "shfl.sync", "vote.sync", "match.sync", "redux.sync", "elect.sync",
/// "bar.warp.sync": the threads of the mask execute the same instruction with the same qualifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WarpRendezvous {
    Sync,
    Elect,
    Shuffle(ShuffleOp),
    Vote(VoteOp),
    Match(MatchOp, u32),
    Reduce(WarpReduceOp, Scalar),
    /// One statement that all threads of a warp execute together.
    At(StmtId),
}

impl WarpRendezvous {
    /// Returns the operation `op` on values of type `scalar`.
    pub(super) fn of(op: &WarpOp, scalar: Scalar) -> Self {
        match op {
            WarpOp::Shuffle { op, .. } => Self::Shuffle(*op),
            WarpOp::Vote(op) => Self::Vote(*op),
            WarpOp::Match(op) => Self::Match(*op, scalar.bytes()),
            WarpOp::Reduce(op) => Self::Reduce(*op, scalar),
        }
    }
}

/// The changes that loops make to locals.
#[derive(Clone, Debug, Default)]
pub(super) struct LoopChanges {
    /// The locals at the start of the latest iteration of each loop.
    pub(super) heads: BTreeMap<StmtId, Rc<[Value]>>,
    /// For each local, whether it has ever changed from one iteration of a loop to the next.
    pub(super) has_changed: Vec<bool>,
}

/// The bulk async-groups of a thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Stores {
    pub(super) groups: BulkGroups,
    pub(super) component: Option<Component>,
    /// The clock component of their writes to global memory that threads or other copies also
    /// access.
    pub(super) written: Option<Component>,
    /// The stores that have not been waited for: their group, and their site.
    pub(super) open: Vec<(u32, Site)>,
}

/// The counter of a `for` loop.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Counter {
    pub(super) value: super::lanes::Lanes<Term>,
    pub(super) end: super::lanes::Lanes<Term>,
    pub(super) step: super::lanes::Lanes<Term>,
    pub(super) scalar: Scalar,
}

/// An mbarrier.
#[derive(Clone, Debug)]
pub(super) struct Mbarrier {
    pub(super) count: MbarrierCount,
    pub(super) order: PhaseOrder<Site>,
    pub(super) component: Component,
    pub(super) init: Site,
    pub(super) init_step: Epoch,
    /// The step of the first `fence_barrier_init` by the initialising group after the
    /// initialisation.
    pub(super) fenced: Option<Epoch>,
    /// The phase that was current when a wait last passed, i.e. the number of phases that were seen
    /// complete.
    pub(super) observed: u32,
    /// Whether arrivals come from other blocks, or through a remote handle.
    pub(super) remote: bool,
    /// The last load that counted, with the number of phases that are complete once it is.
    pub(super) load: Option<(u32, Site)>,
    /// The sites of the last announcement of bytes, of the last arrival, and of the operation that
    /// completed the last phase.
    pub(super) announced: Option<Site>,
    pub(super) arrived: Option<Site>,
    pub(super) completer: Option<Site>,
    /// The site of a group whose arrivals at one statement counted for more than one phase.
    pub(super) multi_phase: Option<Site>,
    /// Announcements in the current phase that no arrival is known to follow.
    pub(super) late_announcements: Vec<(Epoch, Site)>,
    /// The last use by each agent. Recorded only if the kernel invalidates mbarriers.
    pub(super) last_uses: BTreeMap<Component, Epoch>,
}

impl Mbarrier {
    /// Returns the clock step at which the current phase will be complete.
    pub(super) fn next_phase(&self) -> Epoch {
        Epoch::new(self.component, self.count.phase().saturating_add(1))
    }

    pub(super) fn state(&self) -> BarrierState {
        BarrierState {
            phase: self.count.phase(),
            pending: self.count.pending(),
            expected: self.count.expected(),
            expected_bytes: self.count.expected_bytes(),
            received_bytes: self.count.received_bytes(),
        }
    }
}

/// A rendezvous of threads, which has rounds.
#[derive(Clone, Debug, Default)]
pub(super) struct Rendezvous {
    pub(super) round: u32,
    /// The number of threads that have arrived in this round. A barrier of the block for a given
    /// number of threads counts whole `warps` instead.
    pub(super) arrived: u32,
    pub(super) warps: Vec<u32>,
    /// Warps of which only some threads have arrived.
    pub(super) partial_warps: BTreeMap<u32, PartialWarp>,
    /// The clock component of the rounds, allocated when their order first matters.
    pub(super) component: Option<Component>,
    /// The number of threads that a round is for. `None` means all live threads of the block.
    pub(super) expected: Option<u32>,
    pub(super) first: Option<Site>,
    /// The site at which each warp has arrived.
    pub(super) arrivals: Vec<WarpArrival>,
    pub(super) releases: Releases,
    pub(super) released: Knowledge,
    /// The operands of the lanes that have arrived in this round, and those of the last complete
    /// round.
    pub(super) operands: Vec<(u32, Option<Term>)>,
    pub(super) result: Rc<[(u32, Option<Term>)]>,
}

/// The arrival of a warp.
#[derive(Clone, Debug)]
pub(super) struct WarpArrival {
    pub(super) warp: u32,
    pub(super) site: Site,
    /// The loops around the site, outermost first, and the iteration of each.
    pub(super) iterations: Rc<[(StmtId, u32)]>,
    /// Whether all threads of the warp must execute the same instruction.
    pub(super) aligned: bool,
}

/// A change of the registers of a warpgroup.
#[derive(Clone, Debug)]
pub(super) struct RegisterChange {
    pub(super) increase: bool,
    pub(super) amount: u32,
    pub(super) step: Epoch,
    /// The steps that are known to precede it.
    pub(super) past: Clock,
    pub(super) site: Site,
}

/// Part of a warp at a barrier of the block, waiting for the rest of the warp.
#[derive(Clone, Debug)]
pub(super) struct PartialWarp {
    /// The statement at which these threads have arrived.
    pub(super) stmt: StmtId,
    /// The groups of these threads.
    pub(super) agents: Vec<usize>,
}

/// The tensor cores of a warpgroup.
#[derive(Clone, Debug)]
pub(super) struct TensorCore {
    pub(super) component: Component,
    /// The number of multiplications that all groups know to be over. Their issues are merged into
    /// the first of `issues`.
    pub(super) folded: u32,
    /// The clocks at the issue of each of the other multiplications, in order.
    pub(super) issues: Vec<Issues>,
}

impl TensorCore {
    pub(super) fn note(&mut self, number: u32, issue: &Issue) {
        let number = number.saturating_sub(self.folded) as usize;
        if self.issues.len() < number {
            self.issues.resize_with(number, Issues::default);
        }
        if let Some(issues) = number.checked_sub(1).and_then(|index| self.issues.get_mut(index)) {
            issues.add(issue);
        }
    }

    /// Merges the issues of the multiplications up to `over`. No later wait is for fewer.
    pub(super) fn fold(&mut self, over: u32) {
        while over > self.folded + 1 && self.issues.len() > 1 {
            let first = self.issues.remove(0);
            self.folded += 1;
            if let Some(next) = self.issues.first_mut() {
                next.merge(first);
            }
        }
    }

    /// Returns the clocks at the issue of the multiplications up to `number`.
    pub(super) fn past(&mut self, number: u32) -> Vec<Clock> {
        let count = number.saturating_sub(self.folded) as usize;
        self.issues.iter_mut().take(count).map(Issues::join).collect()
    }
}

/// A block of the cluster.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    pub(super) memory: Memory,
    pub(super) mbarriers: BTreeMap<u32, Mbarrier>,
    /// The terms stored in shared arrays, by address.
    pub(super) numbers: BTreeMap<u32, Term>,
    pub(super) named: BTreeMap<u32, Rendezvous>,
    pub(super) warps: BTreeMap<(u32, WarpRendezvous), Rendezvous>,
    pub(super) tensor_cores: BTreeMap<u32, TensorCore>,
    /// The free registers of the block, and the registers per thread of each warpgroup.
    pub(super) free_registers: u32,
    pub(super) registers: BTreeMap<u32, u32>,
    /// All changes of these, in order.
    pub(super) changes: Vec<RegisterChange>,
    /// Uses of the block's memory by other blocks that no thread of the block knows to be over.
    pub(super) remote_uses: Vec<(Epoch, Site)>,
}

impl Block {
    /// Records a use of the block's memory by another block. An agent that knows one use to be over
    /// knows the earlier ones of the same component to be over.
    pub(super) fn note_remote_use(&mut self, visit: (Epoch, Site)) {
        self.remote_uses.retain(|(step, _)| step.component() != visit.0.component());
        self.remote_uses.push(visit);
    }
}
