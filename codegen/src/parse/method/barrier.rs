//! Methods of mbarriers.

use super::Args;
use crate::ir::{BarrierOp, Expr, Scalar, Span, StmtKind};
use crate::parse::cx::Cx;
use crate::parse::stmt::unit;

impl Cx<'_> {
    pub(super) fn barrier_method(
        &mut self,
        barrier: Expr,
        name: &str,
        args: &Args,
        span: Span,
    ) -> Option<Expr> {
        type Make = fn(Expr) -> BarrierOp;
        let with_operand: Make = match name {
            "arrive" | "invalidate" => {
                if self.exactly::<0>(name, args, span).is_some() {
                    let op = if name == "arrive" { BarrierOp::Arrive } else { BarrierOp::Invalidate };
                    self.emit(StmtKind::Barrier { barrier, op }, span);
                }
                return Some(unit(span));
            }
            "init" => |count| BarrierOp::Init { count },
            "arrive_expect_tx" => |bytes| BarrierOp::ArriveExpectTx { bytes },
            "expect_tx" => |bytes| BarrierOp::ExpectTx { bytes },
            "wait" => |parity| BarrierOp::Wait { parity },
            "try_wait" => {
                let Some([parity]) = self.exactly(name, args, span) else { return Some(Expr::error(span)) };
                self.expect(&parity, &Scalar::U32.into());
                let (dest, value) = self.temporary("completed", Scalar::Bool, span);
                self.emit(StmtKind::Barrier { barrier, op: BarrierOp::TryWait { dest, parity } }, span);
                return Some(value);
            }
            _ => return None,
        };
        if let Some([operand]) = self.exactly(name, args, span)
            && self.expect(&operand, &Scalar::U32.into())
        {
            self.emit(StmtKind::Barrier { barrier, op: with_operand(operand) }, span);
        }
        Some(unit(span))
    }
}
