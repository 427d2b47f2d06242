//! Reads of global memory whose values the same threads write to shared memory, before they meet others:
//! then they are over. Of others only a use tells, which ptxas may put as late as it likes.

use crate::check::protocol::slice::Slice;
use crate::ir::{
    AtomicAccess, AtomicPlace, BinaryOp, Block, Expr, ExprKind, Kernel, LocalId, Stmt, StmtId, StmtKind,
    visit,
};
use crate::quick::{QuickMap, QuickSet};

/// Whether threads have used what they read, when others know that they have come further.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::check::protocol) enum Used {
    /// Nothing asks for it in time.
    #[default]
    Never,
    /// It reaches shared memory, or a condition, and it is not known when.
    Maybe,
    Surely,
}

/// The reads of memory that copies access, too.
pub(super) fn used(kernel: &Kernel, slice: &Slice) -> QuickMap<StmtId, Used> {
    let mut times: QuickMap<LocalId, usize> = QuickMap::default();
    visit::for_each_stmt(&kernel.body, &mut |stmt| {
        let given = if let StmtKind::Assign { local, .. } = &stmt.kind {
            Some(*local)
        } else if let StmtKind::GlobalGet { dest, .. } = &stmt.kind {
            Some(*dest)
        } else {
            None
        };
        if let Some(local) = given {
            *times.entry(local).or_default() += 1;
        }
    });
    let mut walk = Walk { kernel, slice, times, found: QuickMap::default() };
    walk.block(&kernel.body, &[]);
    walk.found
}

struct Walk<'a> {
    kernel: &'a Kernel,
    slice: &'a Slice,
    /// How often variables are given a value.
    times: QuickMap<LocalId, usize>,
    found: QuickMap<StmtId, Used>,
}

impl Walk<'_> {
    /// The reads of a block, behind which are the `later` statements.
    fn block(&mut self, block: &Block, later: &[&Stmt]) {
        for (at, stmt) in block.stmts.iter().enumerate() {
            let behind: Vec<&Stmt> = block.stmts[at + 1..].iter().chain(later.iter().copied()).collect();
            if let StmtKind::GlobalGet { dest, global, .. } = &stmt.kind
                && self.slice.is_shared_with_copies(*global)
            {
                let used = if self.reaches_shared(*dest, &behind) {
                    Used::Surely
                } else if may_reach_shared(self.kernel, *dest) {
                    Used::Maybe
                } else {
                    Used::Never
                };
                self.found.insert(stmt.id, used);
            }
            visit::blocks(&stmt.kind).into_iter().for_each(|inner| self.block(inner, &behind));
        }
    }

    /// Whether a variable, or what is computed from it, is written to shared memory by one of these
    /// statements, before a meeting or a copy.
    fn reaches_shared(&self, from: LocalId, behind: &[&Stmt]) -> bool {
        let is_given_once = |local: &LocalId| self.times.get(local) == Some(&1);
        if !is_given_once(&from) {
            return false;
        }
        let mut of: QuickSet<LocalId> = QuickSet::default();
        of.insert(from);
        for stmt in behind {
            if let StmtKind::Assign { local, value, .. } = &stmt.kind {
                if depends(value, &of) && is_given_once(local) {
                    of.insert(*local);
                }
            } else if let StmtKind::SharedSet { index, value, .. } = &stmt.kind {
                if depends(value, &of) || depends(index, &of) {
                    return true;
                }
            } else if let StmtKind::TileSet { at, value, .. } = &stmt.kind {
                if depends(value, &of) || at.iter().any(|at| depends(at, &of)) {
                    return true;
                }
            } else if let StmtKind::Atomic(atomic) = &stmt.kind
                && let AtomicPlace::Shared(_) = atomic.place
                && let AtomicAccess::Update { value, .. } | AtomicAccess::Store { value } = &atomic.access
            {
                if depends(value, &of) || depends(&atomic.index, &of) {
                    return true;
                }
            } else if let StmtKind::Warp { value, .. } = &stmt.kind
                && depends(value, &of)
            {
                return true;
            } else if orders_or_copies(stmt) {
                return false;
            }
        }
        false
    }
}

/// Whether a variable, or what is computed from it, reaches shared memory or a condition anywhere.
fn may_reach_shared(kernel: &Kernel, from: LocalId) -> bool {
    let mut of: QuickSet<LocalId> = QuickSet::default();
    of.insert(from);
    loop {
        let (before, mut reaches) = (of.len(), false);
        visit::for_each_stmt(&kernel.body, &mut |stmt| {
            let is_used = visit::operands(&stmt.kind).into_iter().any(|operand| depends(operand, &of));
            if let StmtKind::Assign { local, value, .. } = &stmt.kind
                && depends(value, &of)
            {
                of.insert(*local);
            } else if let StmtKind::Pack { dest, accumulator } = &stmt.kind
                && of.contains(accumulator)
            {
                of.insert(*dest);
            } else if let StmtKind::StoreAccumulator { accumulator, .. } = &stmt.kind {
                reaches |= of.contains(accumulator);
            } else if let StmtKind::StoreWarp(store) = &stmt.kind {
                reaches |= of.contains(&store.accumulator);
            } else if !matches!(stmt.kind, StmtKind::Assign { .. } | StmtKind::GlobalSet { .. }) {
                reaches |= is_used;
            }
        });
        if reaches || of.len() == before {
            return reaches;
        }
    }
}

/// Whether threads meet or a copy begins in a statement.
fn orders_or_copies(stmt: &Stmt) -> bool {
    let is_one = |stmt: &Stmt| {
        matches!(
            stmt.kind,
            StmtKind::Sync(_)
                | StmtKind::SyncGrid { .. }
                | StmtKind::Barrier { .. }
                | StmtKind::TileCopy(_)
                | StmtKind::BulkCopy(_)
                | StmtKind::RemoteCopy(_)
                | StmtKind::Warp { .. }
                | StmtKind::ElectOne { .. }
        )
    };
    let mut any = is_one(stmt);
    for block in visit::blocks(&stmt.kind) {
        visit::for_each_stmt(block, &mut |inner| any |= is_one(inner));
    }
    any
}

/// Whether the value of an expression depends on one of these variables, as far as it is no constant in
/// any case.
fn depends(expr: &Expr, on: &QuickSet<LocalId>) -> bool {
    if let ExprKind::Local(local) = expr.kind {
        return on.contains(&local);
    }
    if let ExprKind::Binary(op, a, b) = &expr.kind {
        let is = |expr: &Expr, number: i128| expr.as_int() == Some(number);
        let is_same = matches!((&a.kind, &b.kind), (ExprKind::Local(a), ExprKind::Local(b)) if a == b);
        let vanishes = match op {
            BinaryOp::Mul | BinaryOp::And => is(a, 0) || is(b, 0),
            BinaryOp::Rem => is(b, 1) || is_same,
            BinaryOp::Sub | BinaryOp::Xor | BinaryOp::Div => is_same,
            BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => {
                is_same
            }
            BinaryOp::Add | BinaryOp::Or | BinaryOp::Shl | BinaryOp::Shr => false,
        };
        if vanishes {
            return false;
        }
    }
    visit::operands_of(expr).into_iter().any(|operand| depends(operand, on))
}
