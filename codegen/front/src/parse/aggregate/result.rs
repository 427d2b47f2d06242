//! Structs and tuples that come from one of several places: branches, or the exits of a function.

use super::{leaves, leaves_with_holders, with_leaves};
use crate::diag::mistake::Syntax;
use crate::ir::{Block, Expr, ExprKind, Span, Type};
use crate::parse::cx::Cx;

impl Cx<'_> {
    /// Joins the values of several branches, which have the same type. Parts that are the same
    /// object in all branches remain it; each branch assigns the others to locals.
    pub(in crate::parse) fn join_parts(&mut self, branches: &mut [(Block, Expr)], span: Span) -> Expr {
        let values: Vec<_> = branches.iter().map(|(_, value)| value.clone()).collect();
        let is_reached = |value: &Expr| value.ty != Type::Never;
        let Some(tree) = values.iter().find(|value| is_reached(value)) else { return Expr::error(span) };
        let all: Vec<_> = values.iter().map(|value| is_reached(value).then(|| leaves(value))).collect();
        let mut joined = vec![];
        for (at, leaf) in leaves_with_holders(tree).iter().enumerate() {
            let mut others = all.iter().flatten().filter_map(|leaves| leaves.get(at));
            if others.all(|other| is_same_object(leaf.value, other)) {
                joined.push(leaf.value.clone());
                continue;
            }
            if !leaf.is_copied() || !self.infer.resolve(&leaf.value.ty).is_storable() {
                self.error(Syntax::Chosen(self.infer.partial(leaf.ty())), span);
                return Expr::error(span);
            }
            let (id, read) = self.builder.temporary("chosen", leaf.value.ty.clone(), span);
            joined.push(read);
            for ((block, _), leaves) in branches.iter_mut().zip(&all) {
                let Some(&value) = leaves.as_ref().and_then(|leaves| leaves.get(at)) else { continue };
                let (mut assign, ()) = self.block(|cx| cx.builder.assign(id, value.clone()));
                block.stmts.append(&mut assign.stmts);
            }
        }
        Expr { span, ..with_leaves(tree, &mut joined.into_iter()) }
    }

    /// Passes a struct or tuple to the caller of the innermost function. `is_only` says that there
    /// is no other exit.
    pub(in crate::parse) fn leave_with_parts(&mut self, value: &Expr, is_only: bool) {
        let known = self.frames.exit().and_then(|exit| exit.parts.clone());
        if let Some(result) = self.assign_result(known, value, is_only) {
            self.frames.set_result(result);
        }
    }

    /// Assigns the parts of a value to the locals of the result `known`, of which it is one of
    /// several values. The first value declares the locals: the result is returned then.
    pub(in crate::parse) fn assign_result(
        &mut self,
        known: Option<Expr>,
        value: &Expr,
        is_only: bool,
    ) -> Option<Expr> {
        let span = value.span;
        let Some(known) = known else {
            let mut results = vec![];
            for leaf in leaves_with_holders(value) {
                let is_constant =
                    matches!(leaf.value.kind, ExprKind::Const(_) | ExprKind::Shared(_) | ExprKind::Param(_));
                let is_kept = is_only && is_constant || !leaf.is_copied();
                if is_kept || !self.infer.resolve(&leaf.value.ty).is_storable() {
                    results.push(leaf.value.clone());
                    continue;
                }
                let (id, read) = self.builder.temporary("result", leaf.value.ty.clone(), span);
                self.builder.assign(id, leaf.value.clone());
                results.push(read);
            }
            return Some(with_leaves(value, &mut results.into_iter()));
        };
        for (result, leaf) in leaves_with_holders(&known).into_iter().zip(leaves(value)) {
            match result.value.kind {
                _ if is_same_object(result.value, leaf) => {}
                ExprKind::Local(id) if result.is_copied() => self.builder.assign(id, leaf.clone()),
                _ => {
                    self.error(Syntax::Chosen(self.infer.partial(result.ty())), span);
                    return None;
                }
            }
        }
        None
    }
}

/// Whether both are the same object outside registers. Whether two expressions have the same value
/// is not decided here.
pub(super) fn is_same_object(one: &Expr, other: &Expr) -> bool {
    match (&one.kind, &other.kind) {
        (ExprKind::Shared(one), ExprKind::Shared(other)) => one == other,
        (ExprKind::Param(one), ExprKind::Param(other)) => one == other,
        (ExprKind::Unit, ExprKind::Unit) => true,
        _ => false,
    }
}
