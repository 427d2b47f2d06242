//! Programs of a few threads that access the same memory and synchronise.

use tma_model::sync::{Memory, MemoryScope, Order};

/// Where a thread runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) block: u32,
    pub(crate) warp: u32,
    pub(crate) lane: u32,
}

/// An element of memory, 0 at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    pub(crate) memory: Memory,
    /// The block whose threads access it, if it is in shared memory.
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
    /// The value written where `old` was read. A comparison that fails writes `old` back (PTX ISA,
    /// "atom": `cas(r, s, t) = (r == s) ? t : r`).
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

/// What an access does to its variable.
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

/// An access to a variable. The scope of a weak one means nothing.
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

/// A condition: that a step of the same thread has read this value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Guard {
    pub(crate) step: usize,
    pub(crate) value: u32,
}

/// Barriers, by those who take part.
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

/// A program. Each thread does its own steps in the order in which they are listed; between those
/// of different threads the list has no order, but at barriers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) places: Vec<Place>,
    /// Blocks of a cluster, if there are clusters.
    pub(crate) cluster: Option<u32>,
    pub(crate) variables: Vec<Variable>,
    pub(crate) steps: Vec<Step>,
}

impl Program {
    /// Blocks of the grid, whole clusters.
    pub(crate) fn blocks(&self) -> u32 {
        let last = self.places.iter().map(|place| place.block).max().unwrap_or(0);
        (last + 1).next_multiple_of(self.cluster.unwrap_or(1))
    }

    /// Warps of each block.
    pub(crate) fn warps(&self) -> u32 {
        self.places.iter().map(|place| place.warp).max().unwrap_or(0) + 1
    }

    /// Whether a scope of a thread includes another one.
    pub(crate) fn includes(&self, scope: MemoryScope, [one, other]: [usize; 2]) -> bool {
        let [one, other] = [one, other].map(|thread| self.places[thread].block);
        let cluster = self.cluster.unwrap_or(1);
        scope.includes(one == other, one / cluster == other / cluster)
    }

    /// The threads that a barrier synchronises.
    pub(crate) fn members(&self, barrier: Barrier) -> Vec<usize> {
        let is_member = |place: &Place| match barrier {
            Barrier::Threads { block } => place.block == block,
            Barrier::Named { block, warps } => place.block == block && warps.contains(&place.warp),
            Barrier::Warp { block, warp } => place.block == block && place.warp == warp,
            Barrier::Cluster => place.block < self.cluster.unwrap_or(1),
        };
        (0..self.places.len()).filter(|&thread| is_member(&self.places[thread])).collect()
    }

    /// The access of a step, if it is one.
    pub(crate) fn access(&self, step: usize) -> Option<Access> {
        match self.steps[step] {
            Step::Of { operation: Operation::Access(access), .. } => Some(access),
            Step::Of { operation: Operation::Fence, .. } | Step::Barrier(_) => None,
        }
    }

    /// The steps that read, in their order.
    pub(crate) fn reads(&self) -> Vec<usize> {
        let reads = |step: &usize| self.access(*step).is_some_and(|access| access.action.reads());
        (0..self.steps.len()).filter(reads).collect()
    }
}
