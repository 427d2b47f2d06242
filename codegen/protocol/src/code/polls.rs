//! Loops that only wait: they poll an mbarrier until a phase is complete.

use tma_front::ir::{
    BarrierOp, Block, Expr, ExprKind, Flow, Label, LocalId, Loop, Stmt, StmtId, StmtKind, UnaryOp, visit,
};
use tma_front::quick::QuickSet;

use crate::slice::Slice;

/// Returns the poll that a loop repeats until it succeeds, if the loop has no other observable
/// effect. Such a poll is followed as a wait.
pub(super) fn only_poll(repeated: &Stmt, kernel: &Block, slice: &Slice) -> Option<StmtId> {
    let polling = Polling::of(repeated, slice)?;
    let is_wait = polling.ends_by_result(repeated) && !polling.is_counted(repeated, kernel, slice);
    is_wait.then_some(polling.poll.id)
}

/// A loop with one poll, and no other observable effect.
struct Polling<'k> {
    poll: &'k Stmt,
    /// The variable that receives the result of the poll.
    result: LocalId,
    /// All statements in the loop.
    inside: Vec<&'k Stmt>,
    /// The variables that the loop assigns, and the values.
    assigned: Vec<(LocalId, &'k Expr)>,
}

impl<'k> Polling<'k> {
    fn of(repeated: &'k Stmt, slice: &Slice) -> Option<Self> {
        let mut inside = vec![];
        for block in visit::blocks(&repeated.kind) {
            visit::for_each_stmt(block, &mut |stmt| inside.push(stmt));
        }
        let polls: Vec<_> = inside.iter().filter_map(|stmt| Some((*stmt, result(&stmt.kind)?))).collect();
        let &[(poll, result)] = polls.as_slice() else { return None };
        let Flow::Loop(Loop { label: own, .. }) = repeated.flow() else { return None };
        let is_quiet =
            |stmt: &Stmt| stmt.id == poll.id || !slice.keeps(stmt) || is_unobservable(&stmt.kind, own);
        if !inside.iter().all(|stmt| is_quiet(stmt)) {
            return None;
        }
        let assigned = inside.iter().filter(|stmt| slice.keeps(stmt)).filter_map(|stmt| {
            if let StmtKind::Assign { local, value, .. } = &stmt.kind { Some((*local, value)) } else { None }
        });
        Some(Self { poll, result, assigned: assigned.collect(), inside })
    }

    fn assigns(&self, local: LocalId) -> bool {
        self.assigned.iter().any(|(to, _)| *to == local)
    }

    /// Whether a variable holds the result of the poll: the poll's own variable, or one to which
    /// the loop assigns nothing else.
    fn has_result(&self, local: LocalId) -> bool {
        let is_given_it = |(to, value): &(LocalId, &Expr)| {
            *to != local || matches!(value.kind, ExprKind::Local(of) if of == self.result)
        };
        if local == self.result {
            return !self.assigns(local);
        }
        self.assigns(local) && self.assigned.iter().all(is_given_it)
    }

    /// Whether the loop ends when the poll has succeeded, and nowhere else.
    fn ends_by_result(&self, repeated: &Stmt) -> bool {
        let succeeded = |expr: &Expr| matches!(expr.kind, ExprKind::Local(local) if self.has_result(local));
        let is_break = |stmt: &&&Stmt| matches!(stmt.kind, StmtKind::Break(_));
        let mut breaks = self.inside.iter().filter(is_break);
        if let StmtKind::While { condition, .. } = &repeated.kind {
            let has_not = matches!(&condition.kind, ExprKind::Unary(UnaryOp::Not, of) if succeeded(of));
            return has_not && breaks.next().is_none();
        }
        breaks.all(|end| {
            self.inside.iter().any(|stmt| {
                matches!(&stmt.kind, StmtKind::If { condition, then, .. }
                    if succeeded(condition) && then.stmts.iter().any(|stmt| stmt.id == end.id))
            })
        })
    }

    /// Whether the operands of the poll, or statements outside the loop, depend on how often it was
    /// polled. That number is unknown.
    fn is_counted(&self, repeated: &Stmt, kernel: &Block, slice: &Slice) -> bool {
        let own: QuickSet<StmtId> = self.inside.iter().map(|stmt| stmt.id).chain([repeated.id]).collect();
        let mut is_counted = reads(&self.poll.kind, |local| self.assigns(local));
        visit::for_each_stmt(kernel, &mut |stmt| {
            let is_other = !own.contains(&stmt.id) && slice.keeps(stmt);
            is_counted |=
                is_other && reads(&stmt.kind, |local| self.assigns(local) && !self.has_result(local));
        });
        is_counted
    }
}

/// Whether a statement reads one of some variables.
fn reads(kind: &StmtKind, is_one: impl Fn(LocalId) -> bool) -> bool {
    let mut any = false;
    for expr in visit::operands(kind) {
        visit::each_local(expr, &mut |local| any |= is_one(local));
    }
    any
}

/// Returns the variable that receives the result of a poll.
fn result(kind: &StmtKind) -> Option<LocalId> {
    let StmtKind::Barrier { op, .. } = kind else { return None };
    if let BarrierOp::TestWait { dest, .. }
    | BarrierOp::TryWait { dest, .. }
    | BarrierOp::TryWaitFor { dest, .. } = op
    {
        return Some(*dest);
    }
    None
}

/// Whether a statement of the loop with this label has no observable effect.
fn is_unobservable(kind: &StmtKind, own: Label) -> bool {
    matches!(kind, StmtKind::Continue(label) if *label == own)
        || matches!(
            kind,
            StmtKind::Assign { .. }
                | StmtKind::Assert { .. }
                | StmtKind::Trap
                | StmtKind::If { .. }
                | StmtKind::Break(_)
                | StmtKind::TraceSpan { .. }
        )
}
