//! Shared memory that takes space in every block and is not used: a warning.
//!
//! rustc warns of variables that are never named. This finds variables that are named only to be
//! initialised, and parts of pipelines. A variable that one instance of a kernel uses is not
//! reported, since it cannot be declared in that instance alone.

use super::{CheckedKernel, layout};
use crate::diag::Sink;
use crate::diag::mistake::Shared;
use crate::ir::{BarrierOp, Expr, Kernel, Pipeline, SharedId, Span, Stmt, StmtKind, visit};
use crate::quick::QuickSet;

/// Warns of shared variables that no instance of a kernel uses. `instances` are all instances.
pub(super) fn unused(instances: &[&CheckedKernel], sink: &mut Sink) {
    let Some((first, others)) = instances.split_first() else { return };
    let mut unused = unused_in(first.kernel());
    for other in others {
        // Instances declare the same variables in the same order.
        let unused_here = unused_in(other.kernel());
        unused.retain(|id| unused_here.contains(id));
    }
    let kernel = first.kernel();
    let whole = |pipeline: &&Pipeline| pipeline.parts().all(|part| unused.contains(&part));
    let pipelines: Vec<_> = kernel.pipelines.iter().filter(whole).collect();
    for pipeline in &pipelines {
        let parts: Vec<_> = pipeline.parts().collect();
        warn(kernel, &pipeline.name, &parts, pipeline.span, sink);
    }
    for id in kernel.shared_ids() {
        let in_pipeline = pipelines.iter().any(|pipeline| pipeline.parts().any(|part| part == id));
        if unused.contains(&id) && !in_pipeline {
            let var = kernel.shared_var(id);
            warn(kernel, &var.name, &[id], var.span, sink);
        }
    }
}

/// Returns the variables that nothing refers to, except to initialise or invalidate a barrier.
fn unused_in(kernel: &Kernel) -> QuickSet<SharedId> {
    let mut unused: QuickSet<_> = kernel.shared_ids().collect();
    visit::for_each_stmt(&kernel.body, &mut |stmt| {
        for operand in visit::operands(&stmt.kind) {
            if set_up(stmt).is_some_and(|barrier| std::ptr::eq(barrier, operand)) {
                continue;
            }
            visit::each_shared(operand, &mut |id| {
                unused.remove(&id);
                // Its memory is then in use.
                kernel.shared_var(id).reuses.iter().for_each(|owner| _ = unused.remove(owner));
            });
        }
    });
    unused
}

/// Returns the barrier that a statement initialises or invalidates.
fn set_up(stmt: &Stmt) -> Option<&Expr> {
    let StmtKind::Barrier { barrier, op, scope: _ } = &stmt.kind else { return None };
    match op {
        BarrierOp::Init { .. } | BarrierOp::Invalidate => Some(barrier),
        BarrierOp::Arrive
        | BarrierOp::ArriveMany { .. }
        | BarrierOp::ArriveToken { .. }
        | BarrierOp::ArriveDrop
        | BarrierOp::ArriveExpectTx { .. }
        | BarrierOp::ExpectTx { .. }
        | BarrierOp::Wait { .. }
        | BarrierOp::WaitToken { .. }
        | BarrierOp::TestWait { .. }
        | BarrierOp::TryWait { .. }
        | BarrierOp::TryWaitFor { .. } => None,
    }
}

fn warn(kernel: &Kernel, name: &str, parts: &[SharedId], span: Span, sink: &mut Sink) {
    // A leading underscore means that a variable is unused on purpose.
    if name.starts_with('_') {
        return;
    }
    let owners = || parts.iter().map(|&part| kernel.shared_var(part)).filter(|var| var.reuses.is_empty());
    let bytes = owners().map(|var| layout::size(&var.ty)).sum();
    let mut set_up_at: Option<Span> = None;
    visit::for_each_stmt(&kernel.body, &mut |stmt| {
        if let Some(barrier) = set_up(stmt) {
            visit::each_shared(barrier, &mut |id| {
                if parts.contains(&id) {
                    set_up_at.get_or_insert(stmt.origin.span);
                }
            });
        }
    });
    sink.warn(Shared::Unused { name: name.to_owned(), bytes, set_up: set_up_at }, span);
}
