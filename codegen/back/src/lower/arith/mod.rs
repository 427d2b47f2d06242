//! Arithmetic, comparisons and mathematical functions.

pub(super) mod cast;
pub(super) mod integer;
pub(super) mod overflow;

use inkwell::types::BasicType;
use inkwell::values::{
    BasicMetadataValueEnum, BasicValue, BasicValueEnum, FastMathFlags, FloatValue, IntValue,
};
use inkwell::{FloatPredicate, IntPredicate};
use tma_front::ir::{BinaryOp, Expr, MathOp, Scalar, Span, UnaryOp};

use super::types::{Class, class, float, int, scalar_of};
use super::{Cx, Lower, bounds, expr, nvvm};
use crate::backend::BackendError;

pub(super) fn unary<'c>(cx: &mut Cx<'c, '_>, op: UnaryOp, a: &Expr, span: Span) -> Lower<BasicValueEnum<'c>> {
    let scalar = scalar_of(&a.ty)?;
    let a = expr::value(cx, a)?;
    match (op, class(scalar)) {
        (UnaryOp::Neg, Class::Int { .. }) => {
            let a = int(a)?;
            overflow::negation(cx, a, span)?;
            Ok(cx.builder.build_int_neg(a, "")?.into())
        }
        (UnaryOp::Neg, Class::Float) => Ok(cx.builder.build_float_neg(float(a)?, "")?.into()),
        (UnaryOp::Not, Class::Bool | Class::Int { .. }) => Ok(cx.builder.build_not(int(a)?, "")?.into()),
        (UnaryOp::Neg, Class::Bool | Class::Tf32 | Class::Float8)
        | (UnaryOp::Not, Class::Float | Class::Tf32 | Class::Float8) => {
            Err(BackendError::Unchecked(format!("{op:?} of `{scalar}`")))
        }
    }
}

/// Emits `a op b`. Overflow stops if `stops`.
pub(super) fn binary<'c>(
    cx: &mut Cx<'c, '_>,
    op: BinaryOp,
    stops: bool,
    a: &Expr,
    b: &Expr,
    span: Span,
) -> Lower<BasicValueEnum<'c>> {
    let (scalar, amount) = (scalar_of(&a.ty)?, scalar_of(&b.ty)?);
    let (a, b) = (expr::value(cx, a)?, expr::value(cx, b)?);
    match (op, class(scalar)) {
        (BinaryOp::Shl | BinaryOp::Shr, Class::Int { signed }) => {
            let (a, b) = (int(a)?, int(b)?);
            if stops {
                overflow::shift(cx, op, a, b, span)?;
            }
            let amount = shift_amount(cx, a, b, amount)?;
            Ok(match op == BinaryOp::Shl {
                true => cx.builder.build_left_shift(a, amount, "")?.into(),
                false => cx.builder.build_right_shift(a, amount, signed, "")?.into(),
            })
        }
        (_, Class::Bool) => integer(cx, op, false, int(a)?, int(b)?).map(Into::into),
        (_, Class::Int { signed }) => {
            let (a, b) = (int(a)?, int(b)?);
            if op.is_division() {
                bounds::divisor(cx, op, signed, a, b, span)?;
            }
            match stops {
                true => overflow::integer(cx, op, signed, a, b, span).map(Into::into),
                false => integer(cx, op, signed, a, b).map(Into::into),
            }
        }
        (_, Class::Float) => floating(cx, op, float(a)?, float(b)?),
        (_, Class::Float8 | Class::Tf32) => {
            // Only comparisons get here. They are exact in f32.
            let a = cast::cast(cx, a, scalar, Scalar::F32).and_then(float)?;
            let b = cast::cast(cx, b, scalar, Scalar::F32).and_then(float)?;
            floating(cx, op, a, b)
        }
    }
}

/// Emits an operation on integers or `bool`s, other than a shift.
pub(super) fn integer<'c>(
    cx: &Cx<'c, '_>,
    op: BinaryOp,
    signed: bool,
    a: IntValue<'c>,
    b: IntValue<'c>,
) -> Lower<IntValue<'c>> {
    use IntPredicate::{EQ, NE, SGE, SGT, SLE, SLT, UGE, UGT, ULE, ULT};
    let build = &cx.builder;
    let compare = |unsigned_predicate, signed_predicate| {
        build.build_int_compare(if signed { signed_predicate } else { unsigned_predicate }, a, b, "")
    };
    Ok(match op {
        BinaryOp::Add => build.build_int_add(a, b, "")?,
        BinaryOp::Sub => build.build_int_sub(a, b, "")?,
        BinaryOp::Mul => build.build_int_mul(a, b, "")?,
        BinaryOp::Div => return quotient(cx, signed, a, b),
        BinaryOp::Rem => return remainder(cx, signed, a, b),
        BinaryOp::And => build.build_and(a, b, "")?,
        BinaryOp::Or => build.build_or(a, b, "")?,
        BinaryOp::Xor => build.build_xor(a, b, "")?,
        BinaryOp::Eq => compare(EQ, EQ)?,
        BinaryOp::Ne => compare(NE, NE)?,
        BinaryOp::Lt => compare(ULT, SLT)?,
        BinaryOp::Le => compare(ULE, SLE)?,
        BinaryOp::Gt => compare(UGT, SGT)?,
        BinaryOp::Ge => compare(UGE, SGE)?,
        BinaryOp::Shl | BinaryOp::Shr => return Err(BackendError::Unchecked("a shift of `bool`".to_owned())),
    })
}

/// Emits `b`, of type `amount`, modulo the width of `a`. A greater amount would be poison in LLVM.
fn shift_amount<'c>(
    cx: &Cx<'c, '_>,
    a: IntValue<'c>,
    b: IntValue<'c>,
    amount: Scalar,
) -> Lower<IntValue<'c>> {
    let ty = a.get_type();
    let b = cx.builder.build_int_cast_sign_flag(b, ty, amount.is_signed(), "")?;
    let last = ty.const_int(u64::from(ty.get_bit_width() - 1), false);
    Ok(cx.builder.build_and(b, last, "")?)
}

/// Emits `a / b`, or `a` if `b` is 0. The divisor is replaced if it is 0, or -1 in a signed
/// division: LLVM takes an undefined division as proof that it is never reached. For constant
/// divisors this folds away. Otherwise it adds two instructions to the twenty or more of a
/// division.
fn quotient<'c>(cx: &Cx<'c, '_>, signed: bool, a: IntValue<'c>, b: IntValue<'c>) -> Lower<IntValue<'c>> {
    let safe = safe_divisor(cx, signed, b)?;
    if !signed {
        return Ok(cx.builder.build_int_unsigned_div(a, safe, "")?);
    }
    let by_safe = cx.builder.build_int_signed_div(a, safe, "")?;
    let negated = cx.builder.build_int_neg(a, "")?;
    let minus_one = b.get_type().const_all_ones();
    let is_minus_one = cx.builder.build_int_compare(IntPredicate::EQ, b, minus_one, "")?;
    int(cx.builder.build_select(is_minus_one, negated, by_safe, "")?)
}

/// Emits `a % b`, or 0 if `b` is 0 or -1, for the same reason as in [`quotient`].
fn remainder<'c>(cx: &Cx<'c, '_>, signed: bool, a: IntValue<'c>, b: IntValue<'c>) -> Lower<IntValue<'c>> {
    let safe = safe_divisor(cx, signed, b)?;
    Ok(if signed {
        cx.builder.build_int_signed_rem(a, safe, "")?
    } else {
        cx.builder.build_int_unsigned_rem(a, safe, "")?
    })
}

/// Emits `b`, or 1 if LLVM does not define the quotient: for 0, and for -1 if `signed`.
fn safe_divisor<'c>(cx: &Cx<'c, '_>, signed: bool, b: IntValue<'c>) -> Lower<IntValue<'c>> {
    let ty = b.get_type();
    let (zero, one) = (ty.const_zero(), ty.const_int(1, false));
    let unsafe_divisor = if signed {
        // -1 and 0 are the only values that become at most 1 when 1 is added.
        let above = cx.builder.build_int_add(b, one, "")?;
        cx.builder.build_int_compare(IntPredicate::ULE, above, one, "")?
    } else {
        cx.builder.build_int_compare(IntPredicate::EQ, b, zero, "")?
    };
    int(cx.builder.build_select(unsafe_divisor, one, b, "")?)
}

/// Emits an operation on floats. Comparisons with NaN are false except for `!=`, as in Rust.
fn floating<'c>(
    cx: &Cx<'c, '_>,
    op: BinaryOp,
    a: FloatValue<'c>,
    b: FloatValue<'c>,
) -> Lower<BasicValueEnum<'c>> {
    let build = &cx.builder;
    let compare = |predicate| -> Lower<BasicValueEnum<'c>> {
        Ok(build.build_float_compare(predicate, a, b, "")?.as_basic_value_enum())
    };
    match op {
        BinaryOp::Add => Ok(build.build_float_add(a, b, "")?.into()),
        BinaryOp::Sub => Ok(build.build_float_sub(a, b, "")?.into()),
        BinaryOp::Mul => Ok(build.build_float_mul(a, b, "")?.into()),
        BinaryOp::Div => Ok(build.build_float_div(a, b, "")?.into()),
        BinaryOp::Rem => Ok(build.build_float_rem(a, b, "")?.into()),
        BinaryOp::Eq => compare(FloatPredicate::OEQ),
        BinaryOp::Ne => compare(FloatPredicate::UNE),
        BinaryOp::Lt => compare(FloatPredicate::OLT),
        BinaryOp::Le => compare(FloatPredicate::OLE),
        BinaryOp::Gt => compare(FloatPredicate::OGT),
        BinaryOp::Ge => compare(FloatPredicate::OGE),
        BinaryOp::And | BinaryOp::Or | BinaryOp::Xor | BinaryOp::Shl | BinaryOp::Shr => {
            Err(BackendError::Unchecked(format!("`{}` of floats", op.sign())))
        }
    }
}

pub(super) fn math<'c>(
    cx: &mut Cx<'c, '_>,
    op: MathOp,
    operands: &[Expr],
    span: Span,
) -> Lower<BasicValueEnum<'c>> {
    let refused = || BackendError::Unchecked(format!("`{}` of these operands", op.name()));
    let scalar = scalar_of(&operands.first().ok_or_else(refused)?.ty)?;
    let args = expr::values(cx, operands)?;
    if op == MathOp::Clamp
        && let ([_, low, high], [_, low_operand, _]) = (&args[..], operands)
    {
        bounds::clamp(cx, class(scalar), *low, *high, low_operand.span)?;
    }
    if let (MathOp::Abs, Class::Int { signed: true }, &[a]) = (op, class(scalar), &args[..]) {
        overflow::negation(cx, int(a)?, span)?;
    }
    apply(cx, op, scalar, &args)
}

/// Emits a function of values of type `scalar`.
pub(super) fn apply<'c>(
    cx: &mut Cx<'c, '_>,
    op: MathOp,
    scalar: Scalar,
    args: &[BasicValueEnum<'c>],
) -> Lower<BasicValueEnum<'c>> {
    let refused = || BackendError::Unchecked(format!("`{}` of these operands", op.name()));
    let class = class(scalar);
    match op {
        MathOp::Min | MathOp::Max => {
            let name = extreme(op == MathOp::Max, class).ok_or_else(refused)?;
            overloaded(cx, name, args)
        }
        MathOp::Abs => match (class, args) {
            (Class::Float, &[_]) => overloaded(cx, "llvm.fabs", args),
            (Class::Int { signed: true }, &[a]) => {
                // The second operand makes the result for the least integer defined, instead of
                // poison.
                overloaded(cx, "llvm.abs", &[a, cx.context.bool_type().const_zero().into()])
            }
            (Class::Int { signed: false }, &[a]) => Ok(a),
            _ => Err(refused()),
        },
        MathOp::Fma => match (class, args) {
            (Class::Float, &[_, _, _]) => overloaded(cx, "llvm.fma", args),
            (Class::Int { .. }, &[a, b, c]) => {
                let product = cx.builder.build_int_mul(int(a)?, int(b)?, "")?;
                Ok(cx.builder.build_int_add(product, int(c)?, "")?.into())
            }
            _ => Err(refused()),
        },
        MathOp::Sqrt if class == Class::Float => overloaded(cx, "llvm.sqrt", args),
        MathOp::Recip if class == Class::Float => {
            let a = float(args[0])?;
            Ok(cx.builder.build_float_div(a.get_type().const_float(1.0), a, "")?.into())
        }
        MathOp::Rsqrt if scalar == Scalar::F32 => nvvm::emit_value(cx, &nvvm::RSQRT, args),
        MathOp::Exp2 if scalar == Scalar::F32 => nvvm::emit_value(cx, &nvvm::EX2, args),
        MathOp::Exp2Half if matches!(scalar, Scalar::F16 | Scalar::Bf16) => approximate_exp2(cx, args),
        MathOp::Exp2Ftz if scalar == Scalar::F32 => nvvm::emit_value(cx, &nvvm::EX2_FTZ, args),
        MathOp::Log2 if scalar == Scalar::F32 => nvvm::emit_value(cx, &nvvm::LG2, args),
        MathOp::Exp if scalar == Scalar::F32 => {
            let scaled = scaled(cx, args[0], std::f64::consts::LOG2_E)?;
            nvvm::emit_value(cx, &nvvm::EX2, &[scaled])
        }
        MathOp::Log if scalar == Scalar::F32 => {
            let log2 = nvvm::emit_value(cx, &nvvm::LG2, args)?;
            scaled(cx, log2, std::f64::consts::LN_2)
        }
        MathOp::Sin if scalar == Scalar::F32 => nvvm::emit_value(cx, &nvvm::SIN, args),
        MathOp::Cos if scalar == Scalar::F32 => nvvm::emit_value(cx, &nvvm::COS, args),
        MathOp::Tanh if scalar == Scalar::F32 => nvvm::emit_value(cx, &nvvm::TANH, args),
        MathOp::Pow => match (scalar, args) {
            (Scalar::F32, &[x, y]) => {
                let log2 = nvvm::emit_value(cx, &nvvm::LG2, &[x]).and_then(float)?;
                let exponent = cx.builder.build_float_mul(float(y)?, log2, "")?;
                nvvm::emit_value(cx, &nvvm::EX2, &[exponent.into()])
            }
            _ => Err(refused()),
        },
        MathOp::Clamp => match (class, args) {
            (Class::Float, &[x, low, high]) => {
                let above = nearer(cx, FloatPredicate::OLT, float(x)?, float(low)?)?;
                nearer(cx, FloatPredicate::OGT, above, float(high)?).map(Into::into)
            }
            (Class::Int { .. }, &[x, low, high]) => {
                let above = apply(cx, MathOp::Max, scalar, &[x, low])?;
                apply(cx, MathOp::Min, scalar, &[above, high])
            }
            _ => Err(refused()),
        },
        MathOp::CopySign => match (class, args) {
            (Class::Float, &[x, sign]) => copy_sign(cx, scalar, x, sign),
            _ => Err(refused()),
        },
        MathOp::Sqrt
        | MathOp::Recip
        | MathOp::Rsqrt
        | MathOp::Exp2
        | MathOp::Exp2Half
        | MathOp::Exp2Ftz
        | MathOp::Log2
        | MathOp::Exp
        | MathOp::Log
        | MathOp::Sin
        | MathOp::Cos
        | MathOp::Tanh => Err(refused()),
    }
}

/// Emits LLVM's `exp2`, marked as approximate. Two adjacent calls become `ex2.approx.f16x2`, which
/// would not happen with inline assembly.
fn approximate_exp2<'c>(cx: &Cx<'c, '_>, args: &[BasicValueEnum<'c>]) -> Lower<BasicValueEnum<'c>> {
    let value = overloaded(cx, "llvm.exp2", args)?;
    // A constant has been folded and is not an instruction.
    if let Some(call) = value.as_instruction_value() {
        call.set_fast_math_flags(FastMathFlags::ApproxFunc)
            .map_err(|error| BackendError::Unchecked(format!("an approximate `exp2`: {error}")))?;
    }
    Ok(value)
}

/// Emits `x` times a constant, rounded once.
fn scaled<'c>(cx: &Cx<'c, '_>, x: BasicValueEnum<'c>, by: f64) -> Lower<BasicValueEnum<'c>> {
    let x = float(x)?;
    Ok(cx.builder.build_float_mul(x, x.get_type().const_float(by), "")?.into())
}

/// Emits the magnitude of `x` with the sign of `sign`, by bit operations that ptxas combines to one
/// `lop3`. LLVM's intrinsic becomes `abs`, `neg` and a select.
fn copy_sign<'c>(
    cx: &Cx<'c, '_>,
    scalar: Scalar,
    x: BasicValueEnum<'c>,
    sign: BasicValueEnum<'c>,
) -> Lower<BasicValueEnum<'c>> {
    let bits = cx.bits_type(scalar);
    let sign_bit = bits.const_int(1 << (bits.get_bit_width() - 1), false);
    let x = int(cx.builder.build_bit_cast(x, bits, "")?)?;
    let sign = int(cx.builder.build_bit_cast(sign, bits, "")?)?;
    let magnitude = cx.builder.build_and(x, sign_bit.const_not(), "")?;
    let sign = cx.builder.build_and(sign, sign_bit, "")?;
    let both = cx.builder.build_or(magnitude, sign, "")?;
    Ok(cx.builder.build_bit_cast(both, cx.scalar_type(scalar), "")?)
}

/// Emits `bound` if `x` is beyond it, else `x`. NaN is thus preserved, and -0 is within a bound of
/// 0.
fn nearer<'c>(
    cx: &Cx<'c, '_>,
    beyond: FloatPredicate,
    x: FloatValue<'c>,
    bound: FloatValue<'c>,
) -> Lower<FloatValue<'c>> {
    let is_beyond = cx.builder.build_float_compare(beyond, x, bound, "")?;
    float(cx.builder.build_select(is_beyond, bound, x, "")?)
}

/// Returns LLVM's intrinsic for the maximum or the minimum of two values.
fn extreme(greater: bool, class: Class) -> Option<&'static str> {
    match (class, greater) {
        (Class::Float, false) => Some("llvm.minimumnum"),
        (Class::Float, true) => Some("llvm.maximumnum"),
        (Class::Int { signed: true }, false) => Some("llvm.smin"),
        (Class::Int { signed: true }, true) => Some("llvm.smax"),
        (Class::Int { signed: false }, false) => Some("llvm.umin"),
        (Class::Int { signed: false }, true) => Some("llvm.umax"),
        (Class::Bool | Class::Tf32 | Class::Float8, _) => None,
    }
}

/// Calls an intrinsic that is overloaded on the type of its first operand.
fn overloaded<'c>(cx: &Cx<'c, '_>, name: &str, args: &[BasicValueEnum<'c>]) -> Lower<BasicValueEnum<'c>> {
    let overload: Vec<_> = args.iter().take(1).map(|arg| arg.get_type().as_basic_type_enum()).collect();
    let args: Vec<BasicMetadataValueEnum<'c>> = args.iter().map(|&arg| arg.into()).collect();
    cx.intrinsic_value(name, &overload, &args)
}
