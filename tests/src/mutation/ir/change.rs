//! Changes to a statement.

use std::fmt;

use tma_codegen::ir::{
    Atomic, AtomicAccess, AtomicMemory, BarrierOp, BinaryOp, Block, Const, CopyKind, Expr, ExprKind,
    LoadPath, MemoryScope, Order, Scalar, Special, Stmt, StmtId, StmtKind, Strictness, Type, UnaryOp, visit,
};
use tma_model::limits::WARP_THREADS;

/// A change to one statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Change {
    /// Removes the statement.
    Removed,
    /// Duplicates the statement.
    Duplicated,
    /// Increases a count, or a number of bytes, by this much.
    More(i128),
    /// Allows one more group to be pending.
    MorePending,
    /// Waits for the other parity.
    Flipped,
    /// Waits for the same parity each time.
    Stuck,
    /// Computes a parity from a number that is one more.
    NextParity,
    /// Uses the next stage.
    NextStage,
    /// Makes an access neither acquire nor release.
    Relaxed,
    /// Gives an access the next narrower scope.
    Narrowed,
    /// Removes order and scope from an access.
    Plain,
    /// Executes the statement only in the first half of the warp.
    HalfWarp,
    /// Negates a condition.
    Negated,
    /// Includes the bound of a comparison, or excludes it.
    Bound,
    /// Swaps the statement with the one before it.
    Earlier,
    /// Swaps the statement with the one after it.
    Later,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Removed => f.write_str("removed"),
            Self::Duplicated => f.write_str("twice"),
            Self::More(by) => write!(f, "{by:+}"),
            Self::MorePending => f.write_str("one group more"),
            Self::Flipped => f.write_str("parity flipped"),
            Self::Stuck => f.write_str("parity always 0"),
            Self::NextParity => f.write_str("parity of the next"),
            Self::NextStage => f.write_str("next stage"),
            Self::Relaxed => f.write_str("relaxed"),
            Self::Narrowed => f.write_str("scope narrowed"),
            Self::Plain => f.write_str("made plain"),
            Self::HalfWarp => f.write_str("half of the warp"),
            Self::Negated => f.write_str("negated"),
            Self::Bound => f.write_str("bound moved"),
            Self::Earlier => f.write_str("one statement earlier"),
            Self::Later => f.write_str("one statement later"),
        }
    }
}

/// Applies a change to the statement at `index`. A copy of a statement gets the id `fresh`.
pub(super) fn apply(stmts: &mut Vec<Stmt>, index: usize, change: Change, fresh: StmtId) {
    match change {
        Change::Removed => _ = stmts.remove(index),
        Change::Duplicated => {
            let copy = Stmt { id: fresh, ..stmts[index].clone() };
            stmts.insert(index + 1, copy);
        }
        Change::Earlier => stmts.swap(index - 1, index),
        Change::Later => stmts.swap(index, index + 1),
        Change::More(by) => {
            if let Some(count) = count_mut(&mut stmts[index].kind) {
                let op = if by < 0 { BinaryOp::Sub } else { BinaryOp::Add };
                wrap(count, op, by.abs());
            }
        }
        Change::MorePending => {
            if let StmtKind::BulkWaitGroup { pending, .. } = &mut stmts[index].kind {
                *pending += 1;
            }
        }
        Change::Flipped | Change::Stuck | Change::NextParity => {
            if let Some(parity) = parity_mut(&mut stmts[index].kind) {
                change_parity(parity, change);
            }
        }
        Change::NextStage => {
            for operand in visit::operands_mut(&mut stmts[index].kind) {
                visit::within_mut(operand, &mut next_stage);
            }
        }
        Change::Relaxed | Change::Narrowed => {
            if let StmtKind::Atomic(atomic) = &mut stmts[index].kind {
                match narrower(atomic.scope) {
                    Some(scope) if change == Change::Narrowed => atomic.scope = scope,
                    Some(_) | None => atomic.order = Order::Relaxed,
                }
            }
        }
        Change::Plain => {
            if let StmtKind::Atomic(atomic) = &stmts[index].kind
                && let Some(plain) = plain(atomic)
            {
                stmts[index].kind = plain;
            }
        }
        Change::HalfWarp => {
            let span = stmts[index].origin.span;
            let lane =
                Expr { kind: ExprKind::Special(Special::LaneIdx), ty: Type::Scalar(Scalar::U32), span };
            let half = Expr::constant(Const::Int(i128::from(WARP_THREADS / 2)), Scalar::U32, span);
            let condition = Expr {
                kind: ExprKind::Binary(BinaryOp::Lt, Box::new(lane), Box::new(half), Strictness::Wrapping),
                ty: Type::Scalar(Scalar::Bool),
                span,
            };
            let inside = Stmt { id: fresh, ..stmts[index].clone() };
            let (then, otherwise) = (Block { stmts: vec![inside] }, Block { stmts: vec![] });
            stmts[index].kind = StmtKind::If { condition, then, otherwise };
        }
        Change::Negated => {
            if let Some(condition) = condition_mut(&mut stmts[index].kind) {
                let old = condition.clone();
                condition.kind = ExprKind::Unary(UnaryOp::Not, Box::new(old));
            }
        }
        Change::Bound => {
            if let StmtKind::For(inner) = &mut stmts[index].kind {
                inner.inclusive = !inner.inclusive;
            } else if let Some(condition) = condition_mut(&mut stmts[index].kind) {
                move_bound(condition);
            }
        }
    }
}

/// Returns the next narrower scope.
pub(super) fn narrower(scope: MemoryScope) -> Option<MemoryScope> {
    let wider = MemoryScope::ALL.into_iter().position(|other| other == scope)?;
    Some(MemoryScope::ALL[wider.checked_sub(1)?])
}

/// Returns a load or a store without order and scope.
pub(super) fn plain(atomic: &Atomic) -> Option<StmtKind> {
    let index = atomic.index.clone();
    match (&atomic.access, &atomic.memory) {
        (AtomicAccess::Load { dest }, AtomicMemory::Global(global)) => Some(StmtKind::GlobalGet {
            dest: *dest,
            global: global.clone(),
            index,
            path: LoadPath::Coherent,
            hint: None,
        }),
        (AtomicAccess::Load { dest }, AtomicMemory::Shared(array)) => {
            Some(StmtKind::SharedGet { dest: *dest, array: array.clone(), index })
        }
        (AtomicAccess::Store { value }, AtomicMemory::Global(global)) => {
            Some(StmtKind::GlobalSet { global: global.clone(), index, value: value.clone(), hint: None })
        }
        (AtomicAccess::Store { value }, AtomicMemory::Shared(array)) => {
            Some(StmtKind::SharedSet { array: array.clone(), index, value: value.clone() })
        }
        (
            AtomicAccess::Update { .. }
            | AtomicAccess::CompareExchange { .. }
            | AtomicAccess::AddVector { .. },
            _,
        ) => None,
    }
}

/// Replaces `operand` by `operand op by`.
fn wrap(operand: &mut Expr, op: BinaryOp, by: i128) {
    let old = operand.clone();
    let by = Expr::constant(Const::Int(by), Scalar::U32, old.span);
    operand.kind = ExprKind::Binary(op, Box::new(old), Box::new(by), Strictness::Wrapping);
}

fn change_parity(parity: &mut Expr, change: Change) {
    match change {
        Change::Flipped => wrap(parity, BinaryOp::Xor, 1),
        Change::Stuck => parity.kind = ExprKind::Const(Const::Int(0)),
        _ => {
            let mut is_done = false;
            visit::within_mut(parity, &mut |part| {
                if is_number(part) && !is_done {
                    is_done = true;
                    wrap(part, BinaryOp::Add, 1);
                }
            });
        }
    }
}

/// Returns whether an expression is a variable of type `u32`.
pub(super) fn is_number(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Local(_)) && expr.ty.as_scalar() == Some(Scalar::U32)
}

fn next_stage(expr: &mut Expr) {
    let ExprKind::Stage(stages, index) = &mut expr.kind else { return };
    let Type::Stages(_, len) = stages.ty.local() else { return };
    let len = i128::from(*len);
    wrap(index, BinaryOp::Add, 1);
    wrap(index, BinaryOp::Rem, len);
}

/// Moves the bound of the first comparison in a condition.
fn move_bound(condition: &mut Expr) {
    let mut is_done = false;
    visit::within_mut(condition, &mut |part| {
        if let ExprKind::Binary(op, _, right, _) = &mut part.kind
            && !is_done
            && right.ty.as_scalar() == Some(Scalar::U32)
        {
            is_done = true;
            match op {
                BinaryOp::Lt => *op = BinaryOp::Le,
                BinaryOp::Le => *op = BinaryOp::Lt,
                BinaryOp::Gt => *op = BinaryOp::Ge,
                BinaryOp::Ge => *op = BinaryOp::Gt,
                BinaryOp::Eq | BinaryOp::Ne => wrap(right, BinaryOp::Add, 1),
                _ => is_done = false,
            }
        }
    });
}

/// Returns whether [`move_bound`] finds a comparison.
pub(super) fn has_bound(condition: &Expr) -> bool {
    let mut any = false;
    visit::within(condition, &mut |part| {
        if let ExprKind::Binary(op, _, right, _) = &part.kind {
            any |= op.is_comparison() && right.ty.as_scalar() == Some(Scalar::U32);
        }
    });
    any
}

fn condition_mut(kind: &mut StmtKind) -> Option<&mut Expr> {
    match kind {
        StmtKind::If { condition, .. } | StmtKind::While { condition, .. } => Some(condition),
        _ => None,
    }
}

fn count_mut(kind: &mut StmtKind) -> Option<&mut Expr> {
    match kind {
        StmtKind::Barrier {
            op:
                BarrierOp::Init { count: operand }
                | BarrierOp::ArriveMany { count: operand }
                | BarrierOp::ArriveExpectTx { bytes: operand }
                | BarrierOp::ExpectTx { bytes: operand },
            ..
        } => Some(operand),
        _ => None,
    }
}

fn parity_mut(kind: &mut StmtKind) -> Option<&mut Expr> {
    match kind {
        StmtKind::Barrier {
            op:
                BarrierOp::Wait { parity }
                | BarrierOp::TestWait { parity, .. }
                | BarrierOp::TryWait { parity, .. }
                | BarrierOp::TryWaitFor { parity, .. },
            ..
        } => Some(parity),
        _ => None,
    }
}

/// Returns whether a statement copies into or out of shared memory.
pub(super) fn is_copy(kind: &StmtKind) -> bool {
    match kind {
        StmtKind::TileCopy(copy) => !matches!(copy.kind, CopyKind::Prefetch),
        StmtKind::BulkCopy(copy) => !matches!(copy.kind, CopyKind::Prefetch),
        StmtKind::RemoteCopy(_) => true,
        _ => false,
    }
}
