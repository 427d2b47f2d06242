//! The state of a run: groups of threads, blocks, barriers.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use tma_model::sync::{
    BulkGroups, Clock, Component, Epoch, Issue, Issues, Knowledge, MbarrierCount, PhaseOrder, Releases, View,
};

use super::finding::BarrierState;
use super::memory::{Memory, Site};
use super::term::Term;
use super::value::Value;
use crate::ir::{MatchOp, ParamId, Scalar, ShuffleOp, StmtId, VoteOp, WarpOp, WarpReduceOp};

/// Threads of a block that take the same way.
#[derive(Clone, Debug)]
pub(super) struct Agent {
    pub(super) block: usize,
    pub(super) threads: Rc<[u32]>,
    /// The next step.
    pub(super) at: usize,
    /// What the variables that matter hold.
    pub(super) locals: Vec<Value>,
    pub(super) counters: Vec<Option<Counter>>,
    pub(super) view: View,
    /// Its step at its last wait.
    pub(super) waited: u32,
    /// The loops that it is in, and the turn of each.
    pub(super) turns: Vec<(StmtId, u32)>,
    pub(super) is_done: bool,
    /// The round of the meeting that it has come to and not left.
    pub(super) inside: Option<u32>,
    /// Which meeting that is, or was last.
    pub(super) meets: Meets,
    /// The knowledge that a round of a named barrier has released, until it leaves the round.
    pub(super) told: Option<Knowledge>,
    /// For which locals each loop's turns have made a difference, and what all were at the last.
    pub(super) moves: Moves,
    /// Where it has come to the cluster's barrier, and waits.
    pub(super) at_cluster: Option<StmtId>,
    /// The round of the cluster's barrier that it has arrived in.
    pub(super) in_cluster: Option<u32>,
    pub(super) stores: Stores,
    /// Multiplications that it has issued.
    pub(super) multiplications: u32,
    /// The maps in memory of which it has acquired any.
    pub(super) acquired: BTreeSet<ParamId>,
    /// How often a poll has failed since it did anything else.
    pub(super) failed_polls: u32,
}

/// Which meeting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Meets {
    /// Of the grid.
    #[default]
    Grid,
    /// Of a barrier of the block, by its number.
    Named(u32),
    /// Of a warp of the block, by its number, at an operation.
    Warp(u32, Together),
}

/// The operations of a warp that pair: lanes at two others wait for each other forever.
///
/// PTX ISA, "shfl.sync", "vote.sync", "match.sync", "redux.sync", "elect.sync", "bar.warp.sync": the
/// threads of the mask execute the same instruction with the same qualifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Together {
    Sync,
    Elect,
    Shuffle(ShuffleOp),
    Vote(VoteOp),
    Match(MatchOp, u32),
    Reduce(WarpReduceOp, Scalar),
    /// One that is for all threads of a warp at one place.
    At(StmtId),
}

impl Together {
    /// Of an operation on values of a type.
    pub(super) fn of(op: &WarpOp, scalar: Scalar) -> Self {
        match op {
            WarpOp::Shuffle { op, .. } => Self::Shuffle(*op),
            WarpOp::Vote(op) => Self::Vote(*op),
            WarpOp::Match(op) => Self::Match(*op, scalar.bytes()),
            WarpOp::Reduce(op) => Self::Reduce(*op, scalar),
        }
    }
}

/// What the turns of loops change.
#[derive(Clone, Debug, Default)]
pub(super) struct Moves {
    /// The locals at the last turn of each loop.
    pub(super) heads: BTreeMap<StmtId, Rc<[Value]>>,
    /// Whether a local was another at some turn than at the one before.
    pub(super) moving: Vec<bool>,
}

/// The bulk groups of a thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Stores {
    pub(super) groups: BulkGroups,
    pub(super) component: Option<Component>,
    /// The clock of what they have written, where anybody may read it.
    pub(super) written: Option<Component>,
    /// The stores that nobody has waited for: their group, and where.
    pub(super) open: Vec<(u32, Site)>,
}

/// The counter of a `for`.
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
    /// The step of a fence of initialisations behind it.
    pub(super) fenced: Option<Epoch>,
    /// The last phase that a wait has seen complete.
    pub(super) observed: u32,
    /// Whether other blocks arrive at it.
    pub(super) remote: bool,
    /// The last load that counted, and its phase.
    pub(super) load: Option<(u32, Site)>,
    /// Who announced bytes last, who arrived last, and who completed the last phase.
    pub(super) announced: Option<Site>,
    pub(super) arrived: Option<Site>,
    pub(super) completer: Option<Site>,
    /// Who has arrived more often at once than a phase counts.
    pub(super) crowded: Option<Site>,
    /// The announcements of this phase that no arrival is known to come after.
    pub(super) late: Vec<(Epoch, Site)>,
    /// The last use by each agent, where the mbarrier may be invalidated.
    pub(super) uses: BTreeMap<Component, Epoch>,
}

impl Mbarrier {
    /// The step with which the current phase will be complete.
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

/// Where threads meet.
#[derive(Clone, Debug, Default)]
pub(super) struct Meeting {
    pub(super) round: u32,
    /// How many threads have come; of a barrier of the block the warps.
    pub(super) arrived: u32,
    pub(super) warps: Vec<u32>,
    /// The warps of which a part has come.
    pub(super) held: BTreeMap<u32, Held>,
    /// The clock of the barrier's rounds, where their order is asked for.
    pub(super) component: Option<Component>,
    /// How many are wanted: those that are left of the block if none.
    pub(super) expected: Option<u32>,
    pub(super) first: Option<Site>,
    /// Where each warp has come.
    pub(super) places: Vec<Came>,
    pub(super) releases: Releases,
    pub(super) released: Knowledge,
    /// What the threads of a warp bring, and have brought to the last round.
    pub(super) brought: Vec<(u32, Option<Term>)>,
    pub(super) result: Rc<[(u32, Option<Term>)]>,
}

/// Where a warp has come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Came {
    pub(super) warp: u32,
    pub(super) site: Site,
    /// Whether all threads of the warp must come to the same instruction.
    pub(super) aligned: bool,
}

/// Registers that a warpgroup has taken or given.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) increase: bool,
    pub(super) amount: u32,
    pub(super) step: Epoch,
    /// The steps that come before it.
    pub(super) past: Clock,
    pub(super) site: Site,
}

/// A part of a warp at a barrier of the block, which waits for the rest.
#[derive(Clone, Debug)]
pub(super) struct Held {
    /// The statement that they have come to.
    pub(super) stmt: StmtId,
    /// The groups of them.
    pub(super) agents: Vec<usize>,
}

/// A warpgroup's tensor cores.
#[derive(Clone, Debug)]
pub(super) struct TensorCore {
    pub(super) component: Component,
    /// Multiplications that all know to be over, of which one issue is kept.
    pub(super) folded: u32,
    /// What had happened at the issue of each of the others, the first of them first.
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

    /// Nobody will wait for less than this number: of those up to it one issue is kept.
    pub(super) fn fold(&mut self, over: u32) {
        while over > self.folded + 1 && self.issues.len() > 1 {
            let first = self.issues.remove(0);
            self.folded += 1;
            if let Some(next) = self.issues.first_mut() {
                next.merge(first);
            }
        }
    }

    /// What had happened at the issues of the multiplications up to this number.
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
    /// Numbers in shared arrays, by address.
    pub(super) numbers: BTreeMap<u32, Term>,
    pub(super) named: BTreeMap<u32, Meeting>,
    pub(super) warps: BTreeMap<(u32, Together), Meeting>,
    pub(super) tensor_cores: BTreeMap<u32, TensorCore>,
    /// Registers that are free, and those of each warpgroup's threads.
    pub(super) free_registers: u32,
    pub(super) registers: BTreeMap<u32, u32>,
    /// All changes of these.
    pub(super) changes: Vec<Change>,
    /// Uses of its memory by other blocks that no thread of its own knows to be over.
    pub(super) visits: Vec<(Epoch, Site)>,
}

impl Block {
    /// Another block's use of its memory. Whoever knows a use to be over knows it of those before.
    pub(super) fn note_visit(&mut self, visit: (Epoch, Site)) {
        self.visits.retain(|(step, _)| step.component() != visit.0.component());
        self.visits.push(visit);
    }
}
