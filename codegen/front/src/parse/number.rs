//! Methods, functions and constants of scalars: `x.max(y)`, `f16::from_f32(x)`, `u32::MAX`.

#![warn(clippy::wildcard_enum_match_arm)]

use super::expr::apply;
use crate::diag::Sink;
use crate::diag::mistake::Name;
use crate::infer::rule::Rule;
use crate::infer::scalar::{bits, has_math, is_small_float};
use crate::infer::{Kind, Typing};
use crate::ir::{BinaryOp, Const, Expr, ExprKind, IntegerOp, MathOp, Scalar, Span};
use crate::words::{ConstantWord, ConversionCall, ConversionWord, NumberCall, NumberWord, Word};

/// Resolves `u32::MAX` and other constants of scalars.
pub(super) fn scalar_constant(
    sink: &mut Sink,
    scalar: Scalar,
    name: &str,
    span: Span,
) -> Option<(ConstantWord, Expr)> {
    let found = ConstantWord::named(name).and_then(|word| Some((word, constant(scalar, word)?)));
    let Some((word, (value, ty))) = found else {
        sink.error(Name::ScalarConstant { of: scalar, name: name.to_owned() }, span);
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

pub(super) fn number_method(
    typing: &mut Typing<'_>,
    value: Expr,
    call: NumberCall,
    span: Span,
) -> Option<Expr> {
    match call {
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
    let fits = typing.require(&of, Rule::Integer(op), span);
    let ty = if op.counts() { Scalar::U32.into() } else { of };
    fits.then_some(Expr { kind: ExprKind::Integer(op, operands), ty, span })
}

/// Builds `a.div_ceil(b)` on unsigned integers: `a / b`, plus one if there is a remainder.
fn div_ceil(typing: &mut Typing<'_>, a: Expr, b: Expr, span: Span) -> Option<Expr> {
    if !typing.require(&a.ty, Rule::DivCeil { word: NumberWord::DivCeil.name() }, span) {
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
        | NumberWord::RotateRight => has_method(scalar, word),
        NumberWord::Clamp
        | NumberWord::CopySign
        | NumberWord::Min
        | NumberWord::Max
        | NumberWord::Abs
        | NumberWord::MulAdd
        | NumberWord::Sqrt
        | NumberWord::Recip
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
        NumberWord::DivCeil => scalar.is_integer() && !scalar.is_signed(),
        NumberWord::CountOnes
        | NumberWord::CountZeros
        | NumberWord::LeadingZeros
        | NumberWord::LeadingOnes
        | NumberWord::TrailingZeros
        | NumberWord::TrailingOnes
        | NumberWord::ReverseBits
        | NumberWord::SwapBytes
        | NumberWord::RotateLeft
        | NumberWord::RotateRight => scalar.is_integer(),
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
