//! Statements of a block: `let`, assignments, and expressions evaluated for their effects.

use syn::{Pat, Stmt};

use super::cx::{Binding, Cx};
use super::device::own_variable;
use super::expr::strict;
use super::item::trusted;
use super::names::{self, refuse_foreign_path, refuse_qualified};
use super::order::spill_if_changed;
use super::span;
use crate::diag::mistake::{Assignment, Attribute, Mismatch, Parameter, Syntax, Trusted};
use crate::infer::Typing;
use crate::ir::{
    BinaryOp, Callee, Expr, ExprKind, IntegerOp, LocalId, MathOp, Scalar, Span, StmtKind, Strictness, Type,
    UnaryOp, visit,
};

impl Cx<'_> {
    /// Parses a block in a new scope and returns the value of its last expression.
    pub(super) fn block_value(&mut self, block: &syn::Block) -> Expr {
        self.scope(|cx| {
            let value = cx.statements(block);
            cx.end_spans_of_scope(value)
        })
    }

    fn statements(&mut self, block: &syn::Block) -> Expr {
        let span = span::of_block(block);
        let mut value = unit(span);
        let mut diverged = false;
        for (i, stmt) in block.stmts.iter().enumerate() {
            let is_last = i + 1 == block.stmts.len();
            value = self.trusting(stmt, |cx| match stmt {
                Stmt::Local(local) => cx.let_(local),
                Stmt::Expr(expr, None) if is_last => cx.expr(expr),
                Stmt::Expr(expr, _) => cx.discard(expr),
                Stmt::Macro(mac) => cx.macro_statement(&mac.mac, Span::of(mac)),
                Stmt::Item(item) => {
                    if let syn::Item::Const(constant) = item {
                        cx.bind_error(&constant.ident);
                    }
                    cx.error(Syntax::Item, Span::of(item));
                    unit(span)
                }
            });
            diverged |= value.ty == Type::Never;
        }
        if diverged { Expr { ty: Type::Never, ..unit(span) } } else { value }
    }

    /// Parses a statement, and exempts it from the protocol check if its attribute says so.
    fn trusting(&mut self, stmt: &Stmt, parse: impl FnOnce(&mut Self) -> Expr) -> Expr {
        let Some(attr) = trusted::attribute(stmt) else { return parse(self) };
        let span = Span::of(attr);
        let Some(reason) = trusted::reason(attr) else {
            self.error(Attribute::TrustedWithoutReason(Trusted::Statement), span);
            return parse(self);
        };
        self.within_call(Callee::Trusted { reason }, span, parse)
    }

    /// Parses an expression for its effect and drops its value.
    fn discard(&mut self, expr: &syn::Expr) -> Expr {
        let value = self.expr(expr);
        let ty = if value.ty == Type::Never { Type::Never } else { Type::Unit };
        let span = value.span;
        self.compute_leaves(&value);
        Expr { ty, ..unit(span) }
    }

    /// Reports a reference that `let` would bind to another name, unless only its value matters.
    fn refuse_kept_reference(&mut self, pat: &Pat, init: &syn::Expr, span: Span) -> bool {
        let Pat::Ident(name) = pat else { return false };
        let syn::Expr::Path(path) = init else { return false };
        let found = own_variable(path).and_then(|name| self.frames.lookup(&name));
        let is_scalar = matches!(found, Some(Binding::Reference { .. }));
        is_scalar && name.mutability.is_some() && self.refuse_reference(init, span)
    }

    /// Evaluates an unused value if a checked kernel may trap on it. Other values have no effect.
    pub(super) fn compute(&mut self, value: Expr) {
        let mut may_stop = false;
        visit::within(&value, &mut |node| {
            may_stop |= matches!(
                node.kind,
                ExprKind::Binary(BinaryOp::Div | BinaryOp::Rem, ..)
                    | ExprKind::Unary(UnaryOp::Neg, _)
                    | ExprKind::Math(MathOp::Abs, _)
                    | ExprKind::Integer(IntegerOp::Ilog2, _)
                    | ExprKind::Index(..)
                    | ExprKind::Stage(..)
            );
            if let ExprKind::Binary(op, _, _, Strictness::Strict) = node.kind {
                may_stop |= op.overflow().is_some();
            }
        });
        if may_stop && self.infer.resolve(&value.ty).is_storable() {
            let (id, _) = self.builder.temporary("unused", value.ty.clone(), value.span);
            self.builder.assign(id, value);
        }
    }

    fn let_(&mut self, local: &syn::Local) -> Expr {
        let span = span::of_local(local);
        if let Some(init) = &local.init
            && let Some((_, diverge)) = &init.diverge
        {
            self.let_else(local, init, diverge);
            return unit(span);
        }
        let (pat, annotation) = match &local.pat {
            Pat::Type(typed) => (&*typed.pat, Some(&*typed.ty)),
            pat => (pat, None),
        };
        let name = match pat {
            Pat::Ident(name) if name.subpat.is_none() && name.by_ref.is_none() => Some(name),
            _ => None,
        };
        let Some(init) = &local.init else {
            self.error(Syntax::LetWithoutValue, span);
            self.bind_pattern(pat, None);
            return unit(span);
        };
        let ty = annotation.map(|ty| self.ty(ty));
        let label = name.map_or_else(|| "_".to_owned(), |name| name.ident.to_string());
        let object = self.declared_shared(&label, ty.as_ref(), &init.expr);
        let mut value = object.unwrap_or_else(|| self.expr(&init.expr));
        if let Some(ty) = &ty
            && !value.is_error()
            && !self.expect(&value, ty)
        {
            value = Expr::error(span);
        }
        let diverges = value.ty == Type::Never;
        if self.refuse_kept_reference(pat, &init.expr, value.span) {
            value = Expr::error(span);
        }
        if let Some(name) = name {
            let known = ty.filter(|_| value.is_error());
            self.bind_value(&name.ident, name.mutability.is_some(), value, known);
        } else {
            let value = Some(value).filter(|value| !value.is_error() && !diverges);
            self.bind_pattern(pat, value);
        }
        Expr { ty: if diverges { Type::Never } else { Type::Unit }, ..unit(span) }
    }

    /// Binds a name to `value`, in a new local if the value needs storage. If an error was already
    /// reported for the value, the name keeps the annotated type, to avoid errors at its uses.
    pub(super) fn bind_value(&mut self, name: &syn::Ident, mutable: bool, value: Expr, known: Option<Type>) {
        let ty = self.infer.resolve(&value.ty);
        let aliasable = match value.kind {
            ExprKind::Const(_) | ExprKind::Shared(_) | ExprKind::Param(_) => !mutable,
            _ => false,
        };
        if value.is_error() || ty == Type::Error {
            let value = Expr { ty: known.unwrap_or(Type::Error), ..Expr::error(value.span) };
            return self.bind(name, Binding::Value(value));
        }
        if let ExprKind::Compound(parts) = value.kind {
            return self.bind_compound(name, mutable, parts, ty);
        }
        if aliasable || !ty.is_storable() {
            if mutable {
                self.error(Assignment::MutableHandle(self.infer.partial(&ty)), name.span().into());
            }
            return self.bind(name, Binding::Value(value));
        }
        let id = self.builder.local(name.to_string(), value.ty.clone(), name.span().into());
        self.builder.assign(id, value);
        self.bind(name, Binding::Local { id, mutable });
    }

    /// Binds a name whose declaration was rejected, to avoid errors at its uses.
    fn bind_error(&mut self, name: &syn::Ident) {
        self.bind(name, Binding::Value(Expr::error(name.span().into())));
    }

    /// Parses `assignee = value`. The value is evaluated first, then the indices of the assignee.
    pub(super) fn assignment(&mut self, assign: &syn::ExprAssign, span: Span) -> Expr {
        if matches!(&*assign.left, syn::Expr::Infer(_)) {
            return self.discard(&assign.right);
        }
        if let syn::Expr::Tuple(_) | syn::Expr::Array(_) = &*assign.left {
            return self.destructuring_assignment(assign, span);
        }
        let mut value = self.expr(&assign.right);
        if let ExprKind::Compound(_) = &value.kind {
            self.assign_compound(&assign.left, &value, span);
            return unit(span);
        }
        let (effects, assignee) = self.block(|cx| cx.assignee(&assign.left));
        spill_if_changed(&mut self.builder, std::slice::from_mut(&mut value), &effects);
        self.builder.append(effects);
        let diverges = value.ty == Type::Never;
        if let Some(assignee) = assignee
            && !value.is_error()
            && self.expect(&value, &assignee.ty)
            && !diverges
        {
            self.builder.emit(assignee.assign(value), span);
        }
        Expr { ty: if diverges { Type::Never } else { Type::Unit }, ..unit(span) }
    }

    /// Parses `assignee op= value`. The value is evaluated first, as in any assignment, unless the
    /// operator belongs to a library type and is therefore a call. Source: The Rust Reference,
    /// "Compound assignment expressions".
    pub(super) fn compound_assignment(&mut self, binary: &syn::ExprBinary, op: BinaryOp, span: Span) -> Expr {
        let (effects, mut right) = self.block(|cx| cx.expr(&binary.right));
        let (assignee_effects, mut assignee) = self.block(|cx| cx.assignee(&binary.left));
        let is_call = assignee.as_ref().is_some_and(|assignee| {
            matches!(self.infer.resolve(&assignee.ty), Type::Scalar(Scalar::F16 | Scalar::Bf16))
        });
        if let (true, Some(assignee)) = (is_call, &mut assignee) {
            self.builder.append(assignee_effects);
            spill_if_changed(&mut self.builder, &mut assignee.index, &effects);
            self.builder.append(effects);
        } else {
            self.builder.append(effects);
            spill_if_changed(&mut self.builder, std::slice::from_mut(&mut right), &assignee_effects);
            self.builder.append(assignee_effects);
        }
        if let Some(assignee) = assignee {
            let left_span = span::of_expr(&binary.left);
            let mut left = self.builder.read(assignee.local, left_span);
            for index in &assignee.index {
                let ty =
                    self.infer.outermost(&left.ty).elements().map_or(Type::Error, |(element, _)| element);
                left = Expr { kind: ExprKind::Index(left.into(), index.clone().into()), ty, span: left_span };
            }
            self.judge_shift(op, &left.ty, &right, binary);
            let value = strict(&mut self.typing(), op, left, right, span);
            if !value.is_error() {
                self.builder
                    .emit(StmtKind::Assign { local: assignee.local, index: assignee.index, value }, span);
            }
        }
        unit(span)
    }

    /// Resolves the target of an assignment, and reports a target that cannot be modified.
    pub(super) fn assignee(&mut self, expr: &syn::Expr) -> Option<Assignee> {
        let span = span::of_expr(expr);
        match expr {
            syn::Expr::Paren(paren) => self.assignee(&paren.expr),
            syn::Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Deref(_)) => {
                if !self.is_reference(&unary.expr) && !self.was_refused(&unary.expr) {
                    self.error(Syntax::Dereference, span);
                    return None;
                }
                self.assignee(&unary.expr)
            }
            syn::Expr::Path(path) => {
                if refuse_qualified(self.sink, path.qself.as_ref(), span) {
                    return None;
                }
                let Some(name) = names::lone_name(&path.path) else {
                    refuse_foreign_path(self.sink, &path.path);
                    return None;
                };
                let (id, mutable) = match self.frames.lookup(&name).cloned() {
                    Some(Binding::Local { id, mutable } | Binding::Reference { id, mutable }) => {
                        (id, mutable)
                    }
                    Some(Binding::Value(value)) if value.is_error() => return None,
                    Some(Binding::Value(_)) => {
                        self.not_assignable(&name, span);
                        return None;
                    }
                    Some(Binding::Compound { value, .. }) => {
                        let ty = self.infer.partial(&value.ty);
                        self.error(Mismatch::Holds { name, ty }, span);
                        return None;
                    }
                    None if self.module.constant(&name).is_some() => {
                        self.error(Assignment::Constant(name), span);
                        return None;
                    }
                    None => {
                        self.unknown_name(&name, span);
                        return None;
                    }
                };
                if !mutable {
                    self.not_assignable(&name, span);
                    return None;
                }
                Some(Assignee { local: id, index: vec![], ty: self.builder.type_of(id).clone() })
            }
            syn::Expr::Index(index) => {
                if self.refuse_part(&index.expr, span) {
                    return None;
                }
                let mut assignee = self.assignee(&index.expr)?;
                let (effects, position) = self.block(|cx| cx.expr(&index.index));
                spill_if_changed(&mut self.builder, &mut assignee.index, &effects);
                self.builder.append(effects);
                let ty = self.infer.outermost(&assignee.ty);
                let Some((element, _)) = ty.elements() else {
                    no_part(&mut self.typing(), &ty, "it", span);
                    return None;
                };
                self.expect(&position, &Scalar::Usize.into());
                assignee.index.push(position);
                assignee.ty = element;
                Some(assignee)
            }
            syn::Expr::Field(_) => {
                let local = self.assigned_field(expr, span)?;
                Some(Assignee { local, index: vec![], ty: self.builder.type_of(local).clone() })
            }
            _ => {
                self.error(Assignment::NotAssignable, span);
                None
            }
        }
    }

    /// Reports that a variable is modified that is not declared as mutable.
    pub(super) fn not_assignable(&mut self, name: &str, span: Span) {
        let parameter = match self.frames.parameter(name) {
            Some(Binding::Reference { .. } | Binding::Compound { is_reference: true, .. }) => {
                Some(Parameter::Reference)
            }
            Some(Binding::Local { .. } | Binding::Compound { .. }) => Some(Parameter::Value),
            Some(Binding::Value(value)) if self.infer.resolve(&value.ty).is_storable() => {
                Some(Parameter::Value)
            }
            Some(Binding::Value(_)) | None => None,
        };
        self.error(Assignment::Immutable { name: name.to_owned(), parameter }, span);
    }

    /// Whether it is a variable whose declaration was rejected.
    fn was_refused(&self, expr: &syn::Expr) -> bool {
        let syn::Expr::Path(path) = expr else { return false };
        let found = own_variable(path).and_then(|name| self.frames.lookup(&name));
        matches!(found, Some(Binding::Value(value)) if value.is_error())
    }

    /// Rejects an assignment to a part of `expr` if that names an object outside registers, whether
    /// or not it is `mut`.
    fn refuse_part(&mut self, expr: &syn::Expr, span: Span) -> bool {
        let syn::Expr::Path(path) = expr else { return false };
        let Some(name) = own_variable(path) else { return false };
        let ty = match self.frames.lookup(&name) {
            Some(Binding::Value(value) | Binding::Compound { value, .. }) => value.ty.clone(),
            Some(Binding::Local { id, .. } | Binding::Reference { id, .. }) => {
                self.builder.type_of(*id).clone()
            }
            None => return false,
        };
        let ty = self.infer.resolve(&ty);
        if ty.elements().is_some() || matches!(ty, Type::Error | Type::Infer(_)) {
            return false;
        }
        no_part(&mut self.typing(), &ty, &name, span);
        true
    }
}

/// Reports an assignment to a part of `name`, whose type is not a register array.
fn no_part(typing: &mut Typing<'_>, ty: &Type, name: &str, span: Span) {
    let ty = typing.infer.partial(ty);
    typing.error(Assignment::Part { name: name.to_owned(), ty }, span);
}

/// The target of an assignment, named after The Rust Reference, "Assignment expressions".
pub(super) struct Assignee {
    local: LocalId,
    index: Vec<Expr>,
    pub(super) ty: Type,
}

impl Assignee {
    /// Returns the statement that assigns `value` to it.
    pub(super) fn assign(self, value: Expr) -> StmtKind {
        StmtKind::Assign { local: self.local, index: self.index, value }
    }
}

/// Creates the value `()`.
pub(super) fn unit(span: Span) -> Expr {
    Expr { kind: ExprKind::Unit, ty: Type::Unit, span }
}
