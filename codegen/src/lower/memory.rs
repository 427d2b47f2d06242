//! Scalars in memory: shared arrays and slices of global memory.

use inkwell::IntPredicate;
use inkwell::values::{BasicValueEnum, IntValue, PointerValue};

use super::kernel::Param;
use super::types::{int, pointer};
use super::{Cx, Lower, bounds, expr, nvvm, place, print};
use crate::backend::BackendError;
use crate::ir::{AtomicOp, Expr, LocalId, ParamId, Scalar, Span, Type};

/// A scalar as a register has it, of what memory or a parameter holds.
pub(super) fn from_memory<'c>(
    cx: &Cx<'c, '_>,
    stored: BasicValueEnum<'c>,
    scalar: Scalar,
) -> Lower<BasicValueEnum<'c>> {
    if scalar != Scalar::Bool {
        return Ok(stored);
    }
    let byte = int(stored)?;
    let zero = byte.get_type().const_zero();
    Ok(cx.builder.build_int_compare(IntPredicate::NE, byte, zero, "")?.into())
}

/// The scalar at `address`.
pub(super) fn load<'c>(
    cx: &Cx<'c, '_>,
    address: PointerValue<'c>,
    scalar: Scalar,
) -> Lower<BasicValueEnum<'c>> {
    let stored = cx.builder.build_load(cx.memory_type(scalar), address, "")?;
    from_memory(cx, stored, scalar)
}

/// Writes a scalar to `address`.
pub(super) fn store<'c>(
    cx: &Cx<'c, '_>,
    address: PointerValue<'c>,
    value: BasicValueEnum<'c>,
    scalar: Scalar,
) -> Lower<()> {
    if scalar == Scalar::Bool {
        let byte = cx.builder.build_int_z_extend(int(value)?, cx.context.i8_type(), "")?;
        cx.builder.build_store(address, byte)?;
    } else {
        cx.builder.build_store(address, value)?;
    }
    Ok(())
}

/// `dest = array[index]`.
pub(super) fn shared_get(cx: &mut Cx<'_, '_>, dest: LocalId, array: &Expr, index: &Expr) -> Lower<()> {
    let (address, scalar) = shared_address(cx, array, index)?;
    let value = load(cx, address, scalar)?;
    place::store(cx, dest, value)
}

/// `array[index] = value`.
pub(super) fn shared_set(cx: &mut Cx<'_, '_>, array: &Expr, index: &Expr, value: &Expr) -> Lower<()> {
    let value = expr::value(cx, value)?;
    let (address, scalar) = shared_address(cx, array, index)?;
    store(cx, address, value, scalar)
}

/// The address of `array[index]`, and what is there.
fn shared_address<'c>(cx: &mut Cx<'c, '_>, array: &Expr, index: &Expr) -> Lower<(PointerValue<'c>, Scalar)> {
    let Type::SharedArray(scalar, len) = *array.ty.local() else {
        return Err(BackendError::Unchecked(format!("a shared array of type `{}`", array.ty)));
    };
    let base = expr::value(cx, array).and_then(pointer)?;
    let at = expr::int_value(cx, index)?;
    bounds::index(cx, at, (array, len, "elements"), index.span)?;
    Ok((element_address(cx, base, scalar, at)?, scalar))
}

/// `dest = global[index]`.
pub(super) fn global_get(cx: &mut Cx<'_, '_>, dest: LocalId, global: ParamId, index: &Expr) -> Lower<()> {
    let (address, scalar) = global_address(cx, global, index)?;
    let value = load(cx, address, scalar)?;
    place::store(cx, dest, value)
}

/// `global[index] = value`.
pub(super) fn global_set(cx: &mut Cx<'_, '_>, global: ParamId, index: &Expr, value: &Expr) -> Lower<()> {
    let value = expr::value(cx, value)?;
    let (address, scalar) = global_address(cx, global, index)?;
    store(cx, address, value, scalar)
}

/// `dest = global[index]` and `global[index] = op(dest, value)`, as one step that orders nothing
/// else.
pub(super) fn global_atomic(
    cx: &mut Cx<'_, '_>,
    dest: LocalId,
    op: AtomicOp,
    global: ParamId,
    index: &Expr,
    value: &Expr,
) -> Lower<()> {
    let value = expr::value(cx, value)?;
    let (address, scalar) = global_address(cx, global, index)?;
    let instruction = nvvm::atomic(op, scalar)
        .ok_or_else(|| BackendError::Unchecked(format!("`{}` on `{scalar}`", op.name())))?;
    let old = nvvm::emit_value(cx, &instruction, &[address.into(), value])?;
    place::store(cx, dest, old)
}

/// The address of `global[index]`; what comes after is only reached if there is such an element.
pub(super) fn global_address<'c>(
    cx: &mut Cx<'c, '_>,
    global: ParamId,
    index: &Expr,
) -> Lower<(PointerValue<'c>, Scalar)> {
    let span = index.span;
    let index = expr::widened(cx, index)?;
    checked_address(cx, global, index, span)
}

/// As [`global_address`], of an index of 64 bits; `span` is what a trap names.
pub(super) fn checked_address<'c>(
    cx: &mut Cx<'c, '_>,
    global: ParamId,
    index: IntValue<'c>,
    span: Span,
) -> Lower<(PointerValue<'c>, Scalar)> {
    let (address, len, scalar) = slice(cx, global)?;
    let name = &cx.kernel.kernel().param(global).name;
    let inside = cx.builder.build_int_compare(IntPredicate::ULT, index, len, "")?;
    print::assert(cx, inside, &format!("index out of bounds of `{name}`"), span)?;
    Ok((element_address(cx, address, scalar, index)?, scalar))
}

/// A slice of global memory: its address, its number of elements, and their type.
pub(super) fn slice<'c>(cx: &Cx<'c, '_>, global: ParamId) -> Lower<(PointerValue<'c>, IntValue<'c>, Scalar)> {
    let param = cx.kernel.kernel().param(global);
    match (expr::param(cx, global)?, &param.ty) {
        (Param::Global { address, len }, Type::Global(scalar)) => Ok((address, len, *scalar)),
        _ => Err(BackendError::Unchecked(format!("an element of `{}`, which is no slice", param.name))),
    }
}

/// The address of the element `index` from `base` on.
pub(super) fn element_address<'c>(
    cx: &Cx<'c, '_>,
    base: PointerValue<'c>,
    scalar: Scalar,
    index: IntValue<'c>,
) -> Lower<PointerValue<'c>> {
    // SAFETY: without `inbounds` the address may lie anywhere; `base` points to such scalars.
    Ok(unsafe { cx.builder.build_gep(cx.memory_type(scalar), base, &[index], "")? })
}
