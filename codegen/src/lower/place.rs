//! Locals and register arrays.

use inkwell::types::BasicTypeEnum;
use inkwell::values::{AggregateValueEnum, BasicValueEnum, IntValue, PointerValue};

use super::types::int;
use super::{Cx, Lower, bounds, expr};
use crate::backend::BackendError;
use crate::ir::{Expr, ExprKind, Kernel, LocalId, Scalar, StmtKind, Type, visit};

/// Where `local` lives.
pub(super) fn home<'c>(cx: &Cx<'c, '_>, local: LocalId) -> Lower<PointerValue<'c>> {
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

/// The address of the `index`th `ty` from `base` on.
pub(super) fn at<'c>(
    cx: &Cx<'c, '_>,
    ty: BasicTypeEnum<'c>,
    base: PointerValue<'c>,
    index: IntValue<'c>,
) -> Lower<PointerValue<'c>> {
    // SAFETY: without `inbounds` the address may lie anywhere.
    Ok(unsafe { cx.builder.build_gep(ty, base, &[index], "")? })
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
    if let ([index], true) = (index, holds_halves(&ty)) {
        return set_half(cx, place, index, value);
    }
    let mut array = Expr { kind: ExprKind::Local(local), ty, span: value_span };
    for index in index {
        place = element_place(cx, place, &array, index)?;
        let ty = element_type(&array.ty)?;
        array =
            Expr { kind: ExprKind::Index(Box::new(array), Box::new(index.clone())), ty, span: index.span };
    }
    cx.builder.build_store(place, value)?;
    Ok(())
}

/// Whether elements of an accumulator of f16 are read or written one by one.
pub(super) fn takes_halves_apart(kernel: &Kernel) -> bool {
    let mut found = false;
    visit::for_each_expr(&kernel.body, &mut |expr| {
        found |= matches!(&expr.kind, ExprKind::Index(of, _) if holds_halves(&of.ty));
    });
    visit::for_each_stmt(&kernel.body, &mut |stmt| {
        if let StmtKind::Assign { local, index, .. } = &stmt.kind {
            found |= !index.is_empty() && holds_halves(&kernel.local(*local).ty);
        }
    });
    found
}

/// Whether two elements of a thing of this type lie in a register.
fn holds_halves(of: &Type) -> bool {
    matches!(of, Type::Accumulator(sum) if sum.element == Scalar::F16)
}

/// The register of an element of f16, and by how many bits the element is moved in it.
fn half_place<'c>(
    cx: &mut Cx<'c, '_>,
    base: PointerValue<'c>,
    index: &Expr,
) -> Lower<(PointerValue<'c>, IntValue<'c>)> {
    let index = expr::int_value(cx, index)?;
    let one = index.get_type().const_int(1, false);
    let register = cx.builder.build_right_shift(index, one, false, "")?;
    let which = cx.builder.build_and(index, one, "")?;
    let which = cx.builder.build_int_truncate_or_bit_cast(which, cx.context.i32_type(), "")?;
    let amount = cx.builder.build_int_mul(which, cx.u32_const(16), "")?;
    Ok((at(cx, cx.context.i32_type().into(), base, register)?, amount))
}

/// An element of f16 of the accumulator at `base`.
fn half<'c>(cx: &mut Cx<'c, '_>, base: PointerValue<'c>, index: &Expr) -> Lower<BasicValueEnum<'c>> {
    let (place, amount) = half_place(cx, base, index)?;
    let both = int(cx.builder.build_load(cx.context.i32_type(), place, "")?)?;
    let low = cx.builder.build_right_shift(both, amount, false, "")?;
    let bits = cx.builder.build_int_truncate(low, cx.context.i16_type(), "")?;
    Ok(cx.builder.build_bit_cast(bits, cx.context.f16_type(), "")?)
}

/// Gives an element of f16 of the accumulator at `base` a value.
fn set_half<'c>(
    cx: &mut Cx<'c, '_>,
    base: PointerValue<'c>,
    index: &Expr,
    value: BasicValueEnum<'c>,
) -> Lower<()> {
    let (place, amount) = half_place(cx, base, index)?;
    let register = cx.context.i32_type();
    let both = int(cx.builder.build_load(register, place, "")?)?;
    let mask = cx.builder.build_left_shift(cx.u32_const(0xffff), amount, "")?;
    let other = cx.builder.build_and(both, cx.builder.build_not(mask, "")?, "")?;
    let bits = int(cx.builder.build_bit_cast(value, cx.context.i16_type(), "")?)?;
    let bits = cx.builder.build_int_z_extend(bits, register, "")?;
    let bits = cx.builder.build_left_shift(bits, amount, "")?;
    cx.builder.build_store(place, cx.builder.build_or(other, bits, "")?)?;
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
    let ty = cx.value_type(&element_type(&array.ty)?)?;
    let place = place_of(cx, array)?;
    if holds_halves(&array.ty) {
        return half(cx, place, index);
    }
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

fn element_type(array: &Type) -> Lower<Type> {
    let element = array.elements().map(|(element, _)| element);
    element.ok_or_else(|| BackendError::Unchecked(format!("an element of type `{array}`")))
}

/// The place of `array[index]`, of an array at `place`.
fn element_place<'c>(
    cx: &mut Cx<'c, '_>,
    place: PointerValue<'c>,
    array: &Expr,
    index: &Expr,
) -> Lower<PointerValue<'c>> {
    let Some((element, len)) = array.ty.elements() else {
        return Err(BackendError::Unchecked(format!("an element of type `{}`", array.ty)));
    };
    let at = expr::int_value(cx, index)?;
    bounds::index(cx, at, (array, len, "elements"), index.span)?;
    let element = cx.value_type(&element)?;
    // SAFETY: without `inbounds` the address may lie anywhere; `place` points to `element`s.
    Ok(unsafe { cx.builder.build_gep(element, place, &[at], "")? })
}
