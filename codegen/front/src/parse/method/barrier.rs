//! Methods of mbarriers.

use crate::ir::{BarrierOp, Expr, Scalar, Scope, Span, StmtKind, Type};
use crate::parse::cx::Cx;
use crate::parse::stmt::unit;
use crate::words::{BarrierCall, BarrierWord, Word};

impl Cx<'_> {
    pub(super) fn barrier_method(&mut self, barrier: Expr, call: BarrierCall, span: Span) -> Option<Expr> {
        let mut result = unit(span);
        // Creates the local that receives the result of the operation.
        let mut dest = |cx: &mut Self, word: BarrierWord, ty: Type| {
            let (dest, value) = cx.builder.temporary(&word.name(), ty, span);
            result = value;
            dest
        };
        let truth = Type::from(Scalar::Bool);
        let op = match call {
            BarrierCall::Init { count } => BarrierOp::Init { count },
            BarrierCall::Invalidate => BarrierOp::Invalidate,
            BarrierCall::Arrive => BarrierOp::Arrive,
            BarrierCall::ArriveMany { count } => BarrierOp::ArriveMany { count },
            BarrierCall::ArriveToken => {
                BarrierOp::ArriveToken { dest: dest(self, BarrierWord::ArriveToken, Type::Token) }
            }
            BarrierCall::ArriveDrop => BarrierOp::ArriveDrop,
            BarrierCall::ArriveExpectTx { bytes } => BarrierOp::ArriveExpectTx { bytes },
            BarrierCall::ExpectTx { bytes } => BarrierOp::ExpectTx { bytes },
            BarrierCall::Wait { parity } => BarrierOp::Wait { parity },
            BarrierCall::WaitToken { token } => BarrierOp::WaitToken { token },
            BarrierCall::WaitNext { phase } => return self.wait_next(&barrier, phase, span),
            BarrierCall::TestWait { parity } => {
                BarrierOp::TestWait { dest: dest(self, BarrierWord::TestWait, truth), parity }
            }
            BarrierCall::TryWait { parity } => {
                BarrierOp::TryWait { dest: dest(self, BarrierWord::TryWait, truth), parity }
            }
            BarrierCall::TryWaitFor { parity, nanoseconds } => BarrierOp::TryWaitFor {
                dest: dest(self, BarrierWord::TryWaitFor, truth),
                parity,
                nanoseconds,
            },
        };
        self.builder.emit(StmtKind::Barrier { barrier, op, scope: Scope::Cluster }, span);
        Some(result)
    }
}
