//! `hint`: attaches a cache policy to the copies of a map, or to the plain accesses and copies of a
//! slice of global memory.

use crate::diag::mistake;
use crate::ir::{Expr, ExprKind, MapRef, Span, Type};
use crate::parse::cx::Cx;

impl Cx<'_> {
    /// Resolves `receiver.hint(policy)`. The policy is evaluated here. Its variable may change
    /// before the access.
    pub(super) fn hinted(
        &mut self,
        receiver: Expr,
        is_hinted: bool,
        policy: Expr,
        span: Span,
    ) -> Option<Expr> {
        if is_hinted {
            self.error(mistake::Copy::SecondHint, span);
            return None;
        }
        let ty = receiver.ty.clone();
        let (held, policy_now) = self.builder.temporary("hint", Type::CachePolicy, span);
        self.builder.assign(held, policy);
        Some(Expr { kind: ExprKind::Hinted(Box::new(receiver), Box::new(policy_now)), ty, span })
    }
}

/// The receiver of a method of a map or a slice.
pub(super) struct Target {
    /// The map, or the slice, which has no index.
    pub(super) map: MapRef,
    /// The cache policy of its accesses.
    pub(super) hint: Option<Expr>,
}

impl Target {
    /// Returns the map or slice that `receiver` refers to, or `None` if an error was reported for
    /// it.
    pub(super) fn of(receiver: &Expr) -> Option<Self> {
        if let ExprKind::Hinted(receiver, policy) = &receiver.kind {
            return Some(Self { hint: Some((**policy).clone()), ..Self::of(receiver)? });
        }
        if let ExprKind::Member(param, index) = &receiver.kind {
            let index = Some((**index).clone());
            return Some(Self { map: MapRef { param: *param, index }, hint: None });
        }
        let ExprKind::Param(param) = receiver.kind else { return None };
        Some(Self { map: MapRef { param, index: None }, hint: None })
    }
}
