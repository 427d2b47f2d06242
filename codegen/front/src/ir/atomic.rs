//! Strong accesses: loads, stores and atomic operations with an order and a scope.

use super::{AtomicOp, Expr, GlobalRef, LocalId, MemoryScope, Order};

/// A strong access to an element. Traps out of bounds. Source: PTX ISA, "ld", "st", "atom", "red".
#[derive(Clone, Debug)]
pub struct Atomic {
    /// The memory that is accessed.
    pub memory: AtomicMemory,
    /// The index of the element, or of the first one of a vector.
    pub index: Expr,
    /// The operation.
    pub access: AtomicAccess,
    /// The memory order, relative to the thread's other accesses.
    pub order: Order,
    /// The scope of that order.
    pub scope: MemoryScope,
}

/// The memory of a strong access.
#[derive(Clone, Debug)]
pub enum AtomicMemory {
    /// A slice of global memory.
    Global(GlobalRef),
    /// A shared array, which may be `Remote`.
    Shared(Expr),
}

/// The operation of a strong access on an element.
#[allow(missing_docs)] // each variant's own line names its fields
#[derive(Clone, Debug)]
pub enum AtomicAccess {
    /// `dest = element`.
    Load { dest: LocalId },
    /// `element = value`.
    Store { value: Expr },
    /// `dest = element` and `element = op(dest, value)`, atomically.
    Update { dest: LocalId, op: AtomicOp, value: Expr },
    /// `dest = element`, then `element = new` if the bits of `dest` equal those of `current`,
    /// atomically.
    CompareExchange { dest: LocalId, current: Expr, new: Expr },
    /// Adds the elements of `value`, an array, to as many consecutive elements in global memory.
    /// Each addition is atomic by itself.
    AddVector { value: Expr },
}

impl Atomic {
    /// Returns the local that receives the previous value.
    pub fn dest(&self) -> Option<LocalId> {
        match self.access {
            AtomicAccess::Load { dest }
            | AtomicAccess::Update { dest, .. }
            | AtomicAccess::CompareExchange { dest, .. } => Some(dest),
            AtomicAccess::Store { .. } | AtomicAccess::AddVector { .. } => None,
        }
    }

    /// Whether it may write to memory.
    pub fn writes(&self) -> bool {
        match self.access {
            AtomicAccess::Load { .. } => false,
            AtomicAccess::Store { .. }
            | AtomicAccess::Update { .. }
            | AtomicAccess::CompareExchange { .. }
            | AtomicAccess::AddVector { .. } => true,
        }
    }

    /// Returns the shared array that it accesses, if any.
    pub fn shared(&self) -> Option<&Expr> {
        if let AtomicMemory::Shared(array) = &self.memory { Some(array) } else { None }
    }
}
