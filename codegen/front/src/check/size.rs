//! The size of a kernel once its loops are unrolled, counted before anything is emitted. The unit
//! is an operation: a statement, a node of one of its expressions, or an element of an array. A
//! kernel that is too large is not unrolled.

use super::limits::unrolled_iterations;
use crate::diag::Sink;
use crate::diag::mistake::Limits;
use crate::ir::{Block, Expr, ExprKind, For, Kernel, Stmt, StmtKind, visit};
use crate::limits::{KERNEL_OPERATIONS, MAX_UNROLLED_ITERATIONS};

/// Returns the operations of a kernel that can be unrolled, and reports one that is too large.
pub(super) fn check(kernel: &Kernel, sink: &mut Sink) -> Option<u64> {
    let operations = block(&kernel.body, sink)?;
    if operations > KERNEL_OPERATIONS {
        sink.error(Limits::KernelSize { kernel: kernel.path(), operations }, kernel.span);
        return None;
    }
    Some(operations)
}

/// Returns the operations of a block, or `None` if a loop in it was rejected, so that the loops
/// around it are not rejected as well.
fn block(block: &Block, sink: &mut Sink) -> Option<u64> {
    // All statements are visited, even after one was rejected.
    block.stmts.iter().map(|stmt| self::stmt(stmt, sink)).reduce(plus).unwrap_or(Some(0))
}

fn plus(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    Some(a?.saturating_add(b?))
}

fn stmt(stmt: &Stmt, sink: &mut Sink) -> Option<u64> {
    let operands = visit::operands(&stmt.kind).into_iter();
    let own = operands.fold(1, |sum: u64, expr| sum.saturating_add(nodes(expr)));
    let blocks = visit::blocks(&stmt.kind).into_iter();
    let inner = blocks.map(|inner| block(inner, sink)).reduce(plus).unwrap_or(Some(0));
    if let StmtKind::For(unrolled) = &stmt.kind
        && unrolled.unroll
    {
        return plus(unrolled_operations(unrolled, inner?, sink), Some(own));
    }
    let ranges = match_ranges(&stmt.kind);
    plus(inner, Some(own.saturating_add(ranges)))
}

/// Returns the number of comparisons in a `match`.
fn match_ranges(kind: &StmtKind) -> u64 {
    let StmtKind::Match { arms, .. } = kind else { return 0 };
    arms.iter().map(|arm| arm.ranges.len() as u64).sum()
}

/// Returns the operations of all iterations of a loop whose body has `body` operations.
fn unrolled_operations(inner: &For, body: u64, sink: &mut Sink) -> Option<u64> {
    // Other loops were rejected before.
    let iterations =
        unrolled_iterations(inner).filter(|iterations| *iterations <= MAX_UNROLLED_ITERATIONS)?;
    let iterations = u64::try_from(iterations).unwrap_or(0);
    let found = body.saturating_mul(iterations);
    if found <= KERNEL_OPERATIONS {
        return Some(found);
    }
    sink.error(Limits::UnrolledSize { iterations, body }, inner.end.span);
    None
}

fn nodes(expr: &Expr) -> u64 {
    let mut sum = 0_u64;
    visit::within(expr, &mut |node| {
        sum = sum.saturating_add(node.ty.scalars());
        // Indexing a variable touches one element, however many it has.
        if let ExprKind::Index(variable, _) = &node.kind
            && matches!(variable.kind, ExprKind::Local(_))
        {
            sum = sum.saturating_sub(variable.ty.scalars() - 1);
        }
    });
    sum
}
