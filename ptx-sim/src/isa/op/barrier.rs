//! Barriers of blocks and clusters, and mbarriers.

use crate::isa::{Address, Guard, Order, Reg, Semantics, Space};

/// An operation on a barrier of the block or the cluster.
#[derive(Clone, Debug)]
pub(crate) enum BarrierOp {
    /// `bar` and `barrier`.
    Block(BlockBarrier),
    /// `barrier.cluster.arrive`.
    ClusterArrive { order: Order, aligned: bool },
    /// `barrier.cluster.wait`.
    ClusterWait(Order),
}

/// An arrival at a barrier of the block, or a wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockBarrier {
    pub(crate) id: Reg,
    pub(crate) threads: Option<Reg>,
    pub(crate) arrive_only: bool,
    pub(crate) aligned: bool,
    /// The reduction of `.red`.
    pub(crate) reduction: Option<BarrierReduction>,
}

/// A vote among the threads that arrive (`barrier.red`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct BarrierReduction {
    pub(crate) vote: BlockVote,
    pub(crate) predicate: Guard,
    pub(crate) d: Reg,
}

/// The operator of `barrier.red`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockVote {
    Count,
    All,
    Any,
}

/// The operations of `mbarrier`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MbarrierOp {
    /// An operation on the mbarrier at an address.
    At { space: Space, address: Address, action: MbarrierAction },
    /// `mbarrier.pending_count`, of a state.
    PendingCount { d: Reg, state: Reg },
}

/// An operation on an mbarrier.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MbarrierAction {
    Init {
        count: Reg,
    },
    Invalidate,
    Arrive {
        count: Reg,
        expect_tx: Option<Reg>,
        drop: bool,
        no_complete: bool,
        semantics: Semantics,
        state: Reg,
    },
    ExpectTx {
        bytes: Reg,
    },
    CompleteTx {
        bytes: Reg,
    },
    TestWait {
        phase: Reg,
        parity: bool,
        semantics: Semantics,
        done: Reg,
        may_block: bool,
    },
}
