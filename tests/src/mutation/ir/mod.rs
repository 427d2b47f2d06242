//! Mutants of a kernel's IR: each changes one statement on which its synchronisation depends.
//!
//! The mutants are mistakes that a programmer could make, before anything is compiled. The protocol
//! checker can therefore judge them, and the simulator their PTX.

mod change;

use tma_codegen::ir::{
    BarrierOp, Block, Const, Expr, ExprKind, Kernel, Order, Span, Stmt, StmtId, StmtKind, Sync, visit,
};

pub use change::Change;

/// A kernel with one statement changed.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// The kind of the statement.
    pub step: &'static str,
    /// The change to the statement.
    pub change: Change,
    /// The statement's position in the source.
    pub span: Span,
    /// The changed kernel.
    pub kernel: Kernel,
}

/// A planned change.
struct Plan {
    stmt: StmtId,
    step: &'static str,
    change: Change,
    span: Span,
}

/// Returns all mutants of a kernel, in the order of their statements.
pub fn mutants(kernel: &Kernel) -> impl Iterator<Item = Mutant> + '_ {
    let (mut plans, mut statements) = (vec![], 0);
    visit::for_each_stmt(&kernel.body, &mut |_| statements += 1);
    plan(&kernel.body, &mut plans);
    plans.into_iter().map(move |Plan { stmt, step, change, span }| {
        let mut kernel = kernel.clone();
        at(&mut kernel.body, stmt, &mut |stmts, index| {
            change::apply(stmts, index, change, StmtId(statements));
        });
        // The numbers of statements are their order in the source.
        visit::number(&mut kernel.body);
        Mutant { step, change, span, kernel }
    })
}

/// Calls `f` with the block that contains a statement, and the statement's index in it.
fn at(block: &mut Block, id: StmtId, f: &mut dyn FnMut(&mut Vec<Stmt>, usize)) -> bool {
    if let Some(index) = block.stmts.iter().position(|stmt| stmt.id == id) {
        f(&mut block.stmts, index);
        return true;
    }
    let inner = block.stmts.iter_mut().flat_map(|stmt| visit::blocks_mut(&mut stmt.kind));
    inner.into_iter().any(|block| at(block, id, f))
}

fn plan(block: &Block, plans: &mut Vec<Plan>) {
    for (index, stmt) in block.stmts.iter().enumerate() {
        let (step, changes) = changes(block, index);
        let of = |change| Plan { stmt: stmt.id, step, change, span: stmt.origin.span };
        plans.extend(changes.into_iter().map(of));
        visit::blocks(&stmt.kind).into_iter().for_each(|inner| plan(inner, plans));
    }
}

/// Returns the kind of a statement that synchronises.
pub fn step(kind: &StmtKind) -> Option<&'static str> {
    Some(match kind {
        StmtKind::Fence(_) => "fence",
        StmtKind::Sync(_) | StmtKind::SyncGrid { .. } => "meeting",
        StmtKind::NamedBarrierSync { .. } | StmtKind::NamedBarrierArrive { .. } => "named barrier",
        StmtKind::BulkCommitGroup => "commit",
        StmtKind::BulkWaitGroup { .. } => "wait for stores",
        StmtKind::MmaWait { .. } => "wait for a multiplication",
        StmtKind::SetMaxRegisters { .. } => "registers",
        StmtKind::Atomic(_) => "strong access",
        StmtKind::Warp { .. } => "operation of a warp",
        StmtKind::Barrier { op, .. } => match op {
            BarrierOp::Init { .. } => "init",
            BarrierOp::Invalidate => "invalidation",
            BarrierOp::Arrive
            | BarrierOp::ArriveMany { .. }
            | BarrierOp::ArriveToken { .. }
            | BarrierOp::ArriveDrop => "arrival",
            BarrierOp::ArriveExpectTx { .. } | BarrierOp::ExpectTx { .. } => "announcement",
            BarrierOp::Wait { .. } | BarrierOp::WaitToken { .. } => "wait",
            BarrierOp::TestWait { .. } | BarrierOp::TryWait { .. } | BarrierOp::TryWaitFor { .. } => "poll",
        },
        _ => return None,
    })
}

/// Returns the kind of the statement at `index`, and the changes that apply to it.
fn changes(block: &Block, index: usize) -> (&'static str, Vec<Change>) {
    let kind = &block.stmts[index].kind;
    let (name, mut changes) = match step(kind) {
        Some(name) => (name, of_step(kind)),
        None => match kind {
            StmtKind::If { condition, .. } if synchronises(kind) => {
                let bound = change::has_bound(condition).then_some(Change::Bound);
                ("condition", [Change::Negated].into_iter().chain(bound).collect())
            }
            StmtKind::While { condition, .. } if synchronises(kind) && change::has_bound(condition) => {
                ("loop", vec![Change::Bound])
            }
            StmtKind::For(_) if synchronises(kind) => ("loop", vec![Change::Bound]),
            _ if change::is_copy(kind) => ("copy", vec![]),
            StmtKind::TileGet { .. } | StmtKind::TileSet { .. } | StmtKind::Mma(_) => ("access", vec![]),
            _ => return ("", vec![]),
        },
    };
    if !matches!(kind, StmtKind::If { .. } | StmtKind::While { .. } | StmtKind::For(_)) && uses_stages(kind) {
        changes.push(Change::NextStage);
    }
    if step(kind).is_some() && !gives_value(kind) {
        let is_before = index.checked_sub(1).and_then(|before| block.stmts.get(before));
        // Moving a step down past a step, or moving the second one up, is the same mutant.
        if is_before.is_some_and(|before| has_effect(before) && step(&before.kind).is_none()) {
            changes.push(Change::Earlier);
        }
        if block.stmts.get(index + 1).is_some_and(has_effect) {
            changes.push(Change::Later);
        }
    }
    (name, changes)
}

/// Returns the changes that apply to a step, wherever it is.
fn of_step(kind: &StmtKind) -> Vec<Change> {
    let of_parity = |parity: &Expr| {
        let mut has_number = false;
        visit::within(parity, &mut |part| has_number |= change::is_number(part));
        let is_zero = matches!(parity.kind, ExprKind::Const(Const::Int(0)));
        let stuck = (!is_zero).then_some(Change::Stuck);
        let ahead = has_number.then_some(Change::NextParity);
        [Change::Flipped].into_iter().chain(stuck).chain(ahead)
    };
    match kind {
        StmtKind::Barrier { op, .. } => match op {
            BarrierOp::Wait { parity } => [Change::Removed].into_iter().chain(of_parity(parity)).collect(),
            BarrierOp::TestWait { parity, .. }
            | BarrierOp::TryWait { parity, .. }
            | BarrierOp::TryWaitFor { parity, .. } => of_parity(parity).collect(),
            BarrierOp::Init { .. } => vec![Change::Removed, Change::More(1), Change::More(-1)],
            BarrierOp::ArriveExpectTx { .. } | BarrierOp::ExpectTx { .. } => {
                vec![Change::Removed, Change::More(16), Change::More(-16)]
            }
            BarrierOp::ArriveMany { .. } => vec![Change::Removed, Change::Duplicated, Change::More(1)],
            BarrierOp::Arrive | BarrierOp::ArriveDrop => vec![Change::Removed, Change::Duplicated],
            BarrierOp::WaitToken { .. } | BarrierOp::Invalidate => vec![Change::Removed],
            // Its result is used.
            BarrierOp::ArriveToken { .. } => vec![Change::Duplicated],
        },
        StmtKind::BulkWaitGroup { .. } => vec![Change::Removed, Change::MorePending],
        StmtKind::Sync(Sync::Warp) => vec![Change::Removed, Change::HalfWarp],
        StmtKind::Warp { .. } => vec![Change::HalfWarp],
        StmtKind::Atomic(atomic) => {
            let relaxed = (atomic.order != Order::Relaxed).then_some(Change::Relaxed);
            let narrowed = change::narrower(atomic.scope).map(|_| Change::Narrowed);
            let plain = change::plain(atomic).map(|_| Change::Plain);
            relaxed.into_iter().chain(narrowed).chain(plain).collect()
        }
        _ => vec![Change::Removed],
    }
}

/// Returns whether a statement's result is used, so that it cannot be moved.
fn gives_value(kind: &StmtKind) -> bool {
    matches!(
        kind,
        StmtKind::Barrier {
            op: BarrierOp::ArriveToken { .. }
                | BarrierOp::WaitToken { .. }
                | BarrierOp::TestWait { .. }
                | BarrierOp::TryWait { .. }
                | BarrierOp::TryWaitFor { .. },
            ..
        } | StmtKind::Atomic(_)
            | StmtKind::Warp { .. }
    )
}

/// Returns whether the position of a statement is observable.
fn has_effect(stmt: &Stmt) -> bool {
    !matches!(
        stmt.kind,
        StmtKind::Assign { .. }
            | StmtKind::Break(_)
            | StmtKind::Continue(_)
            | StmtKind::Leave(_)
            | StmtKind::Return
            | StmtKind::Trap
            | StmtKind::TraceSpan { .. }
    )
}

fn uses_stages(kind: &StmtKind) -> bool {
    let mut any = false;
    for operand in visit::operands(kind) {
        visit::within(operand, &mut |part| any |= matches!(part.kind, ExprKind::Stage(..)));
    }
    any
}

/// Returns whether anything inside a statement synchronises.
fn synchronises(kind: &StmtKind) -> bool {
    let mut any = false;
    for inner in visit::blocks(kind) {
        visit::for_each_stmt(inner, &mut |stmt| {
            any |= step(&stmt.kind).is_some() || change::is_copy(&stmt.kind);
        });
    }
    any
}
