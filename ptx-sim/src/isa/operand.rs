//! Operands: predicates, addresses, constants and special registers.

use super::{Reg, Space, VariableId};

/// The predicate that decides which lanes take part in an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Guard {
    pub(crate) reg: Reg,
    pub(crate) negated: bool,
}

/// `[base + offset]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) base: Reg,
    pub(crate) offset: i64,
}

/// The memory that an access goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    Machine(Space),
    Local,
    Param,
}

/// The value of a constant operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Constant {
    Bits(u64),
    /// The address of a variable in global memory, known at the launch, plus an offset.
    Variable(VariableId, i64),
}

/// A special register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    Tid(usize),
    Ntid(usize),
    Ctaid(usize),
    Nctaid(usize),
    ClusterId(usize),
    NclusterId(usize),
    ClusterCtaid(usize),
    ClusterNctaid(usize),
    ClusterCtarank,
    ClusterNctarank,
    IsExplicitCluster,
    Laneid,
    Warpid,
    Nwarpid,
    LanemaskEq,
    LanemaskLe,
    LanemaskLt,
    LanemaskGe,
    LanemaskGt,
    Smid,
    Nsmid,
    Gridid,
    DynamicSharedBytes,
    TotalSharedBytes,
    AggregatedSharedBytes,
    ReservedSharedBytes,
    /// The address of this offset in the block's shared memory.
    Shared(u32),
    /// The address of dynamic shared memory, known once the size of the static part is, plus an
    /// offset.
    DynamicShared(i64),
    Zero,
}
