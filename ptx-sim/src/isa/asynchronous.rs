//! Instructions on mbarriers, tensor maps and asynchronous copies, before their operands are read.

use super::{Address, Guard, Row};
use super::{Semantics, Space};
use crate::tensor_map::{DataType, Field};
use tma_model::ReduceOp as Reduction;

/// An operation on an mbarrier.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mbarrier {
    Init {
        count: Row,
    },
    Invalidate,
    Arrive {
        count: Row,
        expect_tx: Option<Row>,
        drop: bool,
        no_complete: bool,
        semantics: Semantics,
        state: Row,
    },
    ExpectTx {
        bytes: Row,
    },
    CompleteTx {
        bytes: Row,
    },
    TestWait {
        phase: Row,
        parity: bool,
        semantics: Semantics,
        done: Row,
        may_block: bool,
    },
}

/// A tensor copy, before its operands are read.
#[derive(Clone, Debug)]
pub(crate) struct TensorCode {
    pub(crate) map: Address,
    pub(crate) at: Vec<Row>,
    pub(crate) im2col: bool,
    pub(crate) offsets: Vec<Row>,
    pub(crate) action: TensorCodeAction,
}

/// What a tensor copy does, before its operands are read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TensorCodeAction {
    Load { space: Space, tile: Address, barrier: Address, multicast: Option<Row> },
    Store { tile: Address },
    Reduce { tile: Address, with: Reduction },
    Prefetch,
}

/// What is done with a tensor map itself.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MapCode {
    /// `tensormap.replace`.
    Replace { space: Space, address: Address, field: Field, value: Row },
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
        bytes: Row,
        barrier: Address,
        multicast: Option<Row>,
    },
    Store {
        to: Address,
        from: Address,
        bytes: Row,
        reduce: Option<(Reduction, DataType)>,
    },
    ToCluster {
        to: Address,
        from: Address,
        bytes: Row,
        barrier: Address,
        reduce: Option<(Reduction, DataType)>,
    },
    Prefetch {
        from: Address,
        bytes: Row,
    },
}

/// `st.async` and `red.async`, before their operands are read.
#[derive(Clone, Debug)]
pub(crate) struct RemoteCode {
    pub(crate) space: Space,
    pub(crate) to: Address,
    /// Values of `bytes` each: 1, 2 or 4.
    pub(crate) values: Vec<Row>,
    pub(crate) bytes: u32,
    pub(crate) barrier: Address,
    pub(crate) reduce: Option<(Reduction, DataType)>,
}

/// `cp.async`, before its operands are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopyCode {
    pub(crate) to: Address,
    pub(crate) from: Address,
    /// Bytes that are written: 4, 8 or 16.
    pub(crate) bytes: u32,
    /// How many of them are read; all if it is not said.
    pub(crate) read: Option<Row>,
    /// `ignore-src`: none is read where this holds.
    pub(crate) ignore: Option<Guard>,
}
