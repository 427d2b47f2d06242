//! mbarrier operations.

use tma_front::ir::{BarrierOp, Expr, LocalId, Scope, Type};

use super::types::pointer;
use super::{Cx, Lower, expr, locals, nvvm};

/// Lowers an operation on `barrier`.
pub(super) fn operation(cx: &mut Cx<'_, '_>, barrier: &Expr, op: &BarrierOp, scope: Scope) -> Lower<()> {
    let is_remote = matches!(barrier.ty, Type::Remote(_));
    // In a cluster, other blocks may have arrived, and their writes must be visible.
    let cluster = cx.has_clusters() && scope == Scope::Cluster;
    let (instruction, operands): (_, &[&Expr]) = match op {
        BarrierOp::Arrive if is_remote => (nvvm::remote_mbarrier_arrive(cluster), &[]),
        BarrierOp::ArriveExpectTx { bytes } if is_remote => {
            (nvvm::REMOTE_MBARRIER_ARRIVE_EXPECT_TX, &[bytes])
        }
        BarrierOp::Init { count } => (nvvm::MBARRIER_INIT, &[count]),
        BarrierOp::Invalidate => (nvvm::MBARRIER_INVAL, &[]),
        BarrierOp::Arrive => (nvvm::MBARRIER_ARRIVE, &[]),
        BarrierOp::ArriveMany { count } => (nvvm::MBARRIER_ARRIVE_MANY, &[count]),
        BarrierOp::ArriveToken { .. } => (nvvm::MBARRIER_ARRIVE_TOKEN, &[]),
        BarrierOp::ArriveDrop => (nvvm::MBARRIER_ARRIVE_DROP, &[]),
        BarrierOp::ArriveExpectTx { bytes } => (nvvm::MBARRIER_ARRIVE_EXPECT_TX, &[bytes]),
        BarrierOp::ExpectTx { bytes } => (nvvm::MBARRIER_EXPECT_TX, &[bytes]),
        BarrierOp::Wait { parity } => (nvvm::mbarrier_wait(cluster), &[parity]),
        BarrierOp::WaitToken { token } => (nvvm::mbarrier_wait_token(cluster), &[token]),
        BarrierOp::TestWait { parity, .. } => (nvvm::mbarrier_test_wait(cluster), &[parity]),
        BarrierOp::TryWait { parity, .. } => (nvvm::mbarrier_try_wait(cluster), &[parity]),
        BarrierOp::TryWaitFor { parity, nanoseconds, .. } => {
            (nvvm::mbarrier_try_wait_for(cluster), &[parity, nanoseconds])
        }
    };
    let mut args = vec![expr::value(cx, barrier).and_then(pointer)?.into()];
    for operand in operands {
        args.push(expr::value(cx, operand)?);
    }
    match answer(op) {
        Some(dest) => {
            let value = nvvm::emit_value(cx, &instruction, &args)?;
            locals::store(cx, dest, value)
        }
        None => nvvm::emit(cx, &instruction, &args).map(|_| ()),
    }
}

/// Returns the local that `op` writes.
fn answer(op: &BarrierOp) -> Option<LocalId> {
    match op {
        BarrierOp::ArriveToken { dest }
        | BarrierOp::TestWait { dest, .. }
        | BarrierOp::TryWait { dest, .. }
        | BarrierOp::TryWaitFor { dest, .. } => Some(*dest),
        BarrierOp::Init { .. }
        | BarrierOp::Invalidate
        | BarrierOp::Arrive
        | BarrierOp::ArriveMany { .. }
        | BarrierOp::ArriveDrop
        | BarrierOp::ArriveExpectTx { .. }
        | BarrierOp::ExpectTx { .. }
        | BarrierOp::Wait { .. }
        | BarrierOp::WaitToken { .. } => None,
    }
}
