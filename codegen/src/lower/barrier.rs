//! mbarrier operations.

use super::types::pointer;
use super::{Cx, Lower, expr, nvvm, place};
use crate::ir::{BarrierOp, Expr, Type};

/// Lowers an operation on `barrier`.
pub(super) fn operation(cx: &mut Cx<'_, '_>, barrier: &Expr, op: &BarrierOp) -> Lower<()> {
    let is_remote = matches!(barrier.ty, Type::Remote(_));
    let barrier = expr::value(cx, barrier).and_then(pointer)?.into();
    // In a cluster other blocks may have arrived, and what they wrote is to be seen.
    let cluster = cx.has_clusters();
    let (instruction, operand) = match op {
        BarrierOp::Arrive if is_remote => (nvvm::REMOTE_MBARRIER_ARRIVE, None),
        BarrierOp::ArriveExpectTx { bytes } if is_remote => {
            (nvvm::REMOTE_MBARRIER_ARRIVE_EXPECT_TX, Some(bytes))
        }
        BarrierOp::Invalidate => (nvvm::MBARRIER_INVAL, None),
        BarrierOp::Arrive => (nvvm::MBARRIER_ARRIVE, None),
        BarrierOp::Init { count } => (nvvm::MBARRIER_INIT, Some(count)),
        BarrierOp::ArriveExpectTx { bytes } => (nvvm::MBARRIER_ARRIVE_EXPECT_TX, Some(bytes)),
        BarrierOp::ExpectTx { bytes } => (nvvm::MBARRIER_EXPECT_TX, Some(bytes)),
        BarrierOp::Wait { parity } => (nvvm::mbarrier_wait(cluster), Some(parity)),
        BarrierOp::TryWait { dest, parity } => {
            let parity = expr::value(cx, parity)?;
            let done = nvvm::emit_value(cx, &nvvm::mbarrier_try_wait(cluster), &[barrier, parity])?;
            return place::store(cx, *dest, done);
        }
    };
    let mut args = vec![barrier];
    if let Some(operand) = operand {
        args.push(expr::value(cx, operand)?);
    }
    nvvm::emit(cx, &instruction, &args)?;
    Ok(())
}
