//! Asynchronous copies, with operands as registers.

use tma_model::ReduceOp;

use crate::isa::{Address, Guard, Reg, Space};
use crate::tensor_map::{DataType, Field};

/// `cp.async` without `.bulk`, and the operations that track its completion.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CopyAsyncOp {
    Copy(CopyCode),
    /// `cp.async.commit_group`.
    Commit,
    /// `cp.async.wait_group`; without a number, `wait_all`.
    Wait(Option<u32>),
    /// `cp.async.mbarrier.arrive`.
    Arrive {
        space: Space,
        address: Address,
        no_increment: bool,
    },
}

/// Tensor and bulk copies, operations on tensor maps, and bulk groups.
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

/// A tensor copy, with operands as registers.
#[derive(Clone, Debug)]
pub(crate) struct TensorCode {
    pub(crate) map: Address,
    pub(crate) at: Vec<Reg>,
    pub(crate) im2col: bool,
    pub(crate) offsets: Vec<Reg>,
    pub(crate) action: TensorCodeAction,
}

/// The kind of tensor copy, with operands as registers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TensorCodeAction {
    Load { space: Space, tile: Address, barrier: Address, multicast: Option<Reg> },
    Store { tile: Address },
    Reduce { tile: Address, with: ReduceOp },
    Prefetch,
}

/// An operation on a tensor map itself.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MapCode {
    /// `tensormap.replace`.
    Replace { space: Space, address: Address, field: Field, value: Reg },
    /// `tensormap.cp_fenceproxy`: from shared to global memory.
    Copy { to: Address, from: Address },
    /// `fence.proxy.tensormap::generic.acquire`.
    Acquire { address: Address },
}

/// A bulk copy, with operands as registers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BulkCode {
    Load { space: Space, to: Address, from: Address, bytes: Reg, barrier: Address, multicast: Option<Reg> },
    Store { to: Address, from: Address, bytes: Reg, reduce: Option<EngineReduction> },
    ToCluster { to: Address, from: Address, bytes: Reg, barrier: Address, reduce: Option<EngineReduction> },
    Prefetch { from: Address, bytes: Reg },
}

/// The reduction with which a copy engine combines its source with its destination.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EngineReduction {
    pub(crate) op: ReduceOp,
    pub(crate) element: DataType,
}

/// `st.async` and `red.async`, with operands as registers.
#[derive(Clone, Debug)]
pub(crate) struct RemoteCode {
    pub(crate) space: Space,
    pub(crate) to: Address,
    /// One, two or four values of `bytes` bytes each.
    pub(crate) values: Vec<Reg>,
    pub(crate) bytes: u32,
    pub(crate) barrier: Address,
    pub(crate) reduce: Option<EngineReduction>,
}

/// `cp.async`, with operands as registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopyCode {
    pub(crate) to: Address,
    pub(crate) from: Address,
    /// The number of bytes written: 4, 8 or 16.
    pub(crate) bytes: u32,
    /// The number of them that are read; all if absent.
    pub(crate) read: Option<Reg>,
    /// `ignore-src`: nothing is read if this holds.
    pub(crate) ignore: Option<Guard>,
}
