//! Atomic operations on global memory. Source: "atom".

use std::borrow::Cow;

use super::Operand::{B32, B64, F32, F64, Global};
use super::{Effect, Instruction};
use crate::ir::{AtomicOp, Scalar};

macro_rules! atomic {
    ($what:literal, $operand:ident) => {
        Some(Instruction {
            text: Cow::Borrowed(concat!("atom.relaxed.gpu.global.", $what, " $0, [$1], $2;")),
            result: Some($operand),
            operands: Cow::Borrowed(&[Global, $operand]),
            effect: Effect::Memory,
            ptx: 60,
        })
    };
}

/// Operands: the address, the value. `None` where there is no such operation.
pub(in crate::lower) fn atomic(op: AtomicOp, scalar: Scalar) -> Option<Instruction> {
    match (op, scalar) {
        (AtomicOp::Add, Scalar::F32) => atomic!("add.f32", F32),
        (AtomicOp::Add, Scalar::F64) => atomic!("add.f64", F64),
        (AtomicOp::Add, Scalar::I32 | Scalar::U32) => atomic!("add.u32", B32),
        (AtomicOp::Min, Scalar::I32) => atomic!("min.s32", B32),
        (AtomicOp::Min, Scalar::U32) => atomic!("min.u32", B32),
        (AtomicOp::Max, Scalar::I32) => atomic!("max.s32", B32),
        (AtomicOp::Max, Scalar::U32) => atomic!("max.u32", B32),
        (AtomicOp::And, Scalar::I32 | Scalar::U32) => atomic!("and.b32", B32),
        (AtomicOp::Or, Scalar::I32 | Scalar::U32) => atomic!("or.b32", B32),
        (AtomicOp::Xor, Scalar::I32 | Scalar::U32) => atomic!("xor.b32", B32),
        (AtomicOp::Exchange, Scalar::I32 | Scalar::U32) => atomic!("exch.b32", B32),
        (AtomicOp::Add, Scalar::I64 | Scalar::U64 | Scalar::Usize) => atomic!("add.u64", B64),
        (AtomicOp::Min, Scalar::I64) => atomic!("min.s64", B64),
        (AtomicOp::Min, Scalar::U64 | Scalar::Usize) => atomic!("min.u64", B64),
        (AtomicOp::Max, Scalar::I64) => atomic!("max.s64", B64),
        (AtomicOp::Max, Scalar::U64 | Scalar::Usize) => atomic!("max.u64", B64),
        (AtomicOp::And, Scalar::I64 | Scalar::U64 | Scalar::Usize) => atomic!("and.b64", B64),
        (AtomicOp::Or, Scalar::I64 | Scalar::U64 | Scalar::Usize) => atomic!("or.b64", B64),
        (AtomicOp::Xor, Scalar::I64 | Scalar::U64 | Scalar::Usize) => atomic!("xor.b64", B64),
        (AtomicOp::Exchange, Scalar::I64 | Scalar::U64 | Scalar::Usize) => atomic!("exch.b64", B64),
        _ => None,
    }
}
