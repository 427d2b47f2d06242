//! Walks over a kernel.

use super::{BarrierOp, Block, BulkOp, Expr, ExprKind, MapEdit, Stmt, StmtKind, TmaOp};

/// Calls `f` for every statement in `block`, those of inner blocks after the one that holds them.
pub fn for_each_stmt<'a>(block: &'a Block, f: &mut impl FnMut(&'a Stmt)) {
    for stmt in &block.stmts {
        f(stmt);
        for inner in blocks(&stmt.kind) {
            for_each_stmt(inner, f);
        }
    }
}

/// Calls `f` for every expression in `block`, operands before the expression that uses them.
pub fn for_each_expr<'a>(block: &'a Block, f: &mut impl FnMut(&'a Expr)) {
    for_each_stmt(block, &mut |stmt| {
        for expr in operands(&stmt.kind) {
            within(expr, f);
        }
    });
}

/// Calls `f` for `expr` and everything in it, operands first.
pub fn within<'a>(expr: &'a Expr, f: &mut impl FnMut(&'a Expr)) {
    for operand in expr_operands(&expr.kind) {
        within(operand, f);
    }
    f(expr);
}

/// Calls `f` for `expr` and everything in it, operands first.
pub fn within_mut(expr: &mut Expr, f: &mut impl FnMut(&mut Expr)) {
    for operand in expr_operands_mut(&mut expr.kind) {
        within_mut(operand, f);
    }
    f(expr);
}

// The same tables are needed for shared and for unique borrows; written once, as macros over the borrow.

macro_rules! expr_operands {
    ($kind:expr, $as_ref:ident) => {
        match $kind {
            ExprKind::Const(_)
            | ExprKind::Local(_)
            | ExprKind::Shared(_)
            | ExprKind::Param(_)
            | ExprKind::GlobalLen(_)
            | ExprKind::Special(_)
            | ExprKind::ClusterAxis(_)
            | ExprKind::Unit
            | ExprKind::Error => vec![],
            ExprKind::Unary(_, a)
            | ExprKind::Cast(a)
            | ExprKind::Bits(a)
            | ExprKind::Repeat(a)
            | ExprKind::CachePolicy(_, a)
            | ExprKind::MapAt(_, a) => vec![a.$as_ref()],
            ExprKind::Binary(_, a, b)
            | ExprKind::Index(a, b)
            | ExprKind::Stage(a, b)
            | ExprKind::Remote(a, b)
            | ExprKind::Hinted(a, b) => vec![a.$as_ref(), b.$as_ref()],
            ExprKind::Math(_, all) | ExprKind::Array(all) | ExprKind::Compound(all) => {
                all.into_iter().collect()
            }
        }
    };
}

macro_rules! tma_operands {
    ($op:expr) => {
        match $op {
            TmaOp::Load { tile, at, barrier, hint } | TmaOp::LoadSliced { tile, at, barrier, hint, .. } => {
                [tile].into_iter().chain(at).chain([barrier]).chain(hint).collect()
            }
            TmaOp::LoadMulticast { tile, at, barrier, mask, hint } => {
                [tile].into_iter().chain(at).chain([barrier, mask]).chain(hint).collect()
            }
            TmaOp::LoadColumn { tile, at, offsets, barrier, mask, hint } => {
                [tile].into_iter().chain(at).chain(offsets).chain([barrier]).chain(mask).chain(hint).collect()
            }
            TmaOp::Store { at, tile, hint } | TmaOp::Reduce { at, tile, hint, .. } => {
                at.into_iter().chain([tile]).chain(hint).collect()
            }
            TmaOp::Prefetch { at, hint } => at.into_iter().chain(hint).collect(),
            TmaOp::PrefetchColumn { at, offsets, hint } => {
                at.into_iter().chain(offsets).chain(hint).collect()
            }
            TmaOp::PrefetchDescriptor => Vec::new(),
        }
    };
}

macro_rules! operands {
    ($kind:expr) => {
        match $kind {
            StmtKind::Loop { .. }
            | StmtKind::Labelled { .. }
            | StmtKind::Break(_)
            | StmtKind::Continue(_)
            | StmtKind::Leave(_)
            | StmtKind::Return
            | StmtKind::BulkCommitGroup
            | StmtKind::BulkWaitGroup { .. }
            | StmtKind::Fence(_)
            | StmtKind::Sync(_)
            | StmtKind::SyncGrid { .. }
            | StmtKind::GridDependency(_)
            | StmtKind::ElectOne { .. }
            | StmtKind::Trap => vec![],
            StmtKind::Assign { index, value, .. } => index.into_iter().chain([value]).collect(),
            StmtKind::If { condition, .. }
            | StmtKind::While { condition, .. }
            | StmtKind::Assert { condition, .. } => vec![condition],
            StmtKind::Match { value, .. } => vec![value],
            StmtKind::For(inner) => for_operands!(inner),
            StmtKind::TileGet { tile, at, .. } => [tile].into_iter().chain(at).collect(),
            StmtKind::TileSet { tile, at, value } => [tile].into_iter().chain(at).chain([value]).collect(),
            StmtKind::SharedGet { array, index, .. } => vec![array, index],
            StmtKind::SharedSet { array, index, value } => vec![array, index, value],
            StmtKind::GlobalGet { index, .. } => vec![index],
            StmtKind::GlobalSet { index, value, .. } | StmtKind::GlobalAtomic { index, value, .. } => {
                vec![index, value]
            }
            StmtKind::Barrier { barrier, op, scope: _ } => match op {
                BarrierOp::Invalidate
                | BarrierOp::Arrive
                | BarrierOp::ArriveToken { .. }
                | BarrierOp::ArriveDrop => vec![barrier],
                BarrierOp::Init { count: operand }
                | BarrierOp::ArriveMany { count: operand }
                | BarrierOp::ArriveExpectTx { bytes: operand }
                | BarrierOp::ExpectTx { bytes: operand }
                | BarrierOp::Wait { parity: operand }
                | BarrierOp::WaitToken { token: operand }
                | BarrierOp::TestWait { parity: operand, .. }
                | BarrierOp::TryWait { parity: operand, .. } => vec![barrier, operand],
                BarrierOp::TryWaitFor { parity, nanoseconds, .. } => vec![barrier, parity, nanoseconds],
            },
            StmtKind::Tma { index, op, .. } => index.into_iter().chain(tma_operands!(op)).collect(),
            StmtKind::EditMap { map, edit } => match edit {
                MapEdit::CopyFrom { .. } => vec![map],
                MapEdit::Address { index: operand, .. }
                | MapEdit::Extent { extent: operand, .. }
                | MapEdit::Stride { bytes: operand, .. }
                | MapEdit::Publish { index: operand, .. } => vec![map, operand],
            },
            StmtKind::AcquireMap { index, .. } => vec![index],
            StmtKind::Bulk { index, count, op, hint, .. } => {
                let shared = match op {
                    BulkOp::Load { array, at, barrier, mask } => {
                        [array, at, barrier].into_iter().chain(boxed!(mask)).collect()
                    }
                    BulkOp::Store { array, at } | BulkOp::Reduce { array, at, .. } => vec![array, at],
                    BulkOp::Prefetch => vec![],
                };
                [index, count].into_iter().chain(shared).chain(hint).collect()
            }
            StmtKind::BulkRemote { from, at, count, to, barrier, .. } => vec![from, at, count, to, barrier],
            StmtKind::NamedBarrierSync { id, threads } => vec![id, threads],
            StmtKind::Printf { args, .. } => args.into_iter().collect(),
        }
    };
}

macro_rules! blocks {
    ($kind:expr) => {
        match $kind {
            StmtKind::If { then, otherwise, .. } => vec![then, otherwise],
            StmtKind::Match { arms, otherwise, .. } => {
                arms.into_iter().map(|arm| arm_body!(arm)).chain([otherwise]).collect()
            }
            StmtKind::Loop { body, .. } | StmtKind::Labelled { body, .. } => vec![body],
            StmtKind::While { header, body, .. } => vec![header, body],
            StmtKind::For(inner) => vec![for_body!(inner)],
            _ => vec![],
        }
    };
}

/// The expressions that `kind` reads directly, not those of inner blocks (but for a loop's header).
pub fn operands(kind: &StmtKind) -> Vec<&Expr> {
    macro_rules! for_operands {
        ($inner:ident) => {
            vec![&$inner.start, &$inner.end, &$inner.step]
        };
    }
    macro_rules! boxed {
        ($operand:ident) => {
            $operand.as_deref()
        };
    }
    operands!(kind)
}

/// As [`operands`].
pub fn operands_mut(kind: &mut StmtKind) -> Vec<&mut Expr> {
    macro_rules! for_operands {
        ($inner:ident) => {{
            let inner = &mut **$inner;
            vec![&mut inner.start, &mut inner.end, &mut inner.step]
        }};
    }
    macro_rules! boxed {
        ($operand:ident) => {
            $operand.as_deref_mut()
        };
    }
    operands!(kind)
}

/// The blocks inside `kind`, in order.
pub fn blocks(kind: &StmtKind) -> Vec<&Block> {
    macro_rules! arm_body {
        ($arm:ident) => {
            &$arm.body
        };
    }
    macro_rules! for_body {
        ($inner:ident) => {
            &$inner.body
        };
    }
    blocks!(kind)
}

/// As [`blocks`].
pub fn blocks_mut(kind: &mut StmtKind) -> Vec<&mut Block> {
    macro_rules! arm_body {
        ($arm:ident) => {
            &mut $arm.body
        };
    }
    macro_rules! for_body {
        ($inner:ident) => {
            &mut $inner.body
        };
    }
    blocks!(kind)
}

fn expr_operands(kind: &ExprKind) -> Vec<&Expr> {
    expr_operands!(kind, as_ref)
}

fn expr_operands_mut(kind: &mut ExprKind) -> Vec<&mut Expr> {
    expr_operands!(kind, as_mut)
}
