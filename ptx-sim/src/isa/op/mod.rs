//! Operations, by family. Decoding creates them, and each family is executed by a module of its
//! own.

mod alu;
mod barrier;
mod control;
mod copy;
mod memory;
mod warp;
mod warpgroup;

pub(crate) use alu::{
    Alu, Binary, Carry, CarryOp, Combine, Combined, Compare, ComparePair, Compared, Conversion, FloatCode,
    Numeric, PairConversion, Ternary, Truth, Unary,
};
pub(crate) use barrier::{BarrierOp, BarrierReduction, BlockBarrier, BlockVote, MbarrierAction, MbarrierOp};
pub(crate) use control::{Assertion, ControlOp, SpanCode};
pub(crate) use copy::{
    BulkCode, CopyAsyncOp, CopyCode, EngineReduction, MapCode, RemoteCode, TensorCode, TensorCodeAction,
    TmaOp,
};
pub(crate) use memory::{Access, AddressOp, Atomic, AtomicOp, AtomicVector, MemoryOp, WideAtomic, Window};
pub(crate) use warp::{Collective, MatrixCode, MmaCode, MmaDoubleCode, Redux, Shuffle, Vote, WarpOp};
pub(crate) use warpgroup::{LeftCode, MetadataCode, MultiplyCode, WarpgroupOp};

use super::{Fence, MemoryFence, Pc};

/// The operation of an instruction.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// Computes registers from registers.
    Alu(Alu),
    /// Computes with addresses.
    Address(AddressOp),
    /// Loads, stores and atomic operations of each lane.
    Memory(MemoryOp),
    /// Operations across the lanes of a warp.
    Warp(WarpOp),
    /// Operations of the warps of a warpgroup.
    Warpgroup(WarpgroupOp),
    /// Barriers of a block and of a cluster.
    Barrier(BarrierOp),
    Mbarrier(MbarrierOp),
    /// All fences except memory fences.
    Fence(Fence),
    /// Orders the reads and writes of a thread.
    MemoryFence(MemoryFence),
    /// `cp.async` without `.bulk`.
    CopyAsync(CopyAsyncOp),
    /// Tensor and bulk copies, and the operations that belong to them.
    Tma(TmaOp),
    /// Decides where a lane continues.
    Control(ControlOp),
}

impl Op {
    /// Returns the instructions that the operation may branch to.
    pub(crate) fn targets(&self) -> &[Pc] {
        match self {
            Op::Control(control) => control.targets(),
            Op::Alu(_)
            | Op::Address(_)
            | Op::Memory(_)
            | Op::Warp(_)
            | Op::Warpgroup(_)
            | Op::Barrier(_)
            | Op::Mbarrier(_)
            | Op::Fence(_)
            | Op::MemoryFence(_)
            | Op::CopyAsync(_)
            | Op::Tma(_) => &[],
        }
    }
}
