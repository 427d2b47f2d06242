//! mbarrier operations.

use super::types::pointer;
use super::{Cx, Lower, expr, nvvm, place};
use crate::ir::{BarrierOp, Expr};

/// Lowers an operation on `barrier`.
pub(super) fn operation(cx: &mut Cx<'_, '_>, barrier: &Expr, op: &BarrierOp) -> Lower<()> {
    let barrier = expr::value(cx, barrier).and_then(pointer)?.into();
    let (instruction, operand) = match op {
        BarrierOp::Invalidate => (&nvvm::MBARRIER_INVAL, None),
        BarrierOp::Arrive => (&nvvm::MBARRIER_ARRIVE, None),
        BarrierOp::Init { count } => (&nvvm::MBARRIER_INIT, Some(count)),
        BarrierOp::ArriveExpectTx { bytes } => (&nvvm::MBARRIER_ARRIVE_EXPECT_TX, Some(bytes)),
        BarrierOp::ExpectTx { bytes } => (&nvvm::MBARRIER_EXPECT_TX, Some(bytes)),
        BarrierOp::Wait { parity } => (&nvvm::MBARRIER_WAIT, Some(parity)),
        BarrierOp::TryWait { dest, parity } => {
            let parity = expr::value(cx, parity)?;
            let done = nvvm::emit_value(cx, &nvvm::MBARRIER_TRY_WAIT, &[barrier, parity])?;
            return place::store(cx, *dest, done);
        }
    };
    let mut args = vec![barrier];
    if let Some(operand) = operand {
        args.push(expr::value(cx, operand)?);
    }
    nvvm::emit(cx, instruction, &args)?;
    Ok(())
}
