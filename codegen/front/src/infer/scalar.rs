//! Facts about each scalar type: which operators, functions and conversions it has.

#![warn(clippy::wildcard_enum_match_arm)]

use crate::ir::{BinaryOp, MathOp, Scalar};

/// Whether the scalar has the operator.
pub(super) fn has_operator(scalar: Scalar, op: BinaryOp) -> bool {
    match op {
        BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div => scalar.is_arithmetic(),
        // The hardware has no remainder of floats, and what LLVM substitutes differs from Rust.
        BinaryOp::Rem => scalar.is_integer(),
        BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => scalar.is_integer() || scalar == Scalar::Bool,
        BinaryOp::Shl | BinaryOp::Shr => scalar.is_integer(),
        BinaryOp::Eq | BinaryOp::Ne => !matches!(scalar, Scalar::Tf32 | Scalar::E4m3 | Scalar::E5m2),
        BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => {
            scalar.is_arithmetic() || scalar == Scalar::Bool
        }
    }
}

/// Whether the hardware function exists for the scalar.
pub(crate) fn has_math(scalar: Scalar, op: MathOp) -> bool {
    match op {
        MathOp::Min | MathOp::Max | MathOp::Clamp | MathOp::Abs => {
            scalar.is_arithmetic() && (op != MathOp::Abs || scalar.is_float() || scalar.is_signed())
        }
        MathOp::Fma | MathOp::CopySign => {
            matches!(scalar, Scalar::F16 | Scalar::Bf16 | Scalar::F32 | Scalar::F64)
        }
        MathOp::Sqrt | MathOp::Recip => matches!(scalar, Scalar::F32 | Scalar::F64),
        MathOp::Exp2Half => matches!(scalar, Scalar::F16 | Scalar::Bf16),
        MathOp::Rsqrt
        | MathOp::Exp2
        | MathOp::Exp2Ftz
        | MathOp::Log2
        | MathOp::Exp
        | MathOp::Log
        | MathOp::Sin
        | MathOp::Cos
        | MathOp::Tanh
        | MathOp::Pow => scalar == Scalar::F32,
    }
}

/// Whether rustc's `as` converts between these kernel scalars.
pub(super) fn is_primitive_cast(from: Scalar, to: Scalar) -> bool {
    let primitive = |scalar: Scalar| {
        !matches!(scalar, Scalar::F16 | Scalar::Bf16 | Scalar::Tf32 | Scalar::E4m3 | Scalar::E5m2)
    };
    match (from, to) {
        (Scalar::Bool, to) => to == Scalar::Bool || to.is_integer(),
        (_, Scalar::Bool) => false,
        (from, to) => primitive(from) && primitive(to),
    }
}

/// Returns the integer type that holds a float's bits, the result of `to_bits`.
pub(crate) fn bits(float: Scalar) -> Option<Scalar> {
    match float {
        Scalar::E4m3 | Scalar::E5m2 => Some(Scalar::U8),
        Scalar::F16 | Scalar::Bf16 => Some(Scalar::U16),
        Scalar::F32 | Scalar::Tf32 => Some(Scalar::U32),
        Scalar::F64 => Some(Scalar::U64),
        Scalar::Bool
        | Scalar::I8
        | Scalar::U8
        | Scalar::I16
        | Scalar::U16
        | Scalar::I32
        | Scalar::U32
        | Scalar::I64
        | Scalar::U64
        | Scalar::Usize => None,
    }
}

/// Whether the scalar has the methods `to_f32` and `to_f64`.
pub(crate) fn is_small_float(scalar: Scalar) -> bool {
    matches!(scalar, Scalar::F16 | Scalar::Bf16 | Scalar::Tf32 | Scalar::E4m3 | Scalar::E5m2)
}

/// Returns the least and the greatest value of a `match` on `scalar`.
pub(super) fn extremes(scalar: Scalar) -> (i128, i128) {
    scalar.integer_range().unwrap_or((0, 1))
}
