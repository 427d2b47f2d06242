//! Strong accesses: loads, stores and atomic operations with an order and a scope.

use super::{AtomicOp, Expr, LocalId, MemoryScope, Order, ParamId};

/// A strong access to an element; traps out of bounds. Source: PTX ISA, "ld", "st", "atom", "red".
#[derive(Clone, Debug)]
pub struct Atomic {
    /// The memory that it is of.
    pub place: AtomicPlace,
    /// The element; of a vector, the first.
    pub index: Expr,
    /// The operation on it.
    pub access: AtomicAccess,
    /// How it orders the thread's other accesses.
    pub order: Order,
    /// Between whom.
    pub scope: MemoryScope,
}

/// The memory of a strong access.
#[derive(Clone, Debug)]
pub enum AtomicPlace {
    /// A slice of global memory.
    Global(ParamId),
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
    /// `dest = element` and `element = op(dest, value)`, at once.
    Update { dest: LocalId, op: AtomicOp, value: Expr },
    /// `dest = element` and `element = new` if the bits of `dest` are those of `current`, at once.
    CompareExchange { dest: LocalId, current: Expr, new: Expr },
    /// Adds the elements of `value`, an array, to as many in global memory, each at once.
    AddVector { value: Expr },
}

impl Atomic {
    /// The local that gets what was there.
    pub fn dest(&self) -> Option<LocalId> {
        match self.access {
            AtomicAccess::Load { dest }
            | AtomicAccess::Update { dest, .. }
            | AtomicAccess::CompareExchange { dest, .. } => Some(dest),
            AtomicAccess::Store { .. } | AtomicAccess::AddVector { .. } => None,
        }
    }

    /// Whether it writes.
    pub fn writes(&self) -> bool {
        match self.access {
            AtomicAccess::Load { .. } => false,
            AtomicAccess::Store { .. }
            | AtomicAccess::Update { .. }
            | AtomicAccess::CompareExchange { .. }
            | AtomicAccess::AddVector { .. } => true,
        }
    }

    /// The shared array that it is of.
    pub fn shared(&self) -> Option<&Expr> {
        if let AtomicPlace::Shared(array) = &self.place { Some(array) } else { None }
    }
}
