//! What instructions are: types, operands and operations, as decoding makes them and execution takes
//! them.
//!
//! Nothing here decodes text or changes a state: the one imports this module, and so does the other.

mod asynchronous;
mod comparison;
pub(crate) mod float;
mod integer;
mod op;
mod ordering;
mod touches;
mod types;

pub(crate) use asynchronous::{
    BulkCode, CopyCode, MapCode, Mbarrier, RemoteCode, TensorCode, TensorCodeAction,
};
pub(crate) use comparison::Comparison;
pub(crate) use integer::{BinaryOp, Integer, Permutation, TernaryOp, UnaryOp};
pub(crate) use op::{
    Access, AtomicOp, AtomicVector, BlockBarrier, BlockVote, Carry, CarryOp, Collective, Combine, Compared,
    Conversion, MatrixCode, Numeric, Op, PairConversion, Redux, Shuffle, Truth, Vote, WideAtomic,
};
pub use ordering::{Fence, FencedMemory, Order, Scope, Semantics, Site, Space};
pub(crate) use touches::{Manner, Touch};
pub(crate) use types::Type;

/// Where an operand's lanes are: a register of the warp, or (with the top bit) a constant of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Row(pub(crate) u32);

impl Row {
    /// The bit that says constant.
    pub(crate) const CONSTANT: u32 = 1 << 31;
    /// The register that takes what nobody reads (`_`).
    pub(crate) const SINK: Row = Row(0);
    /// The carry flag (`.cc`).
    pub(crate) const CARRY: Row = Row(1);
    /// Registers that every program has.
    pub(crate) const FIRST_FREE: u32 = 2;

    /// The row of the upper half of a register of 128 bits.
    pub(crate) fn upper(self) -> Row {
        if self == Row::SINK { self } else { Row(self.0 + 1) }
    }
}

/// A kernel, ready to run.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) code: Vec<Inst>,
    /// Where it starts.
    pub(crate) entry: u32,
    /// Registers of a thread.
    pub(crate) rows: u32,
    pub(crate) constants: Vec<Constant>,
    /// The special registers that are read, and the register that holds each.
    pub(crate) specials: Vec<(Row, Special)>,
    /// Offset and size of each parameter.
    pub(crate) params: Vec<Place>,
    pub(crate) param_bytes: u32,
    /// Local memory of a thread.
    pub(crate) local_bytes: u32,
    /// Shared memory of a block, without the dynamic part, which starts here.
    pub(crate) shared_bytes: u32,
    pub(crate) required_threads: Option<[u32; 3]>,
    pub(crate) most_threads: Option<[u32; 3]>,
    pub(crate) required_cluster: Option<[u32; 3]>,
}

impl Program {
    /// See [`Kernel::shares_memory`](crate::Kernel::shares_memory).
    pub(crate) fn shares_memory(&self) -> bool {
        self.code.iter().any(|inst| inst.op.is_ordered_in_global() || inst.op.reduces_global())
    }
}

impl Op {
    /// Whether it touches what may be global memory, in a way that is stronger than weak.
    fn is_ordered_in_global(&self) -> bool {
        self.touches().is_some_and(|touch| {
            let is_global = matches!(touch.memory, Memory::Machine(Space::Global | Space::Generic));
            is_global && (touch.manner == Manner::Atomic || touch.order != Order::Weak)
        })
    }

    /// Whether it is a copy that combines with global memory.
    fn reduces_global(&self) -> bool {
        let of_box = |code: &TensorCode| matches!(code.action, TensorCodeAction::Reduce { .. });
        let of_bytes = |code: &BulkCode| matches!(code, BulkCode::Store { reduce: Some(_), .. });
        matches!(self, Op::Tensor(code) if of_box(code)) || matches!(self, Op::Bulk(code) if of_bytes(code))
    }
}

/// Bytes of local or parameter memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
}

/// The value of a constant operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Constant {
    Bits(u64),
    /// The address of a variable in global memory, known at the launch, plus an offset.
    Variable(u32, i64),
    /// The address of dynamic shared memory, known when the static part is, plus an offset.
    DynamicShared(i64),
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
    Zero,
}

/// An instruction.
#[derive(Clone, Debug)]
pub(crate) struct Inst {
    pub(crate) op: Op,
    pub(crate) guard: Option<Guard>,
    pub(crate) site: Site,
}

/// The predicate that decides which lanes take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Guard {
    pub(crate) row: Row,
    pub(crate) negated: bool,
}

/// `[base + offset]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) base: Row,
    pub(crate) offset: i64,
}

/// Which memory an access goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    Machine(Space),
    Local,
    Param,
}
