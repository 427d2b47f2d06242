//! Locals and register arrays.

use inkwell::types::BasicTypeEnum;
use inkwell::values::{AggregateValueEnum, BasicValueEnum, InstructionValue, IntValue, PointerValue};
use tma_front::ir::{Expr, ExprKind, Kernel, LocalId, Scalar, StmtKind, Type, visit};

use super::types::int;
use super::{Cx, Lower, bounds, expr};
use crate::backend::BackendError;

/// Returns the alloca of `local`.
pub(super) fn alloca_of<'c>(cx: &Cx<'c, '_>, local: LocalId) -> Lower<PointerValue<'c>> {
    cx.locals
        .get(local.0 as usize)
        .copied()
        .ok_or_else(|| BackendError::Unchecked(format!("local {}, which is not declared", local.0)))
}

/// Loads the value of `local`.
pub(super) fn load<'c>(cx: &Cx<'c, '_>, local: LocalId) -> Lower<BasicValueEnum<'c>> {
    let ty = cx.value_type(&cx.kernel.kernel().local(local).ty)?;
    Ok(cx.builder.build_load(ty, alloca_of(cx, local)?, "")?)
}

/// Returns the address of element `index` of type `ty`, relative to `base`.
pub(super) fn at<'c>(
    cx: &Cx<'c, '_>,
    ty: BasicTypeEnum<'c>,
    base: PointerValue<'c>,
    index: IntValue<'c>,
) -> Lower<PointerValue<'c>> {
    // SAFETY: without `inbounds`, the address may be arbitrary.
    Ok(unsafe { cx.builder.build_gep(ty, base, &[index], "")? })
}

/// Sets the alignment of an access to exactly this number of bytes.
pub(super) fn align(access: InstructionValue<'_>, bytes: u32) -> Lower<()> {
    access
        .set_alignment(bytes)
        .map_err(|error| BackendError::Unchecked(format!("an alignment of {bytes} bytes: {error}")))
}

/// Emits `local = value`.
pub(super) fn store<'c>(cx: &Cx<'c, '_>, local: LocalId, value: BasicValueEnum<'c>) -> Lower<()> {
    cx.builder.build_store(alloca_of(cx, local)?, value)?;
    Ok(())
}

/// Emits `local[index]… = value`.
pub(super) fn assign(cx: &mut Cx<'_, '_>, local: LocalId, index: &[Expr], value: &Expr) -> Lower<()> {
    let value_span = value.span;
    let value = expr::value(cx, value)?;
    let mut address = alloca_of(cx, local)?;
    let ty = cx.kernel.kernel().local(local).ty.clone();
    let mut array = Expr { kind: ExprKind::Local(local), ty, span: value_span };
    if let ([index], true) = (index, is_of_halves(&array.ty)) {
        let half = half(cx, address, &array, index)?;
        return half.set(cx, value);
    }
    for index in index {
        address = element_address(cx, address, &array, index)?;
        let ty = element_type(&array.ty)?;
        array =
            Expr { kind: ExprKind::Index(Box::new(array), Box::new(index.clone())), ty, span: index.span };
    }
    cx.builder.build_store(address, value)?;
    Ok(())
}

/// Whether single elements of an f16 accumulator are read or written.
pub(super) fn accesses_packed_f16(kernel: &Kernel) -> bool {
    let mut found = false;
    visit::for_each_expr(&kernel.body, &mut |expr| {
        found |= matches!(&expr.kind, ExprKind::Index(of, _) if is_of_halves(&of.ty));
    });
    visit::for_each_stmt(&kernel.body, &mut |stmt| {
        if let StmtKind::Assign { local, index, .. } = &stmt.kind {
            found |= !index.is_empty() && is_of_halves(&kernel.local(*local).ty);
        }
    });
    found
}

/// Builds a register array from its elements.
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

/// Emits `array[index]`. If the index is not checked and out of bounds, the result is unspecified.
pub(super) fn element<'c>(cx: &mut Cx<'c, '_>, array: &Expr, index: &Expr) -> Lower<BasicValueEnum<'c>> {
    let ty = cx.value_type(&element_type(&array.ty)?)?;
    let address = address_of(cx, array)?;
    if is_of_halves(&array.ty) {
        let half = half(cx, address, array, index)?;
        return half.get(cx, ty);
    }
    let address = element_address(cx, address, array, index)?;
    Ok(cx.builder.build_load(ty, address, "")?)
}

/// Returns the address of an array: that of a local or of a part of it, or of a temporary alloca.
fn address_of<'c>(cx: &mut Cx<'c, '_>, array: &Expr) -> Lower<PointerValue<'c>> {
    if let ExprKind::Local(local) = array.kind {
        return alloca_of(cx, local);
    }
    if let ExprKind::Index(outer, index) = &array.kind {
        let address = address_of(cx, outer)?;
        return element_address(cx, address, outer, index);
    }
    let value = expr::value(cx, array)?;
    let address = cx.allocas.build_alloca(value.get_type(), "")?;
    cx.builder.build_store(address, value)?;
    Ok(address)
}

fn element_type(array: &Type) -> Lower<Type> {
    let element = array.elements().map(|(element, _)| element);
    element.ok_or_else(|| BackendError::Unchecked(format!("an element of type `{array}`")))
}

/// Returns the address of `array[index]`, for an array at `address`.
fn element_address<'c>(
    cx: &mut Cx<'c, '_>,
    address: PointerValue<'c>,
    array: &Expr,
    index: &Expr,
) -> Lower<PointerValue<'c>> {
    let element = cx.value_type(&element_type(&array.ty)?)?;
    let index = checked(cx, array, index)?;
    at(cx, element, address, index)
}

/// Emits the index of `array[index]`, with a bounds check in a checked kernel.
fn checked<'c>(cx: &mut Cx<'c, '_>, array: &Expr, index: &Expr) -> Lower<IntValue<'c>> {
    let Some((_, len)) = array.ty.elements() else {
        return Err(BackendError::Unchecked(format!("an element of type `{}`", array.ty)));
    };
    bounds::index(cx, index, bounds::Container { thing: array, len, noun: "elements" })
}

/// Whether two elements share a register, as in an accumulator of `f16`.
fn is_of_halves(array: &Type) -> bool {
    matches!(array, Type::Accumulator(ty) if ty.element == Scalar::F16)
}

/// A 16-bit element, of which a register holds two. It is read and written through the whole
/// register. For 16-bit accesses, LLVM would create 16-bit variables, and split the registers while
/// a multiplication writes them.
struct Half<'c> {
    register: PointerValue<'c>,
    /// The offset of its lowest bit in the register.
    shift: IntValue<'c>,
}

fn half<'c>(cx: &mut Cx<'c, '_>, address: PointerValue<'c>, array: &Expr, index: &Expr) -> Lower<Half<'c>> {
    let i = checked(cx, array, index)?;
    let ty = i.get_type();
    let number = cx.builder.build_right_shift(i, ty.const_int(1, false), false, "")?;
    let register = at(cx, cx.context.i32_type().into(), address, number)?;
    let odd = cx.builder.build_and(i, ty.const_int(1, false), "")?;
    let odd = cx.builder.build_int_cast_sign_flag(odd, cx.context.i32_type(), false, "")?;
    let shift = cx.builder.build_left_shift(odd, cx.u32_const(4), "")?;
    Ok(Half { register, shift })
}

impl<'c> Half<'c> {
    fn load(&self, cx: &Cx<'c, '_>) -> Lower<IntValue<'c>> {
        int(cx.builder.build_load(cx.context.i32_type(), self.register, "")?)
    }

    fn get(&self, cx: &Cx<'c, '_>, ty: BasicTypeEnum<'c>) -> Lower<BasicValueEnum<'c>> {
        let both = self.load(cx)?;
        let value = cx.builder.build_right_shift(both, self.shift, false, "")?;
        let value = cx.builder.build_int_truncate(value, cx.context.i16_type(), "")?;
        Ok(cx.builder.build_bit_cast(value, ty, "")?)
    }

    fn set(&self, cx: &Cx<'c, '_>, value: BasicValueEnum<'c>) -> Lower<()> {
        let value = int(cx.builder.build_bit_cast(value, cx.context.i16_type(), "")?)?;
        let value = cx.builder.build_int_z_extend(value, cx.context.i32_type(), "")?;
        let value = cx.builder.build_left_shift(value, self.shift, "")?;
        let mask = cx.builder.build_left_shift(cx.u32_const(0xffff), self.shift, "")?;
        let mask = cx.builder.build_not(mask, "")?;
        let other = cx.builder.build_and(self.load(cx)?, mask, "")?;
        let both = cx.builder.build_or(other, value, "")?;
        cx.builder.build_store(self.register, both)?;
        Ok(())
    }
}
