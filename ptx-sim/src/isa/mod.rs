//! The instruction set: types, operands and operations. Decoding produces them from text, and
//! execution interprets them; neither depends on the other.
#![warn(clippy::wildcard_enum_match_arm)]

mod class;
mod comparison;
mod computed;
mod facts;
pub(crate) mod float;
mod index;
mod integer;
mod op;
mod operand;
mod ordering;
mod program;
#[cfg(test)]
mod tests;
mod thread_access;
mod types;

pub use class::{Class, StateSpace};
pub(crate) use comparison::Comparison;
pub(crate) use facts::{Effect, Facts, LaneAccess, Synchronization, Wait};
pub(crate) use index::{Label, Pc, Reg, VariableId, indices};
pub(crate) use integer::{BinaryOp, Integer, PackedOp, Permutation, TernaryOp, UnaryOp};
pub(crate) use op::{
    Access, AddressOp, Alu, Assertion, Atomic, AtomicOp, AtomicVector, BarrierOp, BarrierReduction, Binary,
    BlockBarrier, BlockVote, BulkCode, Carry, CarryOp, Collective, Combine, Combined, Compare, ComparePair,
    Compared, ControlOp, Conversion, CopyAsyncOp, CopyCode, EngineReduction, FloatCode, LeftCode, MapCode,
    MatrixCode, MbarrierAction, MbarrierOp, MemoryOp, MetadataCode, MmaCode, MmaDoubleCode, MultiplyCode,
    Numeric, Op, PairConversion, Redux, RemoteCode, Shuffle, SpanCode, TensorCode, TensorCodeAction, Ternary,
    TmaOp, Truth, Unary, Vote, WarpOp, WarpgroupOp, WideAtomic, Window,
};
pub(crate) use operand::{Address, Constant, Guard, Memory, Special};
pub(crate) use ordering::MemoryFence;
pub use ordering::{AccessOrder, Fence, FencedMemory, MemoryScope, Order, Scope, Semantics, Site, Space};
pub(crate) use program::{Inst, Loads, Program, Slot, Values};
pub use tma_model::shared_name::SharedName;
pub(crate) use types::Type;
