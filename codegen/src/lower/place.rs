//! Locals and register arrays.

use inkwell::types::BasicTypeEnum;
use inkwell::values::{AggregateValueEnum, BasicValueEnum, PointerValue};

use super::{Cx, Lower, bounds, expr};
use crate::backend::BackendError;
use crate::ir::{Expr, ExprKind, LocalId, Type};

/// Where `local` lives.
fn home<'c>(cx: &Cx<'c, '_>, local: LocalId) -> Lower<PointerValue<'c>> {
    cx.locals
        .get(local.0 as usize)
        .copied()
        .ok_or_else(|| BackendError::Unchecked(format!("local {}, which is not declared", local.0)))
}

/// What `local` holds.
pub(super) fn load<'c>(cx: &Cx<'c, '_>, local: LocalId) -> Lower<BasicValueEnum<'c>> {
    let ty = cx.value_type(&cx.kernel.kernel().local(local).ty)?;
    Ok(cx.builder.build_load(ty, home(cx, local)?, "")?)
}

/// `local = value`.
pub(super) fn store<'c>(cx: &Cx<'c, '_>, local: LocalId, value: BasicValueEnum<'c>) -> Lower<()> {
    cx.builder.build_store(home(cx, local)?, value)?;
    Ok(())
}

/// `local[index]… = value`.
pub(super) fn assign(cx: &mut Cx<'_, '_>, local: LocalId, index: &[Expr], value: &Expr) -> Lower<()> {
    let value_span = value.span;
    let value = expr::value(cx, value)?;
    let mut place = home(cx, local)?;
    let ty = cx.kernel.kernel().local(local).ty.clone();
    let mut array = Expr { kind: ExprKind::Local(local), ty, span: value_span };
    for index in index {
        place = element_place(cx, place, &array, index)?;
        let ty = element_type(&array.ty)?.clone();
        array =
            Expr { kind: ExprKind::Index(Box::new(array), Box::new(index.clone())), ty, span: index.span };
    }
    cx.builder.build_store(place, value)?;
    Ok(())
}

/// A register array of these elements.
pub(super) fn array<'c>(
    cx: &Cx<'c, '_>,
    ty: &Type,
    elements: impl IntoIterator<Item = BasicValueEnum<'c>>,
) -> Lower<BasicValueEnum<'c>> {
    let BasicTypeEnum::ArrayType(ty) = cx.value_type(ty)? else {
        return Err(BackendError::Unchecked(format!("an array of type `{ty}`")));
    };
    let mut array = AggregateValueEnum::ArrayValue(ty.get_poison());
    for (index, element) in (0..).zip(elements) {
        array = cx.builder.build_insert_value(array, element, index, "")?;
    }
    match array {
        AggregateValueEnum::ArrayValue(array) => Ok(array.into()),
        AggregateValueEnum::StructValue(_) => {
            Err(BackendError::Unchecked("an array that is none".to_owned()))
        }
    }
}

/// `array[index]`. Where nothing tests it, an index outside reads nothing in particular.
pub(super) fn element<'c>(cx: &mut Cx<'c, '_>, array: &Expr, index: &Expr) -> Lower<BasicValueEnum<'c>> {
    let ty = cx.value_type(element_type(&array.ty)?)?;
    let place = place_of(cx, array)?;
    let place = element_place(cx, place, array, index)?;
    Ok(cx.builder.build_load(ty, place, "")?)
}

/// Where an array is: a local's home or a part of it, or else a home made for it here.
fn place_of<'c>(cx: &mut Cx<'c, '_>, array: &Expr) -> Lower<PointerValue<'c>> {
    if let ExprKind::Local(local) = array.kind {
        return home(cx, local);
    }
    if let ExprKind::Index(outer, index) = &array.kind {
        let place = place_of(cx, outer)?;
        return element_place(cx, place, outer, index);
    }
    let value = expr::value(cx, array)?;
    let place = cx.allocas.build_alloca(value.get_type(), "")?;
    cx.builder.build_store(place, value)?;
    Ok(place)
}

fn element_type(array: &Type) -> Lower<&Type> {
    let Type::Array(element, _) = array else {
        return Err(BackendError::Unchecked(format!("an element of type `{array}`")));
    };
    Ok(element)
}

/// The place of `array[index]`, of an array at `place`.
fn element_place<'c>(
    cx: &mut Cx<'c, '_>,
    place: PointerValue<'c>,
    array: &Expr,
    index: &Expr,
) -> Lower<PointerValue<'c>> {
    let Type::Array(element, len) = &array.ty else {
        return Err(BackendError::Unchecked(format!("an element of type `{}`", array.ty)));
    };
    let at = expr::int_value(cx, index)?;
    bounds::index(cx, at, (array, *len, "elements"), index.span)?;
    let element = cx.value_type(element)?;
    // SAFETY: without `inbounds` the address may lie anywhere; `place` points to `element`s.
    Ok(unsafe { cx.builder.build_gep(element, place, &[at], "")? })
}
