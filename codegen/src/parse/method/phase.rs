//! Phases of barriers, kept in a variable.

use super::Args;
use crate::diag::Code;
use crate::ir::{BarrierOp, Compound, Expr, ExprKind, Scope, Span, StmtKind, Type};
use crate::parse::cx::Cx;
use crate::parse::device::Argument;
use crate::parse::pipeline::number;
use crate::parse::stmt::unit;
use crate::parse::wording::given;

impl Cx<'_> {
    /// `Phase::new()` and `Phase::opposite()`.
    pub(in crate::parse) fn new_phase(&mut self, name: &str, args: &[&syn::Expr], span: Span) -> Expr {
        let parity = match name {
            "new" => 0,
            "opposite" => 1,
            _ => {
                self.error(Code::UnknownName, span, format!("`Phase` has no function `{name}`"))
                    .help("there are `Phase::new()` and `Phase::opposite()`");
                return Expr::error(span);
            }
        };
        match self.values::<0>(name, args, span) {
            Some([]) => self.compound(Compound::Phase, vec![number(parity, span)], span),
            None => Expr::error(span),
        }
    }

    pub(super) fn phase_method(
        &mut self,
        parts: Vec<Expr>,
        name: &str,
        args: &Args,
        span: Span,
    ) -> Option<Expr> {
        let [parity] = <[Expr; 1]>::try_from(parts).ok()?;
        match name {
            "parity" | "flip" => self.exactly::<0>(name, args, span),
            _ => return None,
        }
        .map(|[]| {
            if name == "parity" {
                return Expr { span, ..parity };
            }
            if let Some(local) = self.state(&parity, span) {
                self.flip(local, span);
            }
            unit(span)
        })
        .or(Some(Expr::error(span)))
    }

    /// `barrier.wait_next(&mut phase)`.
    pub(super) fn wait_next(&mut self, barrier: Expr, call: &syn::ExprMethodCall, span: Span) -> Expr {
        let arguments: Vec<_> = call.args.iter().collect();
        let [argument] = arguments[..] else {
            let message = format!("`wait_next` takes one argument, but {}", given(arguments.len()));
            self.error(Code::ArgumentCount, span, message).help("write `full.wait_next(&mut phase)`");
            return Expr::error(span);
        };
        let (phase, by_mut) = match self.argument(argument) {
            Argument::Reference { value, mutable } => (value, mutable),
            Argument::Value(value) => (value, false),
        };
        if matches!(phase.kind, ExprKind::Error) {
            return Expr::error(span);
        }
        if self.resolve(&phase.ty) != Type::Compound(Compound::Phase) {
            let message = format!("`wait_next` takes a `Phase`, not {}", self.infer.name(&phase.ty));
            self.error(Code::TypeMismatch, phase.span, message)
                .help("pass `&mut phase`, of `let mut phase = Phase::new();`; a parity is for `wait`");
            return Expr::error(span);
        }
        if !by_mut {
            let message = "`wait_next` changes the phase, so it takes a `&mut`";
            self.error(Code::TypeMismatch, phase.span, message).help("write `&mut phase`");
            return Expr::error(span);
        }
        let ExprKind::Compound(parts) = phase.kind else { return Expr::error(span) };
        for parity in parts {
            if let Some(local) = self.state(&parity, span) {
                let (barrier, op) = (barrier.clone(), BarrierOp::Wait { parity });
                self.emit(StmtKind::Barrier { barrier, op, scope: Scope::Cluster }, span);
                self.flip(local, span);
            }
        }
        unit(span)
    }
}
