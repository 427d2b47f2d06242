//! Changes to a kernel that a user might make in the source.

use std::mem::discriminant;

use tma_front::ir::{
    BarrierOp, BinaryOp, Block, Const, Expr, ExprKind, Kernel, LocalId, Origin, Scalar, Scope, SharedId,
    Special, Stmt, StmtId, StmtKind, Strictness, Sync, Type, visit,
};

/// A position between statements of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gap {
    /// Before this statement.
    Before(StmtId),
    /// After this statement.
    After(StmtId),
    /// At the end of the block that contains this statement.
    AtEnd(StmtId),
}

impl Gap {
    /// Returns the statement that the gap refers to.
    pub(super) fn anchor(self) -> StmtId {
        match self {
            Self::Before(stmt) | Self::After(stmt) | Self::AtEnd(stmt) => stmt,
        }
    }

    /// Returns the gap of the same kind at another statement.
    fn of(self, stmt: StmtId) -> Self {
        match self {
            Self::Before(_) => Self::Before(stmt),
            Self::After(_) => Self::After(stmt),
            Self::AtEnd(_) => Self::AtEnd(stmt),
        }
    }
}

/// Returns the statements that are this one in the source. There are several if a function is
/// called more than once.
pub(super) fn copies(body: &Block, id: StmtId) -> Vec<StmtId> {
    let Some(stmt) = find(body, id) else { return vec![] };
    let (span, kind) = (stmt.origin.span, discriminant(&stmt.kind));
    let mut all = vec![];
    visit::for_each_stmt(body, &mut |other| {
        let is_there = [other.origin.span.start(), other.origin.span.end()] == [span.start(), span.end()];
        if other.id == id || is_there && discriminant(&other.kind) == kind && is_called(other, stmt) {
            all.push(other.id);
        }
    });
    all
}

/// Whether two statements belong to different calls.
fn is_called(one: &Stmt, other: &Stmt) -> bool {
    one.origin.call.is_some() && one.origin.call != other.origin.call
}

/// A change.
#[derive(Clone, Debug)]
pub(super) enum Edit {
    /// Inserts these statements.
    Insert(Gap, Vec<StmtKind>),
    /// Replaces this statement.
    Replace(StmtId, Box<StmtKind>),
    /// Moves this statement.
    Move(StmtId, Gap),
}

/// Returns the kernel with a change, and its statements numbered again.
pub(super) fn applied(kernel: &Kernel, edit: &Edit) -> Kernel {
    let mut kernel = kernel.clone();
    match edit {
        Edit::Insert(gap, kinds) => {
            let origin = find(&kernel.body, gap.anchor()).map(|stmt| stmt.origin);
            if let Some(origin) = origin {
                for copy in copies(&kernel.body, gap.anchor()) {
                    insert(&mut kernel.body, gap.of(copy), &stmts(kinds, origin));
                }
            }
        }
        Edit::Replace(id, kind) => {
            in_block(&mut kernel.body, *id, &mut |stmts, index| stmts[index].kind = (**kind).clone());
        }
        Edit::Move(id, gap) => {
            let mut moved = None;
            in_block(&mut kernel.body, *id, &mut |stmts, index| moved = Some(stmts.remove(index)));
            if let Some(stmt) = moved {
                insert(&mut kernel.body, *gap, &[stmt]);
            }
        }
    }
    visit::number(&mut kernel.body);
    kernel
}

fn stmts(kinds: &[StmtKind], origin: Origin) -> Vec<Stmt> {
    // An inserted statement is not part of the call that its neighbour is part of.
    let origin = Origin { call: None, ..origin };
    kinds.iter().map(|kind| Stmt::new(kind.clone(), origin)).collect()
}

fn insert(body: &mut Block, gap: Gap, new: &[Stmt]) {
    in_block(body, gap.anchor(), &mut |stmts, index| {
        let at = match gap {
            Gap::Before(_) => index,
            Gap::After(_) => index + 1,
            // A jump out of a block stays at its end.
            Gap::AtEnd(_) => stmts.iter().rposition(|stmt| !leaves(&stmt.kind)).map_or(0, |last| last + 1),
        };
        stmts.splice(at..at, new.iter().cloned());
    });
}

fn leaves(kind: &StmtKind) -> bool {
    matches!(kind, StmtKind::Break(_) | StmtKind::Continue(_) | StmtKind::Leave(_) | StmtKind::Return)
}

/// Calls `f` with the block that contains a statement, and the index of the statement.
fn in_block(block: &mut Block, id: StmtId, f: &mut dyn FnMut(&mut Vec<Stmt>, usize)) -> bool {
    if let Some(index) = block.stmts.iter().position(|stmt| stmt.id == id) {
        f(&mut block.stmts, index);
        return true;
    }
    let mut inner = block.stmts.iter_mut().flat_map(|stmt| visit::blocks_mut(&mut stmt.kind));
    inner.any(|block| in_block(block, id, f))
}

/// Returns a statement of a block, or inside one.
pub(super) fn find(block: &Block, id: StmtId) -> Option<&Stmt> {
    let mut found = None;
    visit::for_each_stmt(block, &mut |stmt| {
        if stmt.id == id {
            found = Some(stmt);
        }
    });
    found
}

/// Returns an arrival at a pipeline's empty barrier, for a wait at one of its full barriers, with
/// the fence that a release begins with. It is by each thread, or by one lane after its warp has
/// synchronised.
pub(super) fn release(full: &Expr, ends: [SharedId; 2], by_lane: bool) -> Vec<StmtKind> {
    let ([from, to], mut barrier) = (ends, full.clone());
    visit::within_mut(&mut barrier, &mut |part| {
        if matches!(part.kind, ExprKind::Shared(id) if id == from) {
            part.kind = ExprKind::Shared(to);
        }
    });
    let span = full.span;
    let fence = super::candidates::proxy_fence();
    let arrive = StmtKind::Barrier { barrier, op: BarrierOp::Arrive, scope: Scope::Block };
    if !by_lane {
        return vec![fence, arrive];
    }
    let lane = Expr { kind: ExprKind::Special(Special::LaneIdx), ty: Scalar::U32.into(), span };
    let zero = Expr::constant(Const::Int(0), Scalar::U32, span);
    let kind = ExprKind::Binary(BinaryOp::Eq, Box::new(lane), Box::new(zero), Strictness::Wrapping);
    let condition = Expr { kind, ty: Scalar::Bool.into(), span };
    let then = Block { stmts: stmts(&[arrive], Origin { span, call: None }) };
    let branch = StmtKind::If { condition, then, otherwise: Block::default() };
    vec![fence, StmtKind::Sync(Sync::Warp), branch]
}

/// Returns `variable & 1`, or 0 if there is no variable.
pub(super) fn parity_of(variable: Option<LocalId>, span: tma_front::ir::Span) -> Expr {
    let Some(variable) = variable else { return Expr::constant(Const::Int(0), Scalar::U32, span) };
    let counts = Expr { kind: ExprKind::Local(variable), ty: Scalar::U32.into(), span };
    let one = Expr::constant(Const::Int(1), Scalar::U32, span);
    Expr {
        kind: ExprKind::Binary(BinaryOp::And, Box::new(counts), Box::new(one), Strictness::Wrapping),
        ty: Type::from(Scalar::U32),
        span,
    }
}

/// Returns `operand + by`, evaluated if `operand` is a constant.
pub(super) fn plus(operand: &Expr, by: i64) -> Expr {
    if let ExprKind::Const(Const::Int(value)) = operand.kind {
        let value = value + i128::from(by);
        return Expr { kind: ExprKind::Const(Const::Int(value)), ..operand.clone() };
    }
    let wrapped = i128::from(by).rem_euclid(1 << 32);
    let by = Expr::constant(Const::Int(wrapped), Scalar::U32, operand.span);
    let kind = ExprKind::Binary(BinaryOp::Add, Box::new(operand.clone()), Box::new(by), Strictness::Wrapping);
    Expr { kind, ..operand.clone() }
}

/// Returns `operand ^ 1`.
pub(super) fn flipped(operand: &Expr) -> Expr {
    let one = Expr::constant(Const::Int(1), Scalar::U32, operand.span);
    Expr {
        kind: ExprKind::Binary(BinaryOp::Xor, Box::new(operand.clone()), Box::new(one), Strictness::Wrapping),
        ..operand.clone()
    }
}
