//! Methods, functions and constants of scalars: `x.max(y)`, `f16::from_f32(x)`, `u32::MAX`.

#![warn(clippy::wildcard_enum_match_arm)]

use super::cx::Cx;
use super::expr::apply;
use super::method::power::{float_power, integer_power, next_multiple_of};
use crate::diag::Sink;
use crate::diag::mistake::Name;
use crate::infer::rule::{Integers, Rule, distance};
use crate::infer::scalar::{bits, has_math, is_small_float};
use crate::infer::{Kind, Typing};
use crate::ir::{BinaryOp, Const, Expr, ExprKind, IntegerOp, MathOp, Scalar, Span};
use crate::words::{ConstantWord, ConversionCall, ConversionWord, NumberCall, NumberWord, Word};

/// Resolves `u32::MAX` and other constants of scalars. `written` is the type as the source has it.
pub(super) fn scalar_constant(
    sink: &mut Sink,
    scalar: Scalar,
    name: &str,
    written: String,
    span: Span,
) -> Option<(ConstantWord, Expr)> {
    let found = ConstantWord::named(name).and_then(|word| Some((word, constant(scalar, word)?)));
    let Some((word, (value, ty))) = found else {
        sink.error(Name::ScalarConstant { of: scalar, name: name.to_owned(), written }, span);
        return None;
    };
    Some((word, Expr::constant(value, ty, span)))
}

/// Resolves `f16::from_f32(x)` and other conversions.
pub(super) fn conversion(to: Scalar, call: ConversionCall, span: Span) -> Expr {
    let kind = match call {
        ConversionCall::FromF32 { x } | ConversionCall::FromF64 { x } => ExprKind::Cast(Box::new(x)),
        ConversionCall::FromBits { bits } => ExprKind::Bits(Box::new(bits)),
    };
    Expr { kind, ty: to.into(), span }
}

pub(super) fn number_method(cx: &mut Cx<'_>, value: Expr, call: NumberCall, span: Span) -> Option<Expr> {
    let typing = &mut cx.typing();
    match call {
        NumberCall::Pow { n } => integer_power(cx, value, n, span),
        NumberCall::Powi { n } => float_power(cx, value, n, span),
        NumberCall::NextMultipleOf { other } => next_multiple_of(cx, value, other, span),
        NumberCall::WrappingAdd { other } => {
            wrapping(typing, BinaryOp::Add, NumberWord::WrappingAdd, value, other, span)
        }
        NumberCall::WrappingSub { other } => {
            wrapping(typing, BinaryOp::Sub, NumberWord::WrappingSub, value, other, span)
        }
        NumberCall::WrappingMul { other } => {
            wrapping(typing, BinaryOp::Mul, NumberWord::WrappingMul, value, other, span)
        }
        NumberCall::WrappingNeg => {
            let zero = Expr::constant(Const::Int(0), value.ty.clone(), span);
            wrapping(typing, BinaryOp::Sub, NumberWord::WrappingNeg, zero, value, span)
        }
        NumberCall::WrappingShl { n } => {
            wrapping(typing, BinaryOp::Shl, NumberWord::WrappingShl, value, n, span)
        }
        NumberCall::WrappingShr { n } => {
            wrapping(typing, BinaryOp::Shr, NumberWord::WrappingShr, value, n, span)
        }
        NumberCall::SaturatingAdd { other } => pair(typing, IntegerOp::SaturatingAdd, value, other, span),
        NumberCall::SaturatingSub { other } => pair(typing, IntegerOp::SaturatingSub, value, other, span),
        NumberCall::SaturatingMul { other } => pair(typing, IntegerOp::SaturatingMul, value, other, span),
        NumberCall::AbsDiff { other } => abs_diff(typing, value, other, span),
        NumberCall::Ilog2 => integer(typing, IntegerOp::Ilog2, vec![value], span),
        NumberCall::IsPowerOfTwo => is_power_of_two(typing, value, span),
        NumberCall::Min { other } => math(typing, MathOp::Min, vec![value, other], span),
        NumberCall::Max { other } => math(typing, MathOp::Max, vec![value, other], span),
        NumberCall::Abs => math(typing, MathOp::Abs, vec![value], span),
        NumberCall::MulAdd { a, b } => math(typing, MathOp::Fma, vec![value, a, b], span),
        NumberCall::Sqrt => math(typing, MathOp::Sqrt, vec![value], span),
        NumberCall::Recip => math(typing, MathOp::Recip, vec![value], span),
        NumberCall::Clamp { low, high } => math(typing, MathOp::Clamp, vec![value, low, high], span),
        NumberCall::CopySign { sign } => math(typing, MathOp::CopySign, vec![value, sign], span),
        NumberCall::CountOnes => integer(typing, IntegerOp::CountOnes, vec![value], span),
        NumberCall::CountZeros => integer(typing, IntegerOp::CountZeros, vec![value], span),
        NumberCall::LeadingZeros => integer(typing, IntegerOp::LeadingZeros, vec![value], span),
        NumberCall::LeadingOnes => integer(typing, IntegerOp::LeadingOnes, vec![value], span),
        NumberCall::TrailingZeros => integer(typing, IntegerOp::TrailingZeros, vec![value], span),
        NumberCall::TrailingOnes => integer(typing, IntegerOp::TrailingOnes, vec![value], span),
        NumberCall::ReverseBits => integer(typing, IntegerOp::ReverseBits, vec![value], span),
        NumberCall::SwapBytes => integer(typing, IntegerOp::SwapBytes, vec![value], span),
        NumberCall::RotateLeft { n } => integer(typing, IntegerOp::RotateLeft, vec![value, n], span),
        NumberCall::RotateRight { n } => integer(typing, IntegerOp::RotateRight, vec![value, n], span),
        NumberCall::DivCeil { other } => div_ceil(typing, value, other, span),
        NumberCall::ToF32 => widened(typing, value, NumberWord::ToF32, Scalar::F32, span),
        NumberCall::ToF64 => widened(typing, value, NumberWord::ToF64, Scalar::F64, span),
        NumberCall::ToBits => bits_of(typing, value, span),
    }
}

/// Builds a math function with a hardware instruction.
pub(super) fn math(typing: &mut Typing<'_>, op: MathOp, operands: Vec<Expr>, span: Span) -> Option<Expr> {
    let ty = operands.first()?.ty.clone();
    for operand in &operands {
        if !typing.expect(operand, &ty) {
            return None;
        }
    }
    if is_of_f32(op) && matches!(typing.infer.kind(&ty), Some(Kind::Any | Kind::Float)) {
        typing.infer.unify(&ty, &Scalar::F32.into(), span);
    }
    let fits = typing.require(&ty, Rule::Math(op), span);
    fits.then_some(Expr { kind: ExprKind::Math(op, operands), ty, span })
}

/// Builds a function on the bits of an integer, the first operand.
fn integer(typing: &mut Typing<'_>, op: IntegerOp, operands: Vec<Expr>, span: Span) -> Option<Expr> {
    let of = operands.first()?.ty.clone();
    let fits = typing.require(&of, Rule::Integer { word: op.name().into(), of: Integers::All }, span);
    let ty = if op.counts() { Scalar::U32.into() } else { of };
    fits.then_some(Expr { kind: ExprKind::Integer(op, operands), ty, span })
}

/// Builds a function of two integers of one type.
fn pair(typing: &mut Typing<'_>, op: IntegerOp, a: Expr, b: Expr, span: Span) -> Option<Expr> {
    typing.expect(&b, &a.ty).then_some(())?;
    integer(typing, op, vec![a, b], span)
}

/// Builds an operator of integers, as a method.
fn wrapping(
    typing: &mut Typing<'_>,
    op: BinaryOp,
    word: NumberWord,
    a: Expr,
    b: Expr,
    span: Span,
) -> Option<Expr> {
    let rule = Rule::Integer { word: word.name(), of: Integers::All };
    typing.require(&a.ty, rule, span).then(|| apply(typing, op, a, b, span))
}

/// Builds `a.abs_diff(b)`, whose type depends on that of its operands.
fn abs_diff(typing: &mut Typing<'_>, a: Expr, b: Expr, span: Span) -> Option<Expr> {
    if !typing.expect(&b, &a.ty) {
        return None;
    }
    let ty = match typing.infer.resolve(&a.ty).as_scalar().and_then(distance) {
        Some(known) => known.into(),
        None => {
            let to = typing.infer.fresh(Kind::Integer);
            let rule = Rule::AbsDiff { to: to.clone(), word: NumberWord::AbsDiff.name() };
            typing.require(&a.ty, rule, span).then_some(to)?
        }
    };
    Some(Expr { kind: ExprKind::Integer(IntegerOp::AbsDiff, vec![a, b]), ty, span })
}

/// Builds `x.is_power_of_two()` of an unsigned integer: whether it has a single 1 bit.
fn is_power_of_two(typing: &mut Typing<'_>, x: Expr, span: Span) -> Option<Expr> {
    let rule = Rule::Integer { word: NumberWord::IsPowerOfTwo.name(), of: Integers::Unsigned };
    if !typing.require(&x.ty, rule, span) {
        return None;
    }
    let kind = ExprKind::Integer(IntegerOp::CountOnes, vec![x]);
    let ones = Expr { kind, ty: Scalar::U32.into(), span };
    let one = Expr::constant(Const::Int(1), Scalar::U32, span);
    Some(apply(typing, BinaryOp::Eq, ones, one, span))
}

/// Builds `a.div_ceil(b)` on unsigned integers: `a / b`, plus one if there is a remainder.
fn div_ceil(typing: &mut Typing<'_>, a: Expr, b: Expr, span: Span) -> Option<Expr> {
    let rule = Rule::Integer { word: NumberWord::DivCeil.name(), of: Integers::Unsigned };
    if !typing.require(&a.ty, rule, span) {
        return None;
    }
    let quotient = apply(typing, BinaryOp::Div, a.clone(), b.clone(), span);
    let remainder = apply(typing, BinaryOp::Rem, a, b, span);
    let zero = Expr::constant(Const::Int(0), remainder.ty.clone(), span);
    let inexact = apply(typing, BinaryOp::Ne, remainder, zero, span);
    let one_more = Expr { ty: quotient.ty.clone(), kind: ExprKind::Cast(Box::new(inexact)), span };
    Some(apply(typing, BinaryOp::Add, quotient, one_more, span))
}

/// Builds `to_f32` or `to_f64` of a small float.
fn widened(typing: &mut Typing<'_>, value: Expr, word: NumberWord, to: Scalar, span: Span) -> Option<Expr> {
    let fits = typing.require(&value.ty, Rule::Small { word: word.name() }, span);
    fits.then(|| Expr { kind: ExprKind::Cast(Box::new(value)), ty: to.into(), span })
}

fn bits_of(typing: &mut Typing<'_>, value: Expr, span: Span) -> Option<Expr> {
    let ty = match typing.infer.resolve(&value.ty).as_scalar() {
        Some(float) => bits(float)?.into(),
        None => {
            let bits = typing.infer.fresh(Kind::Integer);
            let rule = Rule::Bits { to: bits.clone(), word: NumberWord::ToBits.name() };
            typing.require(&value.ty, rule, span).then_some(bits)?
        }
    };
    Some(Expr { kind: ExprKind::Bits(Box::new(value)), ty, span })
}

/// Returns the value and the type of a scalar's constant.
fn constant(scalar: Scalar, word: ConstantWord) -> Option<(Const, Scalar)> {
    let float = matches!(scalar, Scalar::F16 | Scalar::Bf16 | Scalar::F32 | Scalar::F64);
    let value = match (word, scalar.integer_range(), scalar) {
        (ConstantWord::Min, Some((least, _)), _) => Const::Int(least),
        (ConstantWord::Max, Some((_, greatest)), _) => Const::Int(greatest),
        (ConstantWord::Bits, Some(_), _) => {
            return Some((Const::Int(i128::from(scalar.bytes() * 8)), Scalar::U32));
        }
        (ConstantWord::Min, None, Scalar::F32) => Const::Float(f64::from(f32::MIN)),
        (ConstantWord::Max, None, Scalar::F32) => Const::Float(f64::from(f32::MAX)),
        (ConstantWord::Epsilon, None, Scalar::F32) => Const::Float(f64::from(f32::EPSILON)),
        (ConstantWord::Min, None, Scalar::F64) => Const::Float(f64::MIN),
        (ConstantWord::Max, None, Scalar::F64) => Const::Float(f64::MAX),
        (ConstantWord::Epsilon, None, Scalar::F64) => Const::Float(f64::EPSILON),
        (ConstantWord::Infinity, None, _) if float => Const::Float(f64::INFINITY),
        (ConstantWord::NegInfinity, None, _) if float => Const::Float(f64::NEG_INFINITY),
        (ConstantWord::Nan, None, _) if float => Const::Float(f64::NAN),
        (ConstantWord::Zero, None, Scalar::F16 | Scalar::Bf16) => Const::Float(0.0),
        (ConstantWord::One, None, Scalar::F16 | Scalar::Bf16) => Const::Float(1.0),
        (
            ConstantWord::Min
            | ConstantWord::Max
            | ConstantWord::Bits
            | ConstantWord::Epsilon
            | ConstantWord::Infinity
            | ConstantWord::NegInfinity
            | ConstantWord::Nan
            | ConstantWord::Zero
            | ConstantWord::One,
            ..,
        ) => return None,
    };
    Some((value, scalar))
}

/// Whether the scalar `to` has this function.
pub(super) fn has_conversion(to: Scalar, word: ConversionWord) -> bool {
    match word {
        ConversionWord::FromF32 | ConversionWord::FromF64 => to.is_of_library(),
        ConversionWord::FromBits => bits(to).is_some(),
    }
}

/// Whether method lookup succeeds on the scalar. If it does but the scalar does not
/// [have](has_method) the method, a [rule](Rule) reports the scalars that do.
pub(super) fn finds_method(scalar: Scalar, word: NumberWord) -> bool {
    match word {
        NumberWord::ToF32
        | NumberWord::ToF64
        | NumberWord::ToBits
        | NumberWord::CountOnes
        | NumberWord::CountZeros
        | NumberWord::LeadingZeros
        | NumberWord::LeadingOnes
        | NumberWord::TrailingZeros
        | NumberWord::TrailingOnes
        | NumberWord::ReverseBits
        | NumberWord::SwapBytes
        | NumberWord::RotateLeft
        | NumberWord::RotateRight
        | NumberWord::WrappingAdd
        | NumberWord::WrappingSub
        | NumberWord::WrappingMul
        | NumberWord::WrappingNeg
        | NumberWord::WrappingShl
        | NumberWord::WrappingShr
        | NumberWord::SaturatingAdd
        | NumberWord::SaturatingSub
        | NumberWord::SaturatingMul
        | NumberWord::AbsDiff
        | NumberWord::Pow
        | NumberWord::Powi
        | NumberWord::Ilog2 => has_method(scalar, word),
        NumberWord::Clamp
        | NumberWord::CopySign
        | NumberWord::Min
        | NumberWord::Max
        | NumberWord::Abs
        | NumberWord::MulAdd
        | NumberWord::Sqrt
        | NumberWord::Recip
        | NumberWord::IsPowerOfTwo
        | NumberWord::NextMultipleOf
        | NumberWord::DivCeil => true,
    }
}

/// Whether the scalar has the method.
pub(super) fn has_method(scalar: Scalar, word: NumberWord) -> bool {
    match word {
        NumberWord::Min => has_math(scalar, MathOp::Min),
        NumberWord::Max => has_math(scalar, MathOp::Max),
        NumberWord::Abs => has_math(scalar, MathOp::Abs),
        NumberWord::MulAdd => has_math(scalar, MathOp::Fma),
        NumberWord::Sqrt => has_math(scalar, MathOp::Sqrt),
        NumberWord::Recip => has_math(scalar, MathOp::Recip),
        NumberWord::Clamp => has_math(scalar, MathOp::Clamp),
        NumberWord::CopySign => has_math(scalar, MathOp::CopySign),
        NumberWord::DivCeil | NumberWord::IsPowerOfTwo | NumberWord::NextMultipleOf => {
            scalar.is_integer() && !scalar.is_signed()
        }
        NumberWord::Powi => matches!(scalar, Scalar::F32 | Scalar::F64),
        NumberWord::CountOnes
        | NumberWord::CountZeros
        | NumberWord::LeadingZeros
        | NumberWord::LeadingOnes
        | NumberWord::TrailingZeros
        | NumberWord::TrailingOnes
        | NumberWord::ReverseBits
        | NumberWord::SwapBytes
        | NumberWord::RotateLeft
        | NumberWord::RotateRight
        | NumberWord::WrappingAdd
        | NumberWord::WrappingSub
        | NumberWord::WrappingMul
        | NumberWord::WrappingNeg
        | NumberWord::WrappingShl
        | NumberWord::WrappingShr
        | NumberWord::SaturatingAdd
        | NumberWord::SaturatingSub
        | NumberWord::SaturatingMul
        | NumberWord::AbsDiff
        | NumberWord::Pow
        | NumberWord::Ilog2 => scalar.is_integer(),
        NumberWord::ToF32 | NumberWord::ToF64 => is_small_float(scalar),
        NumberWord::ToBits => bits(scalar).is_some(),
    }
}

/// Whether the function is an approximation, which exists for `f32` only.
fn is_of_f32(op: MathOp) -> bool {
    match op {
        MathOp::Rsqrt
        | MathOp::Exp2
        | MathOp::Exp2Ftz
        | MathOp::Log2
        | MathOp::Exp
        | MathOp::Log
        | MathOp::Sin
        | MathOp::Cos
        | MathOp::Tanh
        | MathOp::Pow => true,
        MathOp::Min
        | MathOp::Max
        | MathOp::Clamp
        | MathOp::Abs
        | MathOp::Fma
        | MathOp::CopySign
        | MathOp::Sqrt
        | MathOp::Recip
        | MathOp::Exp2Half => false,
    }
}
