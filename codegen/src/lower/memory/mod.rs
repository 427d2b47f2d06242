//! Scalars in memory: shared arrays and slices of global memory.

pub(super) mod atomic;
pub(super) mod vector;

use inkwell::IntPredicate;
use inkwell::values::{BasicValueEnum, IntValue, PointerValue};

use self::vector::Vector;
use super::kernel::Param;
use super::types::{int, pointer};
use super::{Cx, Lower, bounds, exact, expr, place, print};
use crate::backend::BackendError;
use crate::ir::{Expr, LocalId, ParamId, Scalar, Span, Type};

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

/// A scalar as memory has it, of what is in a register.
pub(super) fn to_memory<'c>(
    cx: &Cx<'c, '_>,
    value: BasicValueEnum<'c>,
    scalar: Scalar,
) -> Lower<BasicValueEnum<'c>> {
    if scalar != Scalar::Bool {
        return Ok(value);
    }
    Ok(cx.builder.build_int_z_extend(int(value)?, cx.context.i8_type(), "")?.into())
}

/// Writes a scalar to `address`.
pub(super) fn store<'c>(
    cx: &Cx<'c, '_>,
    address: PointerValue<'c>,
    value: BasicValueEnum<'c>,
    scalar: Scalar,
) -> Lower<()> {
    let stored = to_memory(cx, value, scalar)?;
    cx.builder.build_store(address, stored)?;
    Ok(())
}

/// The scalar at `address`, or the vector.
pub(super) fn load_any<'c>(
    cx: &Cx<'c, '_>,
    address: PointerValue<'c>,
    scalar: Scalar,
    vector: Option<Vector>,
) -> Lower<BasicValueEnum<'c>> {
    match vector {
        Some(vector) => vector::load(cx, address, vector),
        None => load(cx, address, scalar),
    }
}

/// Writes a scalar, or a vector, to `address`.
pub(super) fn store_any<'c>(
    cx: &Cx<'c, '_>,
    address: PointerValue<'c>,
    value: BasicValueEnum<'c>,
    (scalar, vector): (Scalar, Option<Vector>),
) -> Lower<()> {
    match vector {
        Some(vector) => vector::store(cx, address, value, vector),
        None => store(cx, address, value, scalar),
    }
}

/// `dest = array[index]`.
pub(super) fn shared_get(cx: &mut Cx<'_, '_>, dest: LocalId, array: &Expr, index: &Expr) -> Lower<()> {
    let vector = Vector::of(&cx.kernel.kernel().local(dest).ty)?;
    let (address, scalar) = shared_address(cx, array, index, vector)?;
    let value = load_any(cx, address, scalar, vector)?;
    place::store(cx, dest, value)
}

/// `array[index] = value`.
pub(super) fn shared_set(cx: &mut Cx<'_, '_>, array: &Expr, index: &Expr, value: &Expr) -> Lower<()> {
    let vector = Vector::of(&value.ty)?;
    let value = expr::value(cx, value)?;
    let (address, scalar) = shared_address(cx, array, index, vector)?;
    store_any(cx, address, value, (scalar, vector))
}

/// The address of `array[index]`, or of the vector that begins there, and what is there.
fn shared_address<'c>(
    cx: &mut Cx<'c, '_>,
    array: &Expr,
    index: &Expr,
    vector: Option<Vector>,
) -> Lower<(PointerValue<'c>, Scalar)> {
    let Type::SharedArray(scalar, len) = *array.ty.local() else {
        return Err(BackendError::Unchecked(format!("a shared array of type `{}`", array.ty)));
    };
    let base = expr::value(cx, array).and_then(pointer)?;
    let at = bounds::index(cx, index, (array, len, "elements"))?;
    if let Some(vector) = vector {
        vector::check_multiple(cx, at, vector, ("a shared array", index.span))?;
    }
    Ok((element_address(cx, base, scalar, at)?, scalar))
}

/// `dest = global[index]`.
pub(super) fn global_get(cx: &mut Cx<'_, '_>, dest: LocalId, global: ParamId, index: &Expr) -> Lower<()> {
    let vector = Vector::of(&cx.kernel.kernel().local(dest).ty)?;
    let (address, scalar) = global_addresses(cx, global, index, vector)?;
    let value = load_any(cx, address, scalar, vector)?;
    place::store(cx, dest, value)
}

/// `global[index] = value`.
pub(super) fn global_set(cx: &mut Cx<'_, '_>, global: ParamId, index: &Expr, value: &Expr) -> Lower<()> {
    let vector = Vector::of(&value.ty)?;
    let value = expr::value(cx, value)?;
    let (address, scalar) = global_addresses(cx, global, index, vector)?;
    store_any(cx, address, value, (scalar, vector))
}

/// The address of `global[index]`; what comes after is only reached if there is such an element.
pub(super) fn global_address<'c>(
    cx: &mut Cx<'c, '_>,
    global: ParamId,
    index: &Expr,
) -> Lower<(PointerValue<'c>, Scalar)> {
    let span = index.span;
    let index = exact::widened_index(cx, index)?;
    checked_address(cx, global, index, span)
}

/// The address of `global[index]`, or of the vector that begins there: all of it is in the slice.
fn global_addresses<'c>(
    cx: &mut Cx<'c, '_>,
    global: ParamId,
    index: &Expr,
    vector: Option<Vector>,
) -> Lower<(PointerValue<'c>, Scalar)> {
    let Some(vector) = vector else { return global_address(cx, global, index) };
    let span = index.span;
    let (index, same) = exact::widened_index(cx, index)?;
    let (address, len, scalar) = slice(cx, global)?;
    let name = cx.kernel.kernel().param(global).name.clone();
    // How many elements may be the first of a vector; none of a slice that is shorter.
    let (wide, others) = (index.get_type(), u64::from(vector.len) - 1);
    let overload = [wide.into()];
    let args = [len.into(), wide.const_int(others, false).into()];
    let firsts = cx.intrinsic_value("llvm.usub.sat", &overload, &args).and_then(int)?;
    let inside = cx.builder.build_int_compare(IntPredicate::ULT, index, firsts, "")?;
    let inside = exact::and(cx, inside, same)?;
    print::assert(cx, inside, &format!("vector out of bounds of `{name}`"), span)?;
    vector::check_multiple(cx, index, vector, (&format!("`{name}`"), span))?;
    Ok((element_address(cx, address, scalar, index)?, scalar))
}

/// As [`global_address`], of an index of 64 bits, and of whether it has not wrapped, if it can;
/// `span` is what a trap names.
pub(super) fn checked_address<'c>(
    cx: &mut Cx<'c, '_>,
    global: ParamId,
    (index, same): (IntValue<'c>, Option<IntValue<'c>>),
    span: Span,
) -> Lower<(PointerValue<'c>, Scalar)> {
    let (address, len, scalar) = slice(cx, global)?;
    let name = &cx.kernel.kernel().param(global).name;
    let inside = cx.builder.build_int_compare(IntPredicate::ULT, index, len, "")?;
    let inside = exact::and(cx, inside, same)?;
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
