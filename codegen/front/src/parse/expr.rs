//! Expressions. An effect is emitted as a statement, and its value is read from a local.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{BinOp, UnOp};

use super::aggregate::is_aggregate;
use super::cx::{Binding, Cx, Frames};
use super::device::own_variable;
use super::literal::literal;
use super::method::flight::negated;
use super::method::pipeline::slot_tile;
use super::method::tile_at::{known_bool, known_integer};
use super::names::{self, Meaning, Space, refuse_qualified};
use super::number::scalar_constant;
use super::ptx;
use super::span;
use crate::diag::Sink;
use crate::diag::mistake::{Form, Name, Syntax, Value, is_constant};
use crate::diag::suggest::{self, did_you_mean, elsewhere};
use crate::infer::rule::Rule;
use crate::infer::{Infer, Typing};
use crate::ir::{
    Axis, BinaryOp, Block, ChoiceType, Compound, Const, Expr, ExprKind, IntegerOp, Scalar, Span, Special,
    StmtKind, Strictness, Type, UnaryOp, visit,
};
use crate::words::{FunctionWord, Word};

impl Cx<'_> {
    /// Parses an expression and returns its value.
    pub(super) fn expr(&mut self, expr: &syn::Expr) -> Expr {
        let span = span::of_expr(expr);
        let value = self.deeper(span, |cx| cx.expr_at(expr, span));
        // An expression must not be dropped without an error.
        if value.is_error() && self.sink.is_empty() {
            self.error(Syntax::Expression, span);
        }
        value
    }

    fn expr_at(&mut self, expr: &syn::Expr, span: Span) -> Expr {
        match expr {
            syn::Expr::Lit(lit) => literal(&mut self.typing(), &lit.lit, false, span),
            syn::Expr::Path(path) => self.path(path, span),
            syn::Expr::Paren(paren) => self.expr(&paren.expr),
            syn::Expr::Group(group) => self.expr(&group.expr),
            syn::Expr::Unary(unary) => self.unary(unary, span),
            syn::Expr::Binary(binary) => self.binary(binary, span),
            syn::Expr::Cast(cast) => self.cast(cast, span),
            syn::Expr::Field(field) => self.field(field, span),
            syn::Expr::Index(index) => self.index(index, span),
            syn::Expr::Array(array) => self.array(array, span),
            syn::Expr::Repeat(repeat) => self.repeat(repeat, span),
            syn::Expr::Call(call) => self.call(call, span),
            syn::Expr::MethodCall(call) => self.method_call(call, span),
            syn::Expr::Macro(mac) => self.macro_call(&mac.mac, span),
            syn::Expr::Assign(assign) => self.assignment(assign, span),
            syn::Expr::Unsafe(block) if ptx::is_in(&block.block) => self.block_value(&block.block),
            syn::Expr::Block(block) => match &block.label {
                None => self.block_value(&block.block),
                Some(label) => self.labelled_block(&label.name, &block.block, span),
            },
            syn::Expr::If(if_) => self.if_value(if_, span),
            syn::Expr::Match(match_) => self.match_value(match_, span),
            syn::Expr::ForLoop(for_) => self.for_loop(for_, span),
            syn::Expr::While(while_) => self.while_loop(while_, span),
            syn::Expr::Loop(loop_) => self.endless_loop(loop_, span),
            syn::Expr::Break(break_) => self.break_loop(break_, span),
            syn::Expr::Continue(continue_) => self.continue_loop(continue_, span),
            syn::Expr::Return(return_) => self.return_value(return_, span),
            syn::Expr::Tuple(tuple) if tuple.elems.is_empty() => super::stmt::unit(span),
            syn::Expr::Tuple(tuple) => self.tuple(tuple, span),
            syn::Expr::Struct(literal) => self.struct_literal(literal, span),
            other => unsupported(self.sink, other, span),
        }
    }

    fn path(&mut self, path: &syn::ExprPath, span: Span) -> Expr {
        if refuse_qualified(self.sink, path.qself.as_ref(), span) {
            return Expr::error(span);
        }
        let path = &path.path;
        if let Some(owner) = names::owner(path).filter(|owner| self.names_type(owner)) {
            return self.member(path, &owner, span);
        }
        let found = names::lone_name(path).and_then(|name| self.frames.lookup(&name));
        match (found, names::own_name(path)) {
            (Some(Binding::Value(value)), _) => Expr { span, ..value.clone() },
            (Some(Binding::Compound { value, is_reference: true, .. }), _) if is_aggregate(&value.ty) => {
                self.error(Syntax::KeptReference, span);
                Expr::error(span)
            }
            (Some(Binding::Compound { value, .. }), _) => Expr { span, ..value.clone() },
            (Some(&Binding::Local { id, .. }), _) => self.builder.read(id, span),
            (Some(&Binding::Reference { id, .. }), _) => self.builder.read(id, span),
            (None, Some(name)) => match self.module_constant(&name, span) {
                Some(value) => value,
                None if self.names_struct(path) => self.unit_struct(path, span),
                None if self.refuse_host_item(&name, Space::Value, span) => Expr::error(span),
                None => self.unknown_name(&name, span),
            },
            (None, None) => {
                if self.refuse_member_of_generic(path, false, span) {
                    return Expr::error(span);
                }
                let owner = names::owner(path).and_then(|owner| names::last_name(&owner));
                let of_type = owner.is_some_and(|owner| owner.starts_with(char::is_uppercase));
                self.error(Name::Path { path: names::shown(path), of_type }, span);
                Expr::error(span)
            }
        }
    }

    /// Resolves an associated item of a type: `u32::MAX`, `ClusterAxis::X`.
    fn member(&mut self, path: &syn::Path, owner: &syn::Path, span: Span) -> Expr {
        let name = path.segments.last().map(|last| names::text(&last.ident)).unwrap_or_default();
        match self.path_type(owner) {
            Type::Scalar(scalar) => {
                let written = names::shown(owner);
                let Some((word, value)) = scalar_constant(self.sink, scalar, &name, written, span) else {
                    return Expr::error(span);
                };
                let by_own_name =
                    owner.segments.last().is_some_and(|owner| names::text(&owner.ident) == scalar.name());
                if by_own_name {
                    self.takes_word(path, Meaning::Constant(scalar, word));
                }
                value
            }
            Type::Choice(of) => self.choice(of, &name, span),
            Type::Error => Expr::error(span),
            other => {
                self.error(Name::Constant { of: self.infer.partial(&other), name }, span);
                Expr::error(span)
            }
        }
    }

    /// Resolves a variant of an enum of the language.
    fn choice(&mut self, of: ChoiceType, name: &str, span: Span) -> Expr {
        match of.all().into_iter().find(|choice| choice.name() == name) {
            Some(choice) => Expr { kind: ExprKind::Choice(choice), ty: Type::Choice(of), span },
            None => {
                self.error(Name::Choice { of, name: name.to_owned() }, span);
                Expr::error(span)
            }
        }
    }

    pub(super) fn unknown_name(&mut self, name: &str, span: Span) -> Expr {
        if self.refuse_import(name, span) {
            return Expr::error(span);
        }
        let known = self.frames.names().cloned().chain(self.module.constant_names());
        let is_function = FunctionWord::named(name).is_some() || self.module.function(name).is_some();
        // A constant is more likely outside of the module than a misspelt variable.
        let known: Vec<_> = known.filter(|known| !is_constant(name) || is_constant(known)).collect();
        let suggestion = elsewhere(name, suggest::Kind::Value).or_else(|| did_you_mean(name, known));
        self.error(Name::Value { name: name.to_owned(), is_function, suggestion }, span);
        Expr::error(span)
    }

    fn unary(&mut self, unary: &syn::ExprUnary, span: Span) -> Expr {
        if let (UnOp::Neg(_), syn::Expr::Lit(lit)) = (&unary.op, &*unary.expr) {
            return literal(&mut self.typing(), &lit.lit, true, span);
        }
        if let UnOp::Deref(_) = unary.op {
            return self.dereference(&unary.expr, span);
        }
        let operand = self.expr(&unary.expr);
        let op = match unary.op {
            UnOp::Neg(_) => UnaryOp::Neg,
            _ => UnaryOp::Not,
        };
        if op == UnaryOp::Neg
            && let Some(negated) = negated(&mut self.infer, &operand, span)
        {
            return negated;
        }
        if !is_scalar(&self.infer, &operand) {
            let sign = if op == UnaryOp::Neg { "-" } else { "!" };
            return no_operator(&mut self.typing(), sign, &operand, span);
        }
        Expr { ty: operand.ty.clone(), kind: ExprKind::Unary(op, Box::new(operand)), span }
    }

    fn dereference(&mut self, expr: &syn::Expr, span: Span) -> Expr {
        if let syn::Expr::Path(path) = expr
            && let Some(name) = own_variable(path)
        {
            match self.frames.lookup(&name) {
                Some(&Binding::Reference { id, .. }) => return self.builder.read(id, span),
                Some(Binding::Compound { value, is_reference: true, .. }) => {
                    return Expr { span, ..value.clone() };
                }
                Some(Binding::Value(value)) if value.is_error() => return Expr::error(span),
                _ => {}
            }
        }
        self.error(Syntax::Dereference, span);
        Expr::error(span)
    }

    fn binary(&mut self, binary: &syn::ExprBinary, span: Span) -> Expr {
        match binary.op {
            BinOp::And(_) => return self.short_circuit(binary, true, span),
            BinOp::Or(_) => return self.short_circuit(binary, false, span),
            _ => {}
        }
        let Some((op, assigns)) = binary_op(&binary.op) else {
            self.error(Syntax::Operator, span);
            return Expr::error(span);
        };
        if assigns {
            return self.compound_assignment(binary, op, span);
        }
        let (left, right) = self.pair(&binary.left, &binary.right);
        self.judge_shift(op, &left.ty, &right, binary);
        if let BinaryOp::Eq | BinaryOp::Ne = op
            && is_aggregate(&self.infer.resolve(&left.ty))
        {
            return self.equality(op, left, right, span);
        }
        if self.nesting.is_left_out() {
            // No constant of a branch that is not compiled needs a value.
            return apply(&mut self.typing(), op, left, right, span);
        }
        strict(&mut self.typing(), op, left, right, span)
    }

    /// Reports a shift by at least the width of the shifted type, as rustc's lint does: if the
    /// amount is a constant in the function's own text. An argument of a device function is not
    /// constant in that sense: `(x << n) | (x >> (32 - n))` may be called with 0 where it is not
    /// checked. In a constant, any overflow is reported when it is evaluated.
    pub(super) fn judge_shift(&mut self, op: BinaryOp, shifted: &Type, by: &Expr, written: &syn::ExprBinary) {
        if op.is_shift()
            && !self.nesting.is_left_out()
            && !self.nesting.in_constant()
            && (self.frames.in_kernel() || !mentions_variable(&self.frames, written.right.to_token_stream()))
            && let Some(amount) = known_integer(&self.infer, by)
        {
            self.require(shifted, Rule::ShiftedBy(amount), Span::of(written));
        }
    }

    /// Parses `a && b` or `a || b`. The result is a plain `&` or `|` if evaluating `b`
    /// unconditionally is harmless.
    fn short_circuit(&mut self, binary: &syn::ExprBinary, is_and: bool, span: Span) -> Expr {
        let bool_ty = Type::from(Scalar::Bool);
        let left = self.expr(&binary.left);
        self.expect(&left, &bool_ty);
        let is_left_out = known_bool(&self.infer, &left) == Some(!is_and);
        let (effects, right) = self.left_out(is_left_out, |cx| cx.branch(|cx| cx.expr(&binary.right)));
        self.expect(&right, &bool_ty);
        let op = if is_and { BinaryOp::And } else { BinaryOp::Or };
        if effects.stmts.is_empty() && is_total(&right) {
            let kind = ExprKind::Binary(op, Box::new(left), Box::new(right), Strictness::Lazy);
            return Expr { kind, ty: bool_ty, span };
        }
        if is_left_out {
            // As a constant, the result also leaves out what it is the condition of.
            let decided = Expr::constant(Const::Bool(!is_and), bool_ty, span);
            let (then, otherwise) = sides(is_and, effects);
            self.builder.emit(StmtKind::If { condition: decided.clone(), then, otherwise }, span);
            return decided;
        }
        let result = self.builder.local("condition", bool_ty, span);
        self.builder.assign(result, left);
        let condition = self.builder.read(result, span);
        let (mut evaluate, ()) = self.block(|cx| cx.builder.assign(result, right));
        let mut block = effects;
        block.stmts.append(&mut evaluate.stmts);
        let (then, otherwise) = sides(is_and, block);
        self.builder.emit(StmtKind::If { condition, then, otherwise }, span);
        self.builder.read(result, span)
    }

    fn cast(&mut self, cast: &syn::ExprCast, span: Span) -> Expr {
        let value = self.expr(&cast.expr);
        let ty = self.ty(&cast.ty);
        if value.is_error() || ty == Type::Error {
            return Expr::error(span);
        }
        // Like rustc, infers the type of a literal from the type it is cast to, if possible. An
        // expression computed from literals is not affected.
        if is_literal(&cast.expr)
            && self.infer.kind(&value.ty).is_some()
            && let Some(scalar) = self.infer.resolve(&ty).as_scalar()
        {
            self.infer.unify(&value.ty, &scalar.into(), span);
        }
        if !self.require(&value.ty, Rule::As(ty.clone()), span) {
            return Expr::error(span);
        }
        Expr { kind: ExprKind::Cast(Box::new(value)), ty, span }
    }

    fn field(&mut self, field: &syn::ExprField, span: Span) -> Expr {
        let base = self.dereferenced(&field.base);
        if base.is_error() {
            return base;
        }
        let name = span::member_text(&field.member);
        let axis = match name.as_str() {
            "x" => Some((Axis::X, 0)),
            "y" => Some((Axis::Y, 1)),
            "z" => Some((Axis::Z, 2)),
            _ => None,
        };
        match (&base.ty, axis, base.kind) {
            (
                Type::Compound(of @ (Compound::Struct(_) | Compound::Tuple(_))),
                _,
                ExprKind::Compound(parts),
            ) => self.member_of(of, &parts, name, span),
            (Type::Compound(compound), _, ExprKind::Compound(parts)) => {
                slot_tile(self.sink, compound, parts, &name, span)
            }
            (Type::Dim3, Some((axis, _)), ExprKind::Special(special)) => {
                let special = match special {
                    Special::ThreadIdx(_) => Special::ThreadIdx(axis),
                    Special::BlockIdx(_) => Special::BlockIdx(axis),
                    Special::GridDim(_) => Special::GridDim(axis),
                    Special::ClusterIdx(_) => Special::ClusterIdx(axis),
                    Special::BlockInCluster(_) => Special::BlockInCluster(axis),
                    Special::ClusterDim(_) => Special::ClusterDim(axis),
                    other @ (Special::ClusterRank
                    | Special::LaneIdx
                    | Special::WarpIdx
                    | Special::WarpgroupIdx) => other,
                };
                Expr { kind: ExprKind::Special(special), ty: Scalar::U32.into(), span }
            }
            (Type::Dim3, Some((_, axis)), ExprKind::Array(mut parts)) if parts.len() == 3 => {
                Expr { span, ..parts.swap_remove(axis) }
            }
            (ty, ..) => {
                self.error(Name::Field { of: self.infer.partial(ty), name }, span);
                Expr::error(span)
            }
        }
    }
}

fn unsupported(sink: &mut Sink, expr: &syn::Expr, span: Span) -> Expr {
    let form = match expr {
        syn::Expr::Closure(_) => Form::Closure,
        syn::Expr::Reference(_) => Form::Reference,
        syn::Expr::Range(_) => Form::Range,
        syn::Expr::Unsafe(_) => Form::Unsafe,
        syn::Expr::Let(_) => Form::Let,
        syn::Expr::Try(_) => Form::Try,
        syn::Expr::Async(_) | syn::Expr::Await(_) => Form::Async,
        _ => Form::Other,
    };
    sink.error(Syntax::Form(form), span);
    Expr::error(span)
}

/// Whether the tokens contain a name that the function binds.
fn mentions_variable(frames: &Frames, tokens: TokenStream) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Group(group) => mentions_variable(frames, group.stream()),
        TokenTree::Ident(name) => frames.lookup(&names::text(&name)).is_some(),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}

/// Builds `left op right`, where both are scalars of one type (except for shifts). Integers wrap in
/// every kernel.
pub(super) fn apply(typing: &mut Typing<'_>, op: BinaryOp, left: Expr, right: Expr, span: Span) -> Expr {
    operation(typing, op, Strictness::Wrapping, left, right, span)
}

/// Like [`apply`], for an operator of the source: an overflow stops a checked kernel.
pub(super) fn strict(typing: &mut Typing<'_>, op: BinaryOp, left: Expr, right: Expr, span: Span) -> Expr {
    operation(typing, op, Strictness::Strict, left, right, span)
}

fn operation(
    typing: &mut Typing<'_>,
    op: BinaryOp,
    strictness: Strictness,
    left: Expr,
    right: Expr,
    span: Span,
) -> Expr {
    if left.is_error() || right.is_error() {
        return Expr::error(span);
    }
    for side in [&left, &right] {
        if !is_scalar(typing.infer, side) {
            return no_operator(typing, op.sign(), side, span);
        }
    }
    if op.is_shift() {
        if !typing.require(&right.ty, Rule::ShiftAmount, right.span) {
            return Expr::error(span);
        }
    } else if !typing.expect(&right, &left.ty) {
        return Expr::error(span);
    }
    let ty = if op.is_comparison() { Scalar::Bool.into() } else { left.ty.clone() };
    Expr { kind: ExprKind::Binary(op, Box::new(left), Box::new(right), strictness), ty, span }
}

pub(super) fn is_scalar(infer: &Infer, expr: &Expr) -> bool {
    matches!(infer.resolve(&expr.ty), Type::Scalar(_) | Type::Infer(_) | Type::Error | Type::Never)
}

fn no_operator(typing: &mut Typing<'_>, sign: &'static str, operand: &Expr, span: Span) -> Expr {
    typing.error(Value::Operator { of: typing.infer.partial(&operand.ty), sign }, span);
    Expr::error(span)
}

/// Whether `expr` is a number literal, possibly with signs or as the value of a block.
fn is_literal(expr: &syn::Expr) -> bool {
    match expr {
        syn::Expr::Lit(_) => true,
        syn::Expr::Paren(paren) => is_literal(&paren.expr),
        syn::Expr::Group(group) => is_literal(&group.expr),
        syn::Expr::Unary(unary) => !matches!(unary.op, UnOp::Deref(_)) && is_literal(&unary.expr),
        syn::Expr::Block(block) => {
            matches!(block.block.stmts.last(), Some(syn::Stmt::Expr(value, None)) if is_literal(value))
        }
        _ => false,
    }
}

/// Returns the branches of an `if` on the left operand of `&&` or `||`, of which `right` evaluates
/// the right one.
fn sides(is_and: bool, right: Block) -> (Block, Block) {
    if is_and { (right, Block::default()) } else { (Block::default(), right) }
}

/// Whether evaluating `expr` is harmless even if its value is not needed.
fn is_total(expr: &Expr) -> bool {
    let mut total = true;
    visit::within(expr, &mut |node| {
        total &= !matches!(
            node.kind,
            ExprKind::Index(..)
                | ExprKind::Binary(BinaryOp::Div | BinaryOp::Rem, ..)
                | ExprKind::Integer(IntegerOp::Ilog2, _)
                | ExprKind::Error
        );
    });
    total
}

/// Returns the operator and whether it assigns.
fn binary_op(op: &BinOp) -> Option<(BinaryOp, bool)> {
    Some(match op {
        BinOp::Add(_) => (BinaryOp::Add, false),
        BinOp::Sub(_) => (BinaryOp::Sub, false),
        BinOp::Mul(_) => (BinaryOp::Mul, false),
        BinOp::Div(_) => (BinaryOp::Div, false),
        BinOp::Rem(_) => (BinaryOp::Rem, false),
        BinOp::BitAnd(_) => (BinaryOp::And, false),
        BinOp::BitOr(_) => (BinaryOp::Or, false),
        BinOp::BitXor(_) => (BinaryOp::Xor, false),
        BinOp::Shl(_) => (BinaryOp::Shl, false),
        BinOp::Shr(_) => (BinaryOp::Shr, false),
        BinOp::Eq(_) => (BinaryOp::Eq, false),
        BinOp::Ne(_) => (BinaryOp::Ne, false),
        BinOp::Lt(_) => (BinaryOp::Lt, false),
        BinOp::Le(_) => (BinaryOp::Le, false),
        BinOp::Gt(_) => (BinaryOp::Gt, false),
        BinOp::Ge(_) => (BinaryOp::Ge, false),
        BinOp::AddAssign(_) => (BinaryOp::Add, true),
        BinOp::SubAssign(_) => (BinaryOp::Sub, true),
        BinOp::MulAssign(_) => (BinaryOp::Mul, true),
        BinOp::DivAssign(_) => (BinaryOp::Div, true),
        BinOp::RemAssign(_) => (BinaryOp::Rem, true),
        BinOp::BitAndAssign(_) => (BinaryOp::And, true),
        BinOp::BitOrAssign(_) => (BinaryOp::Or, true),
        BinOp::BitXorAssign(_) => (BinaryOp::Xor, true),
        BinOp::ShlAssign(_) => (BinaryOp::Shl, true),
        BinOp::ShrAssign(_) => (BinaryOp::Shr, true),
        _ => return None,
    })
}
