//! Strong accesses, which have an order and a scope.

use inkwell::values::BasicValueEnum;
use tma_front::ir::{Atomic, AtomicAccess, AtomicMemory, Expr, Scalar, Type};

use super::vector::Vector;
use crate::backend::BackendError;
use crate::lower::nvvm::{self, Memory, Strong};
use crate::lower::types::int;
use crate::lower::{Cx, Lower, expr, locals, memory};

/// Lowers a strong access to an element of global or shared memory.
pub(in crate::lower) fn access(cx: &mut Cx<'_, '_>, atomic: &Atomic) -> Lower<()> {
    let Atomic { memory: accessed, index, access, order, scope } = atomic;
    let values: &[&Expr] = match access {
        AtomicAccess::Load { dest: _ } => &[],
        AtomicAccess::Store { value }
        | AtomicAccess::Update { value, .. }
        | AtomicAccess::AddVector { value } => &[value],
        AtomicAccess::CompareExchange { current, new, dest: _ } => &[current, new],
    };
    let vector = if let AtomicAccess::AddVector { value } = access { Vector::of(&value.ty)? } else { None };
    let values: Vec<_> = values.iter().map(|value| expr::value(cx, value)).collect::<Lower<_>>()?;
    let (memory, (address, scalar)) = match accessed {
        AtomicMemory::Global(global) => {
            (Memory::Global, memory::global_addresses(cx, global, index, vector)?)
        }
        AtomicMemory::Shared(array) => {
            let memory = if let Type::Remote(_) = array.ty { Memory::Cluster } else { Memory::Shared };
            (memory, memory::shared_address(cx, array, index, vector)?)
        }
    };
    let strong = Strong { order: *order, scope: *scope, memory };
    let no_such = || BackendError::Unchecked(format!("such an access to `{scalar}`"));
    let instruction = match access {
        AtomicAccess::Load { dest: _ } => nvvm::strong_load(strong, scalar),
        AtomicAccess::Store { value: _ } => nvvm::strong_store(strong, scalar),
        AtomicAccess::Update { op, .. } => nvvm::atomic(strong, *op, scalar).ok_or_else(no_such)?,
        AtomicAccess::CompareExchange { .. } => nvvm::compare_and_swap(strong, scalar).ok_or_else(no_such)?,
        AtomicAccess::AddVector { value: _ } => {
            let Vector { len, .. } = vector.ok_or_else(no_such)?;
            nvvm::add_vector(strong, scalar, len).ok_or_else(no_such)?
        }
    };
    let mut args: Vec<BasicValueEnum<'_>> = vec![address.into()];
    for value in values {
        match (vector, value) {
            (Some(vector), BasicValueEnum::ArrayValue(array)) => {
                for i in 0..vector.len {
                    let element = cx.builder.build_extract_value(array, i, "")?;
                    args.push(to_register(cx, element, scalar)?);
                }
            }
            (_, value) => args.push(to_register(cx, value, scalar)?),
        }
    }
    let result = nvvm::emit(cx, &instruction, &args)?;
    match (atomic.dest(), result) {
        (Some(dest), Some(result)) => {
            let value = from_register(cx, result, scalar)?;
            locals::store(cx, dest, value)
        }
        (None, None) => Ok(()),
        (Some(_), None) | (None, Some(_)) => {
            Err(BackendError::Unchecked("an access whose result is not where it is wanted".to_owned()))
        }
    }
}

/// Converts a scalar to a register of inline assembly: there are no 8-bit registers, and 16-bit
/// floats are passed as bits.
pub(super) fn to_register<'c>(
    cx: &Cx<'c, '_>,
    value: BasicValueEnum<'c>,
    scalar: Scalar,
) -> Lower<BasicValueEnum<'c>> {
    let half = cx.context.i16_type();
    Ok(match scalar.bytes() {
        1 => {
            let byte = memory::to_memory(cx, value, scalar)?;
            cx.builder.build_int_z_extend(int(byte)?, half, "")?.into()
        }
        2 => cx.builder.build_bit_cast(value, half, "")?,
        _ => value,
    })
}

/// Converts such a register back to the scalar.
pub(super) fn from_register<'c>(
    cx: &Cx<'c, '_>,
    register: BasicValueEnum<'c>,
    scalar: Scalar,
) -> Lower<BasicValueEnum<'c>> {
    match scalar.bytes() {
        1 => {
            let byte = cx.builder.build_int_truncate(int(register)?, cx.context.i8_type(), "")?;
            memory::from_memory(cx, byte.into(), scalar)
        }
        2 => Ok(cx.builder.build_bit_cast(register, cx.scalar_type(scalar), "")?),
        _ => Ok(register),
    }
}
