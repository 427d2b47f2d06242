//! Accesses to global memory: by threads and by copies, with and without an order.

use std::collections::BTreeSet;

use crate::ir::{
    AtomicAccess, AtomicMemory, CopyKind, Expr, Kernel, MapEdit, ParamId, ReduceOp, Stmt, StmtKind, Type,
    visit,
};

/// An access to the memory of a parameter.
#[derive(Clone, Debug)]
pub(in crate::check) struct GlobalAccess<'k> {
    pub(in crate::check) stmt: &'k Stmt,
    pub(in crate::check) param: ParamId,
    pub(in crate::check) by_copy: bool,
    pub(in crate::check) writes: bool,
    /// Whether it has an order and a scope.
    pub(super) is_strong: bool,
    /// The index, or the coordinates.
    pub(super) at: Vec<&'k Expr>,
    /// The number of elements from the index on, if there is one index and the number is known.
    pub(super) len: Option<u32>,
}

impl<'k> GlobalAccess<'k> {
    /// Returns the access of a statement of a kernel, if it makes one.
    pub(super) fn of(kernel: &Kernel, stmt: &'k Stmt) -> Option<Self> {
        let copied = |param, writes: Option<bool>, at: Vec<&'k Expr>, len| {
            writes.map(|writes| Self { stmt, param, by_copy: true, writes, is_strong: false, at, len })
        };
        let by_threads = |param, writes, at: Vec<&'k Expr>, len| {
            Some(Self { stmt, param, by_copy: false, writes, is_strong: false, at, len })
        };
        let elements = |ty: &Type| Some(ty.elements().map_or(1, |(_, len)| len));
        if let StmtKind::TileCopy(copy) = &stmt.kind {
            let at = copy.map.index.iter().chain(&copy.at).collect();
            copied(copy.map.param, writes(&copy.kind), at, None)
        } else if let StmtKind::BulkCopy(copy) = &stmt.kind {
            let len = copy.count.as_int().and_then(|count| u32::try_from(count).ok());
            copied(copy.global, writes(&copy.kind), vec![&copy.index], len)
        } else if let StmtKind::GlobalGet { dest, global, index } = &stmt.kind {
            by_threads(*global, false, vec![index], elements(&kernel.local(*dest).ty))
        } else if let StmtKind::GlobalSet { global, index, value } = &stmt.kind {
            by_threads(*global, true, vec![index], elements(&value.ty))
        } else if let StmtKind::StoreMatrix(store) = &stmt.kind {
            by_threads(store.matrix.global, true, vec![], None)
        } else if let StmtKind::EditMap { edit: MapEdit::Publish { maps, index }, .. } = &stmt.kind {
            by_threads(*maps, true, vec![index], None)
        } else if let StmtKind::Atomic(atomic) = &stmt.kind
            && let AtomicMemory::Global(global) = atomic.memory
        {
            let len = match &atomic.access {
                AtomicAccess::AddVector { value } => elements(&value.ty),
                AtomicAccess::Load { .. }
                | AtomicAccess::Store { .. }
                | AtomicAccess::Update { .. }
                | AtomicAccess::CompareExchange { .. } => Some(1),
            };
            let access = by_threads(global, atomic.writes(), vec![&atomic.index], len);
            access.map(|access| Self { is_strong: true, ..access })
        } else {
            None
        }
    }

    /// Returns all accesses of a kernel, in the order of the source.
    pub(in crate::check) fn all(kernel: &'k Kernel) -> Vec<Self> {
        let mut all = vec![];
        visit::for_each_stmt(&kernel.body, &mut |stmt| all.extend(Self::of(kernel, stmt)));
        all
    }
}

/// Returns the operation of a statement that reduces into global memory.
pub(in crate::check) fn reduction(stmt: &Stmt) -> Option<ReduceOp> {
    if let StmtKind::TileCopy(copy) = &stmt.kind {
        reduces(&copy.kind)
    } else if let StmtKind::BulkCopy(copy) = &stmt.kind {
        reduces(&copy.kind)
    } else {
        None
    }
}

fn reduces<S>(kind: &CopyKind<S>) -> Option<ReduceOp> {
    if let CopyKind::Reduce { op, .. } = kind { Some(*op) } else { None }
}

/// Returns whether a copy writes global memory, if it accesses it at all.
fn writes<S>(kind: &CopyKind<S>) -> Option<bool> {
    match kind {
        CopyKind::Load { .. } => Some(false),
        CopyKind::Store { .. } | CopyKind::Reduce { .. } => Some(true),
        CopyKind::Prefetch => None,
    }
}

/// Returns the parameters that threads or copies write without an order. Each is assumed to write
/// elements of its own.
pub(in crate::check) fn assumed_disjoint(kernel: &Kernel) -> Vec<ParamId> {
    let accesses = GlobalAccess::all(kernel);
    let plain = accesses.iter().filter(|access| access.writes && !access.is_strong);
    plain.map(|access| access.param).collect::<BTreeSet<_>>().into_iter().collect()
}
