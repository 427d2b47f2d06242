//! Asynchronous copies, before their operands are read.

use tma_model::ReduceOp;

use crate::isa::{Address, Guard, Reg, Space};
use crate::tensor_map::{DataType, Field};

/// `cp.async` without `.bulk`, and what its completion is waited for with.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CopyAsyncOp {
    Copy(CopyCode),
    /// `cp.async.commit_group`.
    Commit,
    /// `cp.async.wait_group`, and without a number `wait_all`.
    Wait(Option<u32>),
    /// `cp.async.mbarrier.arrive`.
    Arrive {
        space: Space,
        address: Address,
        no_increment: bool,
    },
}

/// Tensor and bulk copies, what moves tensor maps, and bulk groups.
#[derive(Clone, Debug)]
pub(crate) enum TmaOp {
    Tensor(Box<TensorCode>),
    Bulk(Box<BulkCode>),
    /// `st.async` and `red.async`.
    Remote(Box<RemoteCode>),
    Map(Box<MapCode>),
    /// `cp.async.bulk.commit_group`.
    Commit,
    /// `cp.async.bulk.wait_group`.
    Wait {
        pending: u32,
        read: bool,
    },
}

/// A tensor copy, before its operands are read.
#[derive(Clone, Debug)]
pub(crate) struct TensorCode {
    pub(crate) map: Address,
    pub(crate) at: Vec<Reg>,
    pub(crate) im2col: bool,
    pub(crate) offsets: Vec<Reg>,
    pub(crate) action: TensorCodeAction,
}

/// What a tensor copy does, before its operands are read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TensorCodeAction {
    Load { space: Space, tile: Address, barrier: Address, multicast: Option<Reg> },
    Store { tile: Address },
    Reduce { tile: Address, with: ReduceOp },
    Prefetch,
}

/// What is done with a tensor map itself.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MapCode {
    /// `tensormap.replace`.
    Replace { space: Space, address: Address, field: Field, value: Reg },
    /// `tensormap.cp_fenceproxy`: from shared to global memory.
    Copy { to: Address, from: Address },
    /// `fence.proxy.tensormap::generic.acquire`.
    Acquire { address: Address },
}

/// A bulk copy, before its operands are read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BulkCode {
    Load {
        space: Space,
        to: Address,
        from: Address,
        bytes: Reg,
        barrier: Address,
        multicast: Option<Reg>,
    },
    Store {
        to: Address,
        from: Address,
        bytes: Reg,
        reduce: Option<(ReduceOp, DataType)>,
    },
    ToCluster {
        to: Address,
        from: Address,
        bytes: Reg,
        barrier: Address,
        reduce: Option<(ReduceOp, DataType)>,
    },
    Prefetch {
        from: Address,
        bytes: Reg,
    },
}

/// `st.async` and `red.async`, before their operands are read.
#[derive(Clone, Debug)]
pub(crate) struct RemoteCode {
    pub(crate) space: Space,
    pub(crate) to: Address,
    /// Values of `bytes` each: 1, 2 or 4.
    pub(crate) values: Vec<Reg>,
    pub(crate) bytes: u32,
    pub(crate) barrier: Address,
    pub(crate) reduce: Option<(ReduceOp, DataType)>,
}

/// `cp.async`, before its operands are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopyCode {
    pub(crate) to: Address,
    pub(crate) from: Address,
    /// Bytes that are written: 4, 8 or 16.
    pub(crate) bytes: u32,
    /// How many of them are read; all if it is not said.
    pub(crate) read: Option<Reg>,
    /// `ignore-src`: none is read where this holds.
    pub(crate) ignore: Option<Guard>,
}
