//! Methods of mbarriers.

use super::Args;
use crate::diag::Code;
use crate::ir::{BarrierOp, Expr, LocalId, Scalar, Scope, Span, StmtKind, Type};
use crate::parse::cx::Cx;
use crate::parse::stmt::unit;
use crate::parse::wording::{arguments, given};

/// A call of a method of `barrier`.
struct Call<'a> {
    barrier: Expr,
    name: &'a str,
    args: &'a Args,
    span: Span,
}

impl Cx<'_> {
    pub(super) fn barrier_method(
        &mut self,
        barrier: Expr,
        name: &str,
        args: &Args,
        span: Span,
    ) -> Option<Expr> {
        let call = Call { barrier, name, args, span };
        let number = || Type::from(Scalar::U32);
        Some(match name {
            "init" => self.barrier_effect(call, [number()], |[count]| BarrierOp::Init { count }),
            "invalidate" => self.barrier_effect(call, [], |[]| BarrierOp::Invalidate),
            "arrive" => self.barrier_effect(call, [], |[]| BarrierOp::Arrive),
            "arrive_many" => self.barrier_effect(call, [number()], |[count]| BarrierOp::ArriveMany { count }),
            "arrive_token" => {
                self.barrier_answer(call, Type::Token, [], |dest, []| BarrierOp::ArriveToken { dest })
            }
            "arrive_drop" => self.barrier_effect(call, [], |[]| BarrierOp::ArriveDrop),
            "arrive_expect_tx" => {
                self.barrier_effect(call, [number()], |[bytes]| BarrierOp::ArriveExpectTx { bytes })
            }
            "expect_tx" => self.barrier_effect(call, [number()], |[bytes]| BarrierOp::ExpectTx { bytes }),
            "wait" => self.barrier_effect(call, [number()], |[parity]| BarrierOp::Wait { parity }),
            "wait_token" => {
                self.barrier_effect(call, [Type::Token], |[token]| BarrierOp::WaitToken { token })
            }
            "test_wait" => self.barrier_answer(call, Scalar::Bool.into(), [number()], |dest, [parity]| {
                BarrierOp::TestWait { dest, parity }
            }),
            "try_wait" => self.barrier_answer(call, Scalar::Bool.into(), [number()], |dest, [parity]| {
                BarrierOp::TryWait { dest, parity }
            }),
            "try_wait_for" => {
                let want = [number(), number()];
                self.barrier_answer(call, Scalar::Bool.into(), want, |dest, [parity, nanoseconds]| {
                    BarrierOp::TryWaitFor { dest, parity, nanoseconds }
                })
            }
            _ => return None,
        })
    }

    /// An operation with operands of the types `want` that gives nothing.
    fn barrier_effect<const N: usize>(
        &mut self,
        call: Call<'_>,
        want: [Type; N],
        op: impl FnOnce([Expr; N]) -> BarrierOp,
    ) -> Expr {
        let Call { barrier, name, args, span } = call;
        if let Some(operands) = self.operands(name, args, want, span) {
            self.emit(StmtKind::Barrier { barrier, op: op(operands), scope: Scope::Cluster }, span);
        }
        unit(span)
    }

    /// An operation with operands of the types `want` that gives a value of type `ty`.
    fn barrier_answer<const N: usize>(
        &mut self,
        call: Call<'_>,
        ty: Type,
        want: [Type; N],
        op: impl FnOnce(LocalId, [Expr; N]) -> BarrierOp,
    ) -> Expr {
        let Call { barrier, name, args, span } = call;
        let Some(operands) = self.operands(name, args, want, span) else { return Expr::error(span) };
        let (dest, value) = self.temporary(name, ty, span);
        self.emit(StmtKind::Barrier { barrier, op: op(dest, operands), scope: Scope::Cluster }, span);
        value
    }

    /// The arguments, if they are as many as `want` has types, and of these.
    fn operands<const N: usize>(
        &mut self,
        name: &str,
        args: &Args,
        want: [Type; N],
        span: Span,
    ) -> Option<[Expr; N]> {
        if args.len() != N {
            let message = format!("`{name}` takes {}, but {}", arguments(N), given(args.len()));
            self.error(Code::ArgumentCount, span, message).help(format!("write {}", usage(name)));
            return None;
        }
        let operands = self.exactly(name, args, span)?;
        let fits =
            operands.iter().zip(&want).fold(true, |fits, (operand, ty)| self.expect(operand, ty) & fits);
        fits.then_some(operands)
    }
}

/// How a method is called, for a call that is not so.
fn usage(name: &str) -> &'static str {
    match name {
        "init" => "`init(count)`, with the arrivals that complete a phase",
        "arrive_many" => "`arrive_many(count)`",
        "arrive_expect_tx" => "`arrive_expect_tx(tile.bytes())`, with the bytes that copies will bring",
        "expect_tx" => "`expect_tx(tile.bytes())`, with the bytes that copies will bring",
        "wait" => "`wait(parity)`: 0 for the first phase, then 1, then 0 again",
        "wait_token" => "`wait_token(token)`, with what `arrive_token()` gave",
        "test_wait" => "`test_wait(parity)`: 0 for the first phase, then 1, then 0 again",
        "try_wait" => "`try_wait(parity)`: 0 for the first phase, then 1, then 0 again",
        "try_wait_for" => "`try_wait_for(parity, nanoseconds)`",
        _ => "it without arguments",
    }
}
