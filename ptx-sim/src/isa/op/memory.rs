//! Loads, stores, atomic operations, and address computations.

use crate::isa::float::{FloatType, Mode};
use crate::isa::{AccessOrder, Address, Integer, Memory, Reg, Space};

/// A memory operation of each lane.
#[derive(Clone, Debug)]
pub(crate) enum MemoryOp {
    Load(Access),
    Store(Access),
    Atomic(Atomic),
    AtomicVector(Box<AtomicVector>),
    WideAtomic(Box<WideAtomic>),
    /// `applypriority` or `discard` of 128 bytes.
    CacheLine {
        address: Address,
        discards: bool,
    },
    /// Copies a parameter or a result of a function within local memory.
    CopyLocal {
        from: u32,
        to: u32,
        bytes: u32,
    },
}

/// A load or store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) memory: Memory,
    pub(crate) order: AccessOrder,
    /// Bytes of one element.
    pub(crate) bytes: u32,
    /// The number of elements: 1, 2, 4 or 8.
    pub(crate) count: u32,
    pub(crate) address: Address,
    pub(crate) registers: [Reg; 8],
    /// Sign extension of a load: the bits of the type and of the register.
    pub(crate) extend: Option<(u32, u32)>,
    /// Whether the elements together form one scalar, as with `.b128`.
    pub(crate) is_scalar: bool,
    /// Whether it is a load through the non-coherent path, `ld.global.nc`.
    pub(crate) is_non_coherent: bool,
}

impl Access {
    /// Returns the size of the access, with all elements of a vector.
    pub(crate) fn total_bytes(&self) -> u32 {
        self.bytes * self.count
    }

    /// Whether each element is a separate access, as in strong vector accesses (PTX ISA, "Vector
    /// Data-types"). For weak accesses this makes no difference.
    pub(crate) fn is_by_elements(&self) -> bool {
        self.count > 1 && !self.is_scalar && self.order.order.is_strong()
    }
}

/// `atom` or `red` of one element.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Atomic {
    pub(crate) op: AtomicOp,
    pub(crate) memory: Memory,
    pub(crate) order: AccessOrder,
    pub(crate) bytes: u32,
    /// Whether the instruction is `atom`. Otherwise it is `red`, which acquires nothing.
    pub(crate) reads: bool,
    pub(crate) d: Reg,
    pub(crate) address: Address,
    pub(crate) sources: [Reg; 2],
}

/// The operation that combines the operand with the contents of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtomicOp {
    Add(Integer),
    Min(Integer),
    Max(Integer),
    AddFloat(FloatType, Mode, bool),
    MinFloat(FloatType, bool),
    MaxFloat(FloatType, bool),
    And,
    Or,
    Xor,
    Exchange,
    CompareAndSwap,
    Inc,
    Dec,
}

/// `atom` or `red` of a vector. Each element is atomic, the vector as a whole is not.
#[derive(Clone, Debug)]
pub(crate) struct AtomicVector {
    pub(crate) op: AtomicOp,
    pub(crate) space: Space,
    pub(crate) order: AccessOrder,
    /// Bytes of one element.
    pub(crate) bytes: u32,
    pub(crate) address: Address,
    pub(crate) d: Vec<Reg>,
    pub(crate) sources: Vec<Reg>,
}

/// `atom.exch` of 128 bits or, if `compare` is present, `atom.cas`. Each operand occupies two
/// consecutive registers.
#[derive(Clone, Debug)]
pub(crate) struct WideAtomic {
    pub(crate) space: Space,
    pub(crate) order: AccessOrder,
    pub(crate) address: Address,
    pub(crate) d: Reg,
    pub(crate) compare: Option<Reg>,
    pub(crate) new: Reg,
}

/// An address computation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AddressOp {
    /// `cvta`: from the address of a state space to a generic address, or back.
    Convert { window: Window, to_generic: bool, d: Reg, a: Reg },
    /// `isspacep`.
    IsSpace { space: Memory, constant: bool, d: Reg, a: Reg },
    /// `mapa`.
    MapToRank { generic: bool, d: Reg, address: Reg, rank: Reg },
    /// `getctarank`.
    RankOf { generic: bool, d: Reg, address: Reg },
}

/// The range of generic addresses that maps to a state space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Window {
    /// Global and constant memory, at their own addresses.
    Global,
    Shared,
    Local,
    Param,
}
