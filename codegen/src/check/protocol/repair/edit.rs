//! Changes of a kernel, as somebody may make them in the source.

use std::mem::discriminant;

use crate::ir::{
    BarrierOp, BinaryOp, Block, Const, Expr, ExprKind, Kernel, LocalId, Origin, Scalar, Scope, SharedId,
    Special, Stmt, StmtId, StmtKind, Sync, Type, visit,
};

/// Between which statements of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gap {
    /// Before this one.
    Before(StmtId),
    /// Behind this one.
    Behind(StmtId),
    /// At the end of the block that this one is in.
    AtEnd(StmtId),
}

impl Gap {
    /// The statement that names it.
    pub(super) fn anchor(self) -> StmtId {
        match self {
            Self::Before(stmt) | Self::Behind(stmt) | Self::AtEnd(stmt) => stmt,
        }
    }

    /// The gap of the same kind at another statement.
    fn of(self, stmt: StmtId) -> Self {
        match self {
            Self::Before(_) => Self::Before(stmt),
            Self::Behind(_) => Self::Behind(stmt),
            Self::AtEnd(_) => Self::AtEnd(stmt),
        }
    }
}

/// The statements that are this one in the source: of a function that is called more than once
/// there are several.
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

/// Whether two statements are of different calls.
fn is_called(one: &Stmt, other: &Stmt) -> bool {
    one.origin.call.is_some() && one.origin.call != other.origin.call
}

/// What is changed.
#[derive(Clone, Debug)]
pub(super) enum Edit {
    /// These statements are put there.
    Insert(Gap, Vec<StmtKind>),
    /// This statement becomes another.
    Replace(StmtId, Box<StmtKind>),
    /// This statement goes there.
    Move(StmtId, Gap),
}

/// The kernel, changed and numbered again.
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
    // What is inserted is no part of a call that its neighbour is a part of.
    let origin = Origin { call: None, ..origin };
    kinds.iter().map(|kind| Stmt::new(kind.clone(), origin)).collect()
}

fn insert(body: &mut Block, gap: Gap, new: &[Stmt]) {
    in_block(body, gap.anchor(), &mut |stmts, index| {
        let at = match gap {
            Gap::Before(_) => index,
            Gap::Behind(_) => index + 1,
            // What leaves a block stays its end.
            Gap::AtEnd(_) => stmts.iter().rposition(|stmt| !leaves(&stmt.kind)).map_or(0, |last| last + 1),
        };
        stmts.splice(at..at, new.iter().cloned());
    });
}

fn leaves(kind: &StmtKind) -> bool {
    matches!(kind, StmtKind::Break(_) | StmtKind::Continue(_) | StmtKind::Leave(_) | StmtKind::Return)
}

/// Calls `f` with the block that has a statement, and where in it.
fn in_block(block: &mut Block, id: StmtId, f: &mut dyn FnMut(&mut Vec<Stmt>, usize)) -> bool {
    if let Some(index) = block.stmts.iter().position(|stmt| stmt.id == id) {
        f(&mut block.stmts, index);
        return true;
    }
    let mut inner = block.stmts.iter_mut().flat_map(|stmt| visit::blocks_mut(&mut stmt.kind));
    inner.any(|block| in_block(block, id, f))
}

/// A statement of a block, or inside one.
pub(super) fn find(block: &Block, id: StmtId) -> Option<&Stmt> {
    let mut found = None;
    visit::for_each_stmt(block, &mut |stmt| {
        if stmt.id == id {
            found = Some(stmt);
        }
    });
    found
}

/// An arrival at one of a pipeline's empty barriers, instead of a wait at one of its full ones, with
/// the fence that a release begins with: in each thread, or in one lane after its warp has met.
pub(super) fn release(full: &Expr, [from, to]: [SharedId; 2], by_lane: bool) -> Vec<StmtKind> {
    let mut barrier = full.clone();
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
    let kind = ExprKind::Binary(BinaryOp::Eq, Box::new(lane), Box::new(zero));
    let condition = Expr { kind, ty: Scalar::Bool.into(), span };
    let then = Block { stmts: stmts(&[arrive], Origin { span, call: None }) };
    let branch = StmtKind::If { condition, then, otherwise: Block::default() };
    vec![fence, StmtKind::Sync(Sync::Warp), branch]
}

/// `variable & 1`, if there is one, or 0.
pub(super) fn parity_of(variable: Option<LocalId>, span: crate::ir::Span) -> Expr {
    let Some(variable) = variable else { return Expr::constant(Const::Int(0), Scalar::U32, span) };
    let counts = Expr { kind: ExprKind::Local(variable), ty: Scalar::U32.into(), span };
    let one = Expr::constant(Const::Int(1), Scalar::U32, span);
    Expr {
        kind: ExprKind::Binary(BinaryOp::And, Box::new(counts), Box::new(one)),
        ty: Type::from(Scalar::U32),
        span,
    }
}

/// `operand + by`, or what that is.
pub(super) fn plus(operand: &Expr, by: i64) -> Expr {
    if let ExprKind::Const(Const::Int(value)) = operand.kind {
        let value = value + i128::from(by);
        return Expr { kind: ExprKind::Const(Const::Int(value)), ..operand.clone() };
    }
    let wrapped = i128::from(by).rem_euclid(1 << 32);
    let by = Expr::constant(Const::Int(wrapped), Scalar::U32, operand.span);
    Expr { kind: ExprKind::Binary(BinaryOp::Add, Box::new(operand.clone()), Box::new(by)), ..operand.clone() }
}

/// `operand ^ 1`.
pub(super) fn flipped(operand: &Expr) -> Expr {
    let one = Expr::constant(Const::Int(1), Scalar::U32, operand.span);
    Expr {
        kind: ExprKind::Binary(BinaryOp::Xor, Box::new(operand.clone()), Box::new(one)),
        ..operand.clone()
    }
}
