//! Programs of a few threads that access the same memory and synchronise.

use tma_model::sync::{Memory, MemoryScope, Order};

/// The block, warp and lane of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) block: u32,
    pub(crate) warp: u32,
    pub(crate) lane: u32,
}

/// An element of memory, initially 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    pub(crate) memory: Memory,
    /// The block whose threads access the variable, if it is in shared memory.
    pub(crate) block: u32,
}

/// An atomic read-modify-write operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Update {
    /// Adds 1.
    Add,
    Swap(u32),
    CompareExchange {
        current: u32,
        new: u32,
    },
}

impl Update {
    /// Returns the value that is written if `old` was read. A comparison that fails writes `old`
    /// back (PTX ISA, "atom": `cas(r, s, t) = (r == s) ? t : r`).
    pub(crate) fn new_value(self, old: u32) -> u32 {
        match self {
            Self::Add => old + 1,
            Self::Swap(new) => new,
            Self::CompareExchange { current, new } => {
                if old == current {
                    new
                } else {
                    old
                }
            }
        }
    }
}

/// The action of an access on its variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Load,
    /// A loop of loads until this value is read.
    Await(u32),
    Store(u32),
    Update(Update),
}

impl Action {
    pub(crate) fn reads(self) -> bool {
        match self {
            Self::Load | Self::Await(_) | Self::Update(_) => true,
            Self::Store(_) => false,
        }
    }

    pub(crate) fn writes(self) -> bool {
        match self {
            Self::Store(_) | Self::Update(_) => true,
            Self::Load | Self::Await(_) => false,
        }
    }
}

/// An access to a variable. The scope of a weak access has no meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) variable: usize,
    pub(crate) action: Action,
    pub(crate) order: Order,
    pub(crate) scope: MemoryScope,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Access(Access),
    /// `fence()`, which is `fence.acq_rel.gpu`.
    Fence,
}

/// The condition that a step of the same thread has read this value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Guard {
    pub(crate) step: usize,
    pub(crate) value: u32,
}

/// The kinds of barriers, by their participants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Barrier {
    /// `sync_threads` of a block.
    Threads { block: u32 },
    /// `named_barrier_sync` of two warps of a block.
    Named { block: u32, warps: [u32; 2] },
    /// `sync_warp`.
    Warp { block: u32, warp: u32 },
    /// `sync_cluster` of the first cluster.
    Cluster,
}

/// A step of one thread, or a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Of { thread: usize, operation: Operation, guard: Option<Guard> },
    Barrier(Barrier),
}

/// A program. Each thread executes its own steps in the order of the list. Steps of different
/// threads are ordered only by barriers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) places: Vec<Place>,
    /// The number of blocks of a cluster, if there are clusters.
    pub(crate) cluster: Option<u32>,
    pub(crate) variables: Vec<Variable>,
    pub(crate) steps: Vec<Step>,
}

impl Program {
    /// Returns the number of blocks of the grid, which is a multiple of the cluster's.
    pub(crate) fn blocks(&self) -> u32 {
        let last = self.places.iter().map(|place| place.block).max().unwrap_or(0);
        (last + 1).next_multiple_of(self.cluster.unwrap_or(1))
    }

    /// Returns the number of warps of each block.
    pub(crate) fn warps(&self) -> u32 {
        self.places.iter().map(|place| place.warp).max().unwrap_or(0) + 1
    }

    /// Returns whether a scope of the one thread includes the other.
    pub(crate) fn includes(&self, scope: MemoryScope, [one, other]: [usize; 2]) -> bool {
        let [one, other] = [one, other].map(|thread| self.places[thread].block);
        let cluster = self.cluster.unwrap_or(1);
        scope >= MemoryScope::around(one == other, one / cluster == other / cluster, true)
    }

    /// Returns the threads that a barrier synchronises.
    pub(crate) fn members(&self, barrier: Barrier) -> Vec<usize> {
        let is_member = |place: &Place| match barrier {
            Barrier::Threads { block } => place.block == block,
            Barrier::Named { block, warps } => place.block == block && warps.contains(&place.warp),
            Barrier::Warp { block, warp } => place.block == block && place.warp == warp,
            Barrier::Cluster => place.block < self.cluster.unwrap_or(1),
        };
        (0..self.places.len()).filter(|&thread| is_member(&self.places[thread])).collect()
    }

    /// Returns the access of a step, if it is one.
    pub(crate) fn access(&self, step: usize) -> Option<Access> {
        match self.steps[step] {
            Step::Of { operation: Operation::Access(access), .. } => Some(access),
            Step::Of { operation: Operation::Fence, .. } | Step::Barrier(_) => None,
        }
    }

    /// Returns the steps that read, in order.
    pub(crate) fn reads(&self) -> Vec<usize> {
        let reads = |step: &usize| self.access(*step).is_some_and(|access| access.action.reads());
        (0..self.steps.len()).filter(reads).collect()
    }
}
