//! Scalars in memory: shared arrays and slices of global memory.

pub(super) mod atomic;
mod cached;
pub(super) mod vector;

use inkwell::IntPredicate;
use inkwell::values::{BasicValueEnum, IntValue, PointerValue};
use tma_front::ir::{Expr, GlobalRef, LoadPath, LocalId, ParamId, PeerMemory, Scalar, Span, Type};

use self::cached::Place;
use self::vector::Vector;
use super::kernel::Param;
use super::types::{int, pointer};
use super::{Cx, Lower, bounds, expr, locals, peers, print};
use crate::backend::BackendError;

/// Converts a scalar from its type in memory or parameters to its register type.
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

/// Loads the scalar at `address`.
pub(super) fn load<'c>(
    cx: &Cx<'c, '_>,
    address: PointerValue<'c>,
    scalar: Scalar,
) -> Lower<BasicValueEnum<'c>> {
    let stored = cx.builder.build_load(cx.memory_type(scalar), address, "")?;
    from_memory(cx, stored, scalar)
}

/// Converts a scalar from its register type to its type in memory.
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

/// Stores a scalar at `address`.
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

/// Loads the scalar or the vector at `address`.
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

/// Stores a scalar or a vector at `address`.
pub(super) fn store_any<'c>(
    cx: &Cx<'c, '_>,
    address: PointerValue<'c>,
    value: BasicValueEnum<'c>,
    scalar: Scalar,
    vector: Option<Vector>,
) -> Lower<()> {
    match vector {
        Some(vector) => vector::store(cx, address, value, vector),
        None => store(cx, address, value, scalar),
    }
}

/// Lowers `dest = array[index]`.
pub(super) fn shared_get(cx: &mut Cx<'_, '_>, dest: LocalId, array: &Expr, index: &Expr) -> Lower<()> {
    let vector = Vector::of(&cx.kernel.kernel().local(dest).ty)?;
    let (address, scalar) = shared_address(cx, array, index, vector)?;
    let value = load_any(cx, address, scalar, vector)?;
    locals::store(cx, dest, value)
}

/// Lowers `array[index] = value`.
pub(super) fn shared_set(cx: &mut Cx<'_, '_>, array: &Expr, index: &Expr, value: &Expr) -> Lower<()> {
    let vector = Vector::of(&value.ty)?;
    let value = expr::value(cx, value)?;
    let (address, scalar) = shared_address(cx, array, index, vector)?;
    store_any(cx, address, value, scalar, vector)
}

/// Emits the address of `array[index]`, or of the vector that begins there. Returns it with the
/// element type.
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
    let at = bounds::index(cx, index, bounds::Container { thing: array, len, noun: "elements" })?;
    if let Some(vector) = vector {
        vector::check_multiple(cx, at, vector, "a shared array", index.span)?;
    }
    Ok((element_address(cx, base, scalar, at)?, scalar))
}

/// An element of a slice, or the vector that begins there, and how its access uses the caches.
#[derive(Clone, Copy)]
pub(super) struct GlobalElement<'k> {
    pub(super) global: &'k GlobalRef,
    pub(super) index: &'k Expr,
    /// The cache policy.
    pub(super) hint: Option<&'k Expr>,
}

/// Lowers `dest = global[index]`.
pub(super) fn global_get(
    cx: &mut Cx<'_, '_>,
    dest: LocalId,
    element: GlobalElement<'_>,
    path: LoadPath,
) -> Lower<()> {
    let GlobalElement { global, index, hint } = element;
    let vector = Vector::of(&cx.kernel.kernel().local(dest).ty)?;
    let (address, scalar) = global_addresses(cx, global, index, vector)?;
    let policy = hint.map(|hint| expr::value(cx, hint)).transpose()?;
    let value = match (path, policy) {
        (LoadPath::Coherent, None) => load_any(cx, address, scalar, vector)?,
        (LoadPath::NonCoherent, None) | (LoadPath::Coherent | LoadPath::NonCoherent, Some(_)) => {
            cached::load(cx, Place { address, scalar, vector }, path, policy)?
        }
    };
    locals::store(cx, dest, value)
}

/// Lowers `global[index] = value`.
pub(super) fn global_set(cx: &mut Cx<'_, '_>, element: GlobalElement<'_>, value: &Expr) -> Lower<()> {
    let GlobalElement { global, index, hint } = element;
    let vector = Vector::of(&value.ty)?;
    let value = expr::value(cx, value)?;
    let (address, scalar) = global_addresses(cx, global, index, vector)?;
    match hint {
        None => store_any(cx, address, value, scalar, vector),
        Some(hint) => {
            let policy = expr::value(cx, hint)?;
            cached::store(cx, Place { address, scalar, vector }, value, policy)
        }
    }
}

/// Emits the address of `global[index]`, after a bounds check.
pub(super) fn global_address<'c>(
    cx: &mut Cx<'c, '_>,
    global: &GlobalRef,
    index: &Expr,
) -> Lower<(PointerValue<'c>, Scalar)> {
    let span = index.span;
    let index = expr::widened(cx, index)?;
    let slice = slice_of(cx, global)?;
    checked_element(cx, global.param, slice, index, span)
}

/// Emits the address of `global[index]`, or of the vector that begins there, after a check that all
/// of it lies in the slice.
fn global_addresses<'c>(
    cx: &mut Cx<'c, '_>,
    global: &GlobalRef,
    index: &Expr,
    vector: Option<Vector>,
) -> Lower<(PointerValue<'c>, Scalar)> {
    let Some(vector) = vector else { return global_address(cx, global, index) };
    let span = index.span;
    let index = expr::widened(cx, index)?;
    let (address, len, scalar) = slice_of(cx, global)?;
    let name = cx.kernel.kernel().param(global.param).name.clone();
    // The number of elements that can be the first of a vector; 0 for a slice that is shorter.
    let (wide, others) = (index.get_type(), u64::from(vector.len) - 1);
    let overload = [wide.into()];
    let args = [len.into(), wide.const_int(others, false).into()];
    let firsts = cx.intrinsic_value("llvm.usub.sat", &overload, &args).and_then(int)?;
    let inside = cx.builder.build_int_compare(IntPredicate::ULT, index, firsts, "")?;
    let message = format!("index out of bounds of `{name}`, for a vector of {} elements", vector.len);
    print::assert(cx, inside, &message, span)?;
    vector::check_multiple(cx, index, vector, &format!("`{name}`"), span)?;
    Ok((element_address(cx, address, scalar, index)?, scalar))
}

/// Like [`global_address`], for a 64-bit index. `span` is the position that a failed check reports.
pub(super) fn checked_address<'c>(
    cx: &mut Cx<'c, '_>,
    global: ParamId,
    index: IntValue<'c>,
    span: Span,
) -> Lower<(PointerValue<'c>, Scalar)> {
    let slice = slice(cx, global)?;
    checked_element(cx, global, slice, index, span)
}

/// A slice of global memory: its address, its number of elements, and their type.
type Slice<'c> = (PointerValue<'c>, IntValue<'c>, Scalar);

/// Emits the address of an element of a slice of the parameter `global`, after a bounds check.
fn checked_element<'c>(
    cx: &mut Cx<'c, '_>,
    global: ParamId,
    (address, len, scalar): Slice<'c>,
    index: IntValue<'c>,
    span: Span,
) -> Lower<(PointerValue<'c>, Scalar)> {
    let name = &cx.kernel.kernel().param(global).name;
    let inside = cx.builder.build_int_compare(IntPredicate::ULT, index, len, "")?;
    print::assert(cx, inside, &format!("index out of bounds of `{name}`"), span)?;
    Ok((element_address(cx, address, scalar, index)?, scalar))
}

/// Returns a slice of global memory, which may be that of another rank.
pub(super) fn slice_of<'c>(cx: &mut Cx<'c, '_>, global: &GlobalRef) -> Lower<Slice<'c>> {
    let Some(rank) = &global.rank else { return slice(cx, global.param) };
    let param = cx.kernel.kernel().param(global.param);
    match (expr::param(cx, global.param)?, &param.ty) {
        (Param::PeerGlobals { addresses, len }, Type::Peers(PeerMemory::Global(scalar))) => {
            let rank = peers::checked(cx, rank)?;
            Ok((peers::address(cx, addresses, rank)?, len, *scalar))
        }
        _ => Err(BackendError::Unchecked(format!("an element of `{}`, which has no ranks", param.name))),
    }
}

/// Returns the slice of a parameter.
pub(super) fn slice<'c>(cx: &Cx<'c, '_>, global: ParamId) -> Lower<Slice<'c>> {
    let param = cx.kernel.kernel().param(global);
    match (expr::param(cx, global)?, &param.ty) {
        (Param::Global { address, len }, Type::Global(scalar)) => Ok((address, len, *scalar)),
        _ => Err(BackendError::Unchecked(format!("an element of `{}`, which is no slice", param.name))),
    }
}

/// Emits the address of element `index`, relative to `base`.
pub(super) fn element_address<'c>(
    cx: &Cx<'c, '_>,
    base: PointerValue<'c>,
    scalar: Scalar,
    index: IntValue<'c>,
) -> Lower<PointerValue<'c>> {
    // SAFETY: without `inbounds`, the address may be arbitrary; `base` points to such scalars.
    Ok(unsafe { cx.builder.build_gep(cx.memory_type(scalar), base, &[index], "")? })
}
