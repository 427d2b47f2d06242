//! `hint`: a map or a slice of global memory, with the cache policy that its copies are to carry.

use super::Args;
use crate::diag::Code;
use crate::ir::{Expr, ExprKind, ParamId, Span, Type};
use crate::parse::cx::Cx;

impl Cx<'_> {
    /// `receiver.hint(policy)`. The policy is read here, whatever becomes of its variable until a copy is asked for.
    pub(super) fn hinted(&mut self, receiver: Expr, is_hinted: bool, args: &Args, span: Span) -> Expr {
        let Some([policy]) = self.exactly("hint", args, span) else { return Expr::error(span) };
        if !self.expect(&policy, &Type::CachePolicy) {
            return Expr::error(span);
        }
        if is_hinted {
            self.error(Code::UnsupportedExpression, span, "this has a hint already")
                .help("give each copy one policy");
            return Expr::error(span);
        }
        let ty = receiver.ty.clone();
        let (held, policy_now) = self.temporary("hint", Type::CachePolicy, span);
        self.assign(held, policy);
        Expr { kind: ExprKind::Hinted(Box::new(receiver), Box::new(policy_now)), ty, span }
    }
}

/// The parameter that a map or a slice is, and the policy that its copies carry.
pub(super) fn param_and_hint(receiver: &Expr) -> Option<(ParamId, Option<Expr>)> {
    match &receiver.kind {
        ExprKind::Param(id) => Some((*id, None)),
        ExprKind::Hinted(receiver, policy) => {
            let (id, _) = param_and_hint(receiver)?;
            Some((id, Some((**policy).clone())))
        }
        _ => None,
    }
}
