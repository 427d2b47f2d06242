//! Accesses to global memory: by threads and by copies, with and without an order.

use std::collections::BTreeSet;

use tma_front::ir::{
    Accessor, CopyKind, Expr, ExprKind, Kernel, MemoryAccess, ParamId, ParamKind, Presence, ReduceOp, Stmt,
    StmtKind, TeamNumber, visit,
};

/// An access to the memory of a parameter.
#[derive(Clone, Debug)]
pub(crate) struct GlobalAccess<'k> {
    pub(crate) stmt: &'k Stmt,
    /// The parameter that holds the memory: the slices of all ranks for this rank's own.
    pub(crate) param: ParamId,
    /// Whether the memory may be that of another rank.
    pub(super) is_of_peer: bool,
    pub(crate) by_copy: bool,
    pub(crate) writes: bool,
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
        stmt.facts().accesses.into_iter().find_map(|access| {
            let of = access.object.global()?;
            let len = access.elements.count(kernel);
            let MemoryAccess { at, by, writes, is_strong, .. } = access;
            let by_copy = by == Accessor::Copy;
            let is_of_peer = is_of_peer(kernel, of, &at);
            let param = kernel.holder_of(of);
            Some(Self { stmt, param, is_of_peer, by_copy, writes, is_strong, at, len })
        })
    }

    /// Returns all accesses of a kernel, in the order of the source.
    pub(crate) fn all(kernel: &'k Kernel) -> Vec<Self> {
        let mut all = vec![];
        visit::for_each_stmt(&kernel.body, &mut |stmt| all.extend(Self::of(kernel, stmt)));
        all
    }
}

/// Whether an access to this location of a parameter's memory may be one to another rank's. The
/// first part of the location is the rank, if there are several.
fn is_of_peer(kernel: &Kernel, param: ParamId, at: &[&Expr]) -> bool {
    let has_ranks =
        matches!(kernel.param(param).kind(), Some(ParamKind::PeerGlobals(_) | ParamKind::PeerMaps(_)));
    let is_own = |rank: &&Expr| {
        let ExprKind::Param(id) = rank.kind else { return false };
        kernel.param(id).presence == Presence::Team(TeamNumber::Rank)
    };
    has_ranks && !at.first().is_some_and(is_own)
}

/// Returns the operation of a statement that reduces into global memory.
pub(crate) fn reduction(stmt: &Stmt) -> Option<ReduceOp> {
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

/// Returns the parameters that threads or copies write without an order. Each is assumed to write
/// elements of its own.
pub(crate) fn assumed_disjoint(kernel: &Kernel) -> Vec<ParamId> {
    let accesses = GlobalAccess::all(kernel);
    let plain = accesses.iter().filter(|access| access.writes && !access.is_strong);
    plain.map(|access| access.param).collect::<BTreeSet<_>>().into_iter().collect()
}
