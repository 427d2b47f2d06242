//! `if`, `match`, loops, and the expressions that leave them.

use syn::{Pat, RangeLimits};

use super::aggregate::is_aggregate;
use super::cx::{BreakValue, BreakableKind, Cx};
use super::method::tile_at::known_bool;
use super::stmt::unit;
use super::types::name_expr;
use crate::diag::mistake::{Signature, Syntax, Value};
use crate::infer::rule::Rule;
use crate::ir::{Arm, Block, Compound, Const, Expr, ExprKind, Label, Scalar, Span, StmtKind, Type};

impl Cx<'_> {
    pub(super) fn if_value(&mut self, if_: &syn::ExprIf, span: Span) -> Expr {
        if let syn::Expr::Let(let_) = &*if_.cond {
            return self.if_let(let_, if_, span);
        }
        let condition = self.expr(&if_.cond);
        self.expect(&condition, &Scalar::Bool.into());
        let holds = known_bool(&self.infer, &condition);
        let (then, then_value) =
            self.left_out(holds == Some(false), |cx| cx.branch(|cx| cx.block_value(&if_.then_branch)));
        let (otherwise, else_value) = match &if_.else_branch {
            Some((_, otherwise)) => {
                self.left_out(holds == Some(true), |cx| cx.branch(|cx| cx.expr(otherwise)))
            }
            None => (Block::default(), unit(span)),
        };
        self.either(condition, [(then, then_value), (otherwise, else_value)], span)
    }

    /// Emits two branches, and joins their values.
    pub(super) fn either(&mut self, condition: Expr, branches: [(Block, Expr); 2], span: Span) -> Expr {
        let mut branches = Vec::from(branches);
        let value = self.join(&mut branches, span);
        let otherwise = branches.pop().map(|(block, _)| block).unwrap_or_default();
        let then = branches.pop().map(|(block, _)| block).unwrap_or_default();
        self.builder.emit(StmtKind::If { condition, then, otherwise }, span);
        value
    }

    /// Joins the values of several branches: each branch assigns its value to a local that is read
    /// afterwards.
    fn join(&mut self, branches: &mut [(Block, Expr)], span: Span) -> Expr {
        let going_on = |value: &&Expr| value.ty != Type::Never;
        let Some(first) = branches.iter().map(|(_, value)| value).find(going_on).cloned() else {
            return Expr { ty: Type::Never, ..unit(span) };
        };
        let ty = first.ty.clone();
        for (_, value) in branches.iter() {
            if !self.expect(value, &ty) {
                return Expr::error(span);
            }
        }
        if is_aggregate(&self.infer.resolve(&ty)) {
            return self.join_parts(branches, span);
        }
        match self.selected(&ty, span) {
            Type::Unit => return unit(span),
            Type::Error => return Expr::error(span),
            _ => {}
        }
        let (id, result) = self.builder.temporary("chosen", ty, span);
        for (block, value) in branches {
            if value.ty != Type::Never {
                let value = value.clone();
                let (mut assign, ()) = self.block(|cx| cx.builder.assign(id, value));
                block.stmts.append(&mut assign.stmts);
            }
        }
        result
    }

    /// Returns the type of a value that control flow selects, or reports a type whose values cannot
    /// be stored in a local.
    fn selected(&mut self, ty: &Type, span: Span) -> Type {
        let ty = self.infer.resolve(ty);
        match &ty {
            Type::TensorMap(_)
            | Type::Im2colMap(..)
            | Type::Maps(_)
            | Type::Global(_)
            | Type::Peers(_)
            | Type::Peer(_)
            | Type::Dim3
            | Type::Choice(_)
            | Type::Compound(_) => {
                self.error(Syntax::Chosen(self.infer.partial(&ty)), span);
                Type::Error
            }
            Type::Unit
            | Type::Error
            | Type::Never
            | Type::Scalar(_)
            | Type::CachePolicy
            | Type::Array(..)
            | Type::Accumulator(_)
            | Type::Rows(_)
            | Type::Fragment(_)
            | Type::WarpFragment(_)
            | Type::Tile(_)
            | Type::Barrier
            | Type::Token
            | Type::SharedArray(..)
            | Type::Stages(..)
            | Type::Remote(_)
            | Type::SharedMap(_)
            | Type::Infer(_) => ty,
        }
    }

    pub(super) fn match_value(&mut self, match_: &syn::ExprMatch, span: Span) -> Expr {
        let value = self.expr(&match_.expr);
        if let Type::Compound(Compound::Option(_)) = self.infer.resolve(&value.ty) {
            return self.match_option(&value, &match_.arms, span);
        }
        if value.is_error() || !self.require(&value.ty, Rule::Matched, value.span) {
            return Expr::error(span);
        }
        let mut ranges = vec![];
        let mut branches = vec![];
        let mut default = None;
        for arm in &match_.arms {
            let mut accepted = vec![];
            let is_default = self.pattern(&arm.pat, &value, &mut accepted);
            let branch = self.branch(|cx| cx.expr(&arm.body));
            match default {
                // Arms after `_` are unreachable. rustc reports that.
                Some(_) => continue,
                None if is_default => default = Some(branches.len()),
                None => {}
            }
            ranges.push(accepted);
            branches.push(branch);
        }
        let accepted = ranges.iter().flatten().copied().collect();
        if default.is_none() && !self.require(&value.ty, Rule::Covered(accepted), span) {
            return Expr::error(span);
        }
        let result = self.join(&mut branches, span);
        let mut arms: Vec<_> =
            ranges.into_iter().zip(branches).map(|(ranges, (body, _))| Arm { ranges, body }).collect();
        // Without `_`, the last arm takes the remaining values.
        let otherwise = arms.pop().map(|arm| arm.body).unwrap_or_default();
        self.builder.emit(StmtKind::Match { value, arms, otherwise }, span);
        result
    }

    /// Collects the values that `pat` accepts, and returns whether it accepts all.
    fn pattern(&mut self, pat: &Pat, value: &Expr, accepted: &mut Vec<(i128, i128)>) -> bool {
        match pat {
            Pat::Wild(_) => true,
            Pat::Paren(paren) => self.pattern(&paren.pat, value, accepted),
            Pat::Or(or) => {
                let mut all = false;
                for case in &or.cases {
                    all |= self.pattern(case, value, accepted);
                }
                all
            }
            Pat::Lit(lit) => {
                if let Some(n) = self.pattern_value(&syn::Expr::Lit(lit.clone()), value) {
                    accepted.push((n, n));
                }
                false
            }
            Pat::Path(path) => {
                if let Some(n) = self.pattern_value(&syn::Expr::Path(path.clone()), value) {
                    accepted.push((n, n));
                }
                false
            }
            Pat::Range(range) => {
                self.range_pattern(range, value, accepted);
                false
            }
            Pat::Ident(name) if self.is_constant_name(&name.ident.to_string()) => {
                if let Some(n) = self.pattern_value(&name_expr(name.ident.clone()), value) {
                    accepted.push((n, n));
                }
                false
            }
            other => {
                self.error(Syntax::Pattern, Span::of(other));
                false
            }
        }
    }

    fn range_pattern(&mut self, range: &syn::PatRange, value: &Expr, accepted: &mut Vec<(i128, i128)>) {
        let start = match &range.start {
            Some(start) => self.pattern_value(start, value),
            None => Some(i128::MIN),
        };
        let end = match &range.end {
            Some(end) => self.pattern_value(end, value),
            None => Some(i128::MAX),
        };
        let (Some(start), Some(end)) = (start, end) else { return };
        let end = if matches!(range.limits, RangeLimits::HalfOpen(_)) && range.end.is_some() {
            end - 1
        } else {
            end
        };
        if start <= end {
            accepted.push((start, end));
        }
    }

    /// Returns the value of a literal or constant in a pattern. Its range is checked once the type
    /// is known.
    fn pattern_value(&mut self, expr: &syn::Expr, value: &Expr) -> Option<i128> {
        let found = self.expr(expr);
        if found.is_error() || !self.expect(&found, &value.ty) {
            return None;
        }
        match found.kind {
            ExprKind::Const(Const::Int(n)) => Some(n),
            ExprKind::Const(Const::Bool(b)) => Some(i128::from(b)),
            _ => {
                self.error(Value::NoPattern, found.span);
                None
            }
        }
    }

    /// Whether a lone name in a pattern refers to a constant. A name bound to a variable does not,
    /// whatever its value: as in Rust, it would declare a new variable that matches every value.
    fn is_constant_name(&self, name: &str) -> bool {
        self.frames.lookup(name).is_none() && self.module.constant(name).is_some()
    }

    pub(super) fn while_loop(&mut self, while_: &syn::ExprWhile, span: Span) -> Expr {
        let (header, condition) = self.branch(|cx| cx.expr(&while_.cond));
        self.expect(&condition, &Scalar::Bool.into());
        let (label, body) = self.loop_body(while_.label.as_ref().map(|label| &label.name), |cx| {
            let value = cx.block_value(&while_.body);
            cx.expect(&value, &Type::Unit);
        });
        self.builder.emit(StmtKind::While { label, header, condition, body }, span);
        unit(span)
    }

    pub(super) fn endless_loop(&mut self, loop_: &syn::ExprLoop, span: Span) -> Expr {
        let name = loop_.label.as_ref().map(|label| &label.name);
        let (label, body, value) = self.breakable_body(name, BreakableKind::Loop, |cx, _| {
            let value = cx.block_value(&loop_.body);
            cx.expect(&value, &Type::Unit);
        });
        self.builder.emit(StmtKind::Loop { label, body }, span);
        self.broken(value, span)
    }

    /// Parses a block that `break` with its label leaves.
    pub(super) fn labelled_block(&mut self, name: &syn::Lifetime, block: &syn::Block, span: Span) -> Expr {
        let (label, body, value) = self.breakable_body(Some(name), BreakableKind::Block, |cx, label| {
            let value = cx.block_value(block);
            cx.break_with(label, value);
        });
        self.builder.emit(StmtKind::Labelled { label, body }, span);
        self.broken(value, span)
    }

    /// Returns the value of a loop or block that was left with `value`, if at all.
    fn broken(&self, value: Option<BreakValue>, span: Span) -> Expr {
        match value {
            None => Expr { ty: Type::Never, ..unit(span) },
            Some(BreakValue { parts: Some(parts), .. }) => Expr { span, ..parts },
            Some(BreakValue { local: Some(local), .. }) => self.builder.read(local, span),
            Some(BreakValue { ty: Type::Error, .. }) => Expr::error(span),
            Some(BreakValue { .. }) => unit(span),
        }
    }

    pub(super) fn break_loop(&mut self, break_: &syn::ExprBreak, span: Span) -> Expr {
        let never = Expr { ty: Type::Never, ..unit(span) };
        let value = break_.expr.as_ref().map(|value| self.expr(value));
        let Some((label, kind)) = self.find_breakable(break_.label.as_ref(), "break", span) else {
            return never;
        };
        match (kind, value) {
            (BreakableKind::Conditional, Some(value)) => self.error(Syntax::BreakValue, value.span),
            (BreakableKind::Conditional, None) => {}
            (BreakableKind::Loop | BreakableKind::Block, value) => {
                self.break_with(label, value.unwrap_or(unit(span)));
            }
        }
        let leave = if kind == BreakableKind::Block { StmtKind::Leave } else { StmtKind::Break };
        self.end_spans_inside(Some(label));
        self.builder.emit(leave(label), span);
        never
    }

    /// Makes `value` that of the loop or block `label`, whose type the first of its values decides.
    fn break_with(&mut self, label: Label, value: Expr) {
        if value.ty == Type::Never {
            return;
        }
        let Some(target) = self.frames.breakable_mut(label) else { return };
        let known = target.value.clone();
        if let Some(known) = &known
            && (value.is_error() || !self.expect(&value, &known.ty))
        {
            return;
        }
        if is_aggregate(&self.infer.resolve(&value.ty)) {
            let ty = value.ty.clone();
            if let Some(parts) = self.assign_result(known.and_then(|known| known.parts), &value, false) {
                self.set_break_value(label, BreakValue { ty, local: None, parts: Some(parts) });
            }
            return;
        }
        let known = known.unwrap_or_else(|| {
            let ty = if value.is_error() { Type::Error } else { self.selected(&value.ty, value.span) };
            let local = (!matches!(ty, Type::Unit | Type::Error))
                .then(|| self.builder.local("chosen", ty.clone(), value.span));
            let known = BreakValue { ty, local, parts: None };
            self.set_break_value(label, known.clone());
            known
        });
        if let Some(local) = known.local {
            self.builder.assign(local, value);
        }
    }

    fn set_break_value(&mut self, label: Label, value: BreakValue) {
        if let Some(target) = self.frames.breakable_mut(label) {
            target.value = Some(value);
        }
    }

    pub(super) fn continue_loop(&mut self, continue_: &syn::ExprContinue, span: Span) -> Expr {
        match self.find_breakable(continue_.label.as_ref(), "continue", span) {
            Some((_, BreakableKind::Block)) => {
                let label = continue_.label.as_ref().map(ToString::to_string).unwrap_or_default();
                self.error(Syntax::ContinueBlock { label }, span);
            }
            Some((label, BreakableKind::Loop | BreakableKind::Conditional)) => {
                self.end_spans_inside(Some(label));
                self.builder.emit(StmtKind::Continue(label), span);
            }
            None => {}
        }
        Expr { ty: Type::Never, ..unit(span) }
    }

    fn find_breakable(
        &mut self,
        name: Option<&syn::Lifetime>,
        word: &'static str,
        span: Span,
    ) -> Option<(Label, BreakableKind)> {
        let found = self.frames.find_breakable(name).map(|found| (found.label, found.kind));
        if found.is_none() {
            let mistake = match name {
                None => Syntax::OutsideLoop { word },
                Some(name) => Syntax::UnknownLabel { word, label: name.to_string() },
            };
            self.error(mistake, span);
        }
        found
    }

    pub(super) fn return_value(&mut self, return_: &syn::ExprReturn, span: Span) -> Expr {
        let value = return_.expr.as_ref().map(|value| self.expr(value));
        let never = Expr { ty: Type::Never, ..unit(span) };
        let Some(exit) = self.frames.exit().cloned() else {
            if let Some(value) = value {
                self.error(Signature::Result, value.span);
            }
            self.end_spans_inside(None);
            self.builder.emit(StmtKind::Return, span);
            return never;
        };
        self.leave(&exit, value.unwrap_or(unit(span)), span);
        self.end_spans_inside(None);
        self.builder.emit(StmtKind::Leave(exit.label), span);
        never
    }

    /// Passes `value` to the caller of the function that ends at `exit`.
    pub(super) fn leave(&mut self, exit: &super::cx::Exit, value: Expr, span: Span) {
        let fits = value.ty == Type::Error || self.expect(&Expr { span, ..value.clone() }, &exit.ty);
        if is_aggregate(&exit.ty) && fits && !value.is_error() && value.ty != Type::Never {
            self.leave_with_parts(&value, exit.is_only);
        }
        if let Some(result) = exit.result
            && fits
            && !value.is_error()
        {
            self.builder.assign(result, value);
        }
    }
}
