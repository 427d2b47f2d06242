//! Methods of numbers that become several operations: powers and multiples.

use super::tile_at::known_integer;
use crate::infer::rule::{Integers, Rule};
use crate::ir::{BinaryOp, Block, Const, Expr, ExprKind, IntegerOp, Scalar, Span, StmtKind};
use crate::parse::cx::Cx;
use crate::parse::expr::{apply, strict};
use crate::parse::order::held;
use crate::words::{NumberWord, Word};

/// Builds `x.pow(n)` of an integer.
pub(in crate::parse) fn integer_power(cx: &mut Cx<'_>, x: Expr, n: Expr, span: Span) -> Option<Expr> {
    let rule = Rule::Integer { word: NumberWord::Pow.name(), of: Integers::All };
    if !cx.require(&x.ty, rule, span) {
        return None;
    }
    let one = Expr::constant(Const::Int(1), x.ty.clone(), span);
    Some(power(cx, x, n, one, span))
}

/// Builds `x.powi(n)` of a float. For a negative `n`, it is the reciprocal of the power.
pub(in crate::parse) fn float_power(cx: &mut Cx<'_>, x: Expr, n: Expr, span: Span) -> Option<Expr> {
    if !cx.require(&x.ty, Rule::Precise { word: NumberWord::Powi.name() }, span) {
        return None;
    }
    let one = Expr::constant(Const::Float(1.0), x.ty.clone(), span);
    if let Some(known) = known_integer(&cx.infer, &n) {
        let magnitude = Const::Int(known.abs());
        let power = power(cx, x, Expr::constant(magnitude, Scalar::U32, span), one.clone(), span);
        let is_reciprocal = known < 0;
        return Some(if is_reciprocal { binary(cx, BinaryOp::Div, one, power) } else { power });
    }
    let n = held(cx, n);
    let zero = Expr::constant(Const::Int(0), Scalar::I32, span);
    let operands = vec![n.clone(), zero.clone()];
    let magnitude =
        Expr { kind: ExprKind::Integer(IntegerOp::AbsDiff, operands), ty: Scalar::U32.into(), span };
    let power = power(cx, x, magnitude, one.clone(), span);
    let (id, result) = cx.builder.temporary("power", power.ty.clone(), span);
    cx.builder.assign(id, power);
    let condition = binary(cx, BinaryOp::Lt, n, zero);
    let reciprocal = binary(cx, BinaryOp::Div, one, result.clone());
    let (then, ()) = cx.block(|cx| cx.builder.assign(id, reciprocal));
    cx.builder.emit(StmtKind::If { condition, then, otherwise: Block::default() }, span);
    Some(result)
}

/// Builds `x` to the power `n`, a `u32`, by squaring: the product, from the lowest bit of `n` on,
/// of the repeated squares of `x` for which the bit is 1. No square is computed that is not
/// multiplied with, so an integer overflows only if the power does.
fn power(cx: &mut Cx<'_>, x: Expr, n: Expr, one: Expr, span: Span) -> Expr {
    match known_integer(&cx.infer, &n) {
        Some(n) => known_power(cx, x, n, one),
        None => counted_power(cx, x, n, one, span),
    }
}

fn known_power(cx: &mut Cx<'_>, x: Expr, mut n: i128, one: Expr) -> Expr {
    let mut square = held(cx, x);
    let mut power = None;
    while n > 0 {
        if n & 1 == 1 {
            power = Some(match power {
                Some(power) => product(cx, power, square.clone()),
                None => square.clone(),
            });
        }
        n >>= 1;
        if n > 0 {
            let next = product(cx, square.clone(), square);
            square = held(cx, next);
        }
    }
    power.unwrap_or(one)
}

fn counted_power(cx: &mut Cx<'_>, x: Expr, n: Expr, one: Expr, span: Span) -> Expr {
    let (square_id, square) = cx.builder.temporary("square", x.ty.clone(), span);
    let (power_id, power) = cx.builder.temporary("power", x.ty.clone(), span);
    let (left_id, left) = cx.builder.temporary("exponent", Scalar::U32, span);
    cx.builder.assign(square_id, x);
    cx.builder.assign(left_id, n);
    cx.builder.assign(power_id, one);
    let number = |value| Expr::constant(Const::Int(value), Scalar::U32, span);
    let lowest = binary(cx, BinaryOp::And, left.clone(), number(1));
    let is_factor = binary(cx, BinaryOp::Eq, lowest, number(1));
    let longer = product(cx, power.clone(), square.clone());
    let condition = binary(cx, BinaryOp::Gt, left.clone(), number(1));
    let label = cx.builder.label();
    let (body, ()) = cx.block(|cx| {
        let (then, ()) = cx.block(|cx| cx.builder.assign(power_id, longer.clone()));
        cx.builder.emit(StmtKind::If { condition: is_factor, then, otherwise: Block::default() }, span);
        let halved = binary(cx, BinaryOp::Shr, left.clone(), number(1));
        cx.builder.assign(left_id, halved);
        let next = product(cx, square.clone(), square);
        cx.builder.assign(square_id, next);
    });
    cx.builder.emit(StmtKind::While { label, header: Block::default(), condition, body }, span);
    let condition = binary(cx, BinaryOp::Eq, left, number(1));
    let (then, ()) = cx.block(|cx| cx.builder.assign(power_id, longer));
    cx.builder.emit(StmtKind::If { condition, then, otherwise: Block::default() }, span);
    power
}

/// Builds `a.next_multiple_of(b)` of unsigned integers: `a`, plus what the remainder lacks if there
/// is one.
pub(in crate::parse) fn next_multiple_of(cx: &mut Cx<'_>, a: Expr, b: Expr, span: Span) -> Option<Expr> {
    let rule = Rule::Integer { word: NumberWord::NextMultipleOf.name(), of: Integers::Unsigned };
    if !cx.require(&a.ty, rule, span) || !cx.expect(&b, &a.ty) {
        return None;
    }
    let (a, b) = (held(cx, a), held(cx, b));
    let remainder = apply(&mut cx.typing(), BinaryOp::Rem, a.clone(), b.clone(), span);
    let remainder = held(cx, remainder);
    let zero = Expr::constant(Const::Int(0), a.ty.clone(), span);
    let inexact = binary(cx, BinaryOp::Ne, remainder.clone(), zero);
    let inexact = Expr { kind: ExprKind::Cast(Box::new(inexact)), ty: a.ty.clone(), span };
    let lacking = binary(cx, BinaryOp::Sub, b, remainder);
    let lacking = binary(cx, BinaryOp::Mul, lacking, inexact);
    Some(strict(&mut cx.typing(), BinaryOp::Add, a, lacking, span))
}

/// Builds the product of two factors of a power, which stops a checked kernel if it overflows.
fn product(cx: &mut Cx<'_>, left: Expr, right: Expr) -> Expr {
    let span = left.span;
    strict(&mut cx.typing(), BinaryOp::Mul, left, right, span)
}

/// Builds an operator of operands whose types fit.
fn binary(cx: &mut Cx<'_>, op: BinaryOp, left: Expr, right: Expr) -> Expr {
    let span = left.span;
    apply(&mut cx.typing(), op, left, right, span)
}
