//! Atomic operations on global memory. Source: "atom".

use std::borrow::Cow;

use super::Operand::{self, B32, B64, F32, F64, Global};
use super::{Effect, Instruction};
use crate::ir::{AtomicOp, Scalar};

/// Operands: the address, the value. `None` where there is no such operation.
pub(in crate::lower) fn atomic(op: AtomicOp, scalar: Scalar) -> Option<Instruction> {
    let operand = operand(scalar).filter(|_| op.takes(scalar))?;
    let bits = scalar.bytes() * 8;
    let what = match op {
        // One for both signs. Source: "atom": there is no `.add.s64`.
        AtomicOp::Add if scalar.is_float() => format!("add.f{bits}"),
        AtomicOp::Add => format!("add.u{bits}"),
        AtomicOp::Min => format!("min.{}{bits}", sign(scalar)),
        AtomicOp::Max => format!("max.{}{bits}", sign(scalar)),
        AtomicOp::And => format!("and.b{bits}"),
        AtomicOp::Or => format!("or.b{bits}"),
        AtomicOp::Xor => format!("xor.b{bits}"),
        AtomicOp::Exchange => format!("exch.b{bits}"),
    };
    Some(Instruction {
        text: Cow::Owned(format!("atom.relaxed.gpu.global.{what} $0, [$1], $2;")),
        result: Some(operand),
        operands: Cow::Owned(vec![Global, operand]),
        effect: Effect::Memory,
        ptx: 60,
    })
}

fn sign(scalar: Scalar) -> char {
    if scalar.is_signed() { 's' } else { 'u' }
}

/// What holds a value of this type; none for those that no atomic is on.
fn operand(scalar: Scalar) -> Option<Operand> {
    match scalar {
        Scalar::I32 | Scalar::U32 => Some(B32),
        Scalar::I64 | Scalar::U64 | Scalar::Usize => Some(B64),
        Scalar::F32 => Some(F32),
        Scalar::F64 => Some(F64),
        Scalar::Bool | Scalar::I8 | Scalar::U8 | Scalar::I16 | Scalar::U16 => None,
        Scalar::F16 | Scalar::Bf16 | Scalar::Tf32 | Scalar::E4m3 | Scalar::E5m2 => None,
    }
}
