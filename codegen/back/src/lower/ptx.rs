//! `ptx!`: the kernel's own instructions, and the registers of their operands.

use inkwell::values::BasicValueEnum;
use tma_front::ir::{Expr, ExprKind, Ptx, Scalar, Type};

use super::nvvm::{Operand, PtxOperands};
use super::{Cx, Lower, expr, locals, memory, nvvm};
use crate::backend::BackendError;

/// Lowers a `ptx!`.
pub(super) fn instructions(cx: &mut Cx<'_, '_>, ptx: &Ptx) -> Lower<()> {
    let mut operands = PtxOperands { outputs: vec![], inputs: vec![] };
    for input in &ptx.inputs {
        operands.inputs.push(operand(cx, input)?);
    }
    for output in &ptx.outputs {
        operands.outputs.push(register(&cx.kernel.kernel().local(output.dest).ty)?);
    }
    let results = nvvm::ptx(cx, ptx, &operands)?;
    for (output, result) in ptx.outputs.iter().zip(results) {
        let ty = cx.value_type(&cx.kernel.kernel().local(output.dest).ty)?;
        let value = cx.builder.build_bit_cast(result, ty, "")?;
        locals::store(cx, output.dest, value)?;
    }
    Ok(())
}

/// Emits the value of an input.
fn operand<'c>(cx: &mut Cx<'c, '_>, input: &Expr) -> Lower<(Operand, BasicValueEnum<'c>)> {
    if let (ExprKind::Param(global), Type::Global(_)) = (&input.kind, &input.ty) {
        let (address, ..) = memory::slice(cx, *global)?;
        return Ok((Operand::Global, address.into()));
    }
    let value = expr::value(cx, input)?;
    let Some(scalar) = input.ty.as_scalar() else { return Ok((Operand::Shared, value)) };
    let register = register(&input.ty)?;
    let is_half = matches!(scalar, Scalar::F16 | Scalar::Bf16);
    let value = if is_half { cx.builder.build_bit_cast(value, cx.context.i16_type(), "")? } else { value };
    Ok((register, value))
}

/// Returns the register that holds a scalar.
fn register(ty: &Type) -> Lower<Operand> {
    match ty.as_scalar() {
        Some(Scalar::Bool) => Ok(Operand::Pred),
        Some(Scalar::I16 | Scalar::U16 | Scalar::F16 | Scalar::Bf16) => Ok(Operand::B16),
        Some(Scalar::I32 | Scalar::U32 | Scalar::Tf32) => Ok(Operand::B32),
        Some(Scalar::I64 | Scalar::U64 | Scalar::Usize) => Ok(Operand::B64),
        Some(Scalar::F32) => Ok(Operand::F32),
        Some(Scalar::F64) => Ok(Operand::F64),
        Some(Scalar::I8 | Scalar::U8 | Scalar::E4m3 | Scalar::E5m2) | None => {
            Err(BackendError::Unchecked(format!("an operand of `ptx!` of type `{ty}`")))
        }
    }
}
