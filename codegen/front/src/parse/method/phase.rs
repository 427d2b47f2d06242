//! Phases of barriers that are kept in a variable.

use crate::ir::{BarrierOp, Compound, Expr, Scope, Span, StmtKind};
use crate::parse::compound::{compound, state};
use crate::parse::cx::Cx;
use crate::parse::shared::pipeline::{flip, number};
use crate::parse::stmt::unit;
use crate::words::{PhaseCall, PhaseFunctionCall};

impl Cx<'_> {
    pub(super) fn phase_method(&mut self, parts: Vec<Expr>, call: PhaseCall, span: Span) -> Option<Expr> {
        let [parity] = <[Expr; 1]>::try_from(parts).ok()?;
        match call {
            PhaseCall::Parity => Some(Expr { span, ..parity }),
            PhaseCall::Flip => {
                let local = state(self.sink, &parity, span)?;
                flip(&mut self.builder, local, span);
                Some(unit(span))
            }
        }
    }

    /// Waits for the phase with these parts, and advances it to the next.
    pub(super) fn wait_next(&mut self, barrier: &Expr, phase: Vec<Expr>, span: Span) -> Option<Expr> {
        for parity in phase {
            let local = state(self.sink, &parity, span)?;
            let (barrier, op) = (barrier.clone(), BarrierOp::Wait { parity });
            self.builder.emit(StmtKind::Barrier { barrier, op, scope: Scope::Cluster }, span);
            flip(&mut self.builder, local, span);
        }
        Some(unit(span))
    }
}

/// Resolves `Phase::new()` and `Phase::opposite()`.
pub(in crate::parse) fn new_phase(call: PhaseFunctionCall, span: Span) -> Expr {
    let parity = match call {
        PhaseFunctionCall::New => 0,
        PhaseFunctionCall::Opposite => 1,
    };
    compound(Compound::Phase, vec![number(parity, span)], span)
}
