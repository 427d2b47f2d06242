//! Instruction classes, for counting.

use super::{Memory, Space};

/// The class of an instruction. Every instruction has exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Integer arithmetic, logic, moves, addresses and special registers.
    Integer,
    /// Floating-point arithmetic and comparisons.
    Float,
    /// `cvt`.
    Convert,
    /// `ld`, with the state space that the instruction names.
    Load(StateSpace),
    /// `st`, likewise.
    Store(StateSpace),
    /// `atom` and `red`, likewise.
    Atomic(StateSpace),
    /// `cp.async`, `cp.async.bulk`, `cp.async.bulk.tensor`, `cp.reduce.async.bulk`, `st.async`,
    /// `red.async`.
    Copy,
    /// The commits and waits of bulk groups and of `cp.async` groups.
    BulkGroup,
    /// `mbarrier`. A wait counts each time that it is tried.
    Mbarrier,
    /// `bar`, `barrier`, `barrier.cluster`. A wait counts each time that it is tried.
    Barrier,
    /// `fence` and `membar`.
    Fence,
    /// Operations across the lanes of a warp: `shfl`, `vote`, `match`, `redux`, `elect`,
    /// `bar.warp.sync`, `ldmatrix`, `stmatrix`, `movmatrix`.
    Warp,
    /// `wgmma` and `mma.sync`. A wait counts each time that it is tried.
    Tensor,
    /// Branches, calls, returns, and instructions without an effect on the thread.
    Control,
}

/// The state space that an instruction names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StateSpace {
    /// `.global`.
    Global,
    /// `.shared::cta`, or `.shared` alone.
    Shared,
    /// `.shared::cluster`.
    Cluster,
    /// No state space: a generic address, whose value determines the memory.
    Generic,
    /// `.local`.
    Local,
    /// `.param`.
    Param,
}

impl From<Memory> for StateSpace {
    fn from(memory: Memory) -> Self {
        match memory {
            Memory::Machine(Space::Global) => Self::Global,
            Memory::Machine(Space::Shared) => Self::Shared,
            Memory::Machine(Space::SharedCluster) => Self::Cluster,
            Memory::Machine(Space::Generic) => Self::Generic,
            Memory::Local => Self::Local,
            Memory::Param => Self::Param,
        }
    }
}

impl From<Space> for StateSpace {
    fn from(space: Space) -> Self {
        Memory::Machine(space).into()
    }
}
