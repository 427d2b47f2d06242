//! Vectors: several consecutive elements of memory that are read or written with one instruction.
//! In registers they are arrays.

use inkwell::IntPredicate;
use inkwell::types::{BasicTypeEnum, VectorType};
use inkwell::values::{BasicValue as _, BasicValueEnum, IntValue, PointerValue, VectorValue};
use tma_front::ir::{Scalar, Span, Type};

use crate::backend::BackendError;
use crate::lower::types::{float_type, scalar_of};
use crate::lower::{Cx, Lower, locals, memory, print};

/// The vector in memory that corresponds to an array in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lower) struct Vector {
    pub(in crate::lower) scalar: Scalar,
    /// The number of elements.
    pub(in crate::lower) len: u32,
}

impl Vector {
    /// Returns the vector of this type, or `None` for a scalar.
    pub(in crate::lower) fn of(ty: &Type) -> Lower<Option<Self>> {
        let Type::Array(element, len) = ty else { return Ok(None) };
        Ok(Some(Self { scalar: scalar_of(element)?, len: *len }))
    }

    /// Returns its size, and thus its alignment, in bytes.
    fn bytes(self) -> u32 {
        self.scalar.bytes() * self.len
    }

    fn array(self) -> Type {
        Type::Array(Box::new(self.scalar.into()), self.len)
    }

    /// Returns its type in memory.
    pub(super) fn ty<'c>(self, cx: &Cx<'c, '_>) -> Lower<VectorType<'c>> {
        vector_type(cx.memory_type(self.scalar), self.len)
    }
}

/// Returns the type of `len` integers or floats.
pub(in crate::lower) fn vector_type(element: BasicTypeEnum<'_>, len: u32) -> Lower<VectorType<'_>> {
    if let BasicTypeEnum::IntType(ty) = element {
        return Ok(ty.vec_type(len));
    }
    Ok(float_type(element)?.vec_type(len))
}

/// Loads the vector at `address` as an array.
pub(in crate::lower) fn load<'c>(
    cx: &Cx<'c, '_>,
    address: PointerValue<'c>,
    vector: Vector,
) -> Lower<BasicValueEnum<'c>> {
    let stored = cx.builder.build_load(vector.ty(cx)?, address, "")?;
    align(stored, vector)?;
    elements(cx, stored, vector)
}

/// Converts a vector from its type in memory to an array.
pub(super) fn elements<'c>(
    cx: &Cx<'c, '_>,
    stored: BasicValueEnum<'c>,
    vector: Vector,
) -> Lower<BasicValueEnum<'c>> {
    let BasicValueEnum::VectorValue(stored) = stored else {
        return Err(BackendError::Unchecked("a vector that is none".to_owned()));
    };
    let elements: Lower<Vec<_>> = (0..vector.len)
        .map(|i| {
            let element = cx.builder.build_extract_element(stored, cx.u32_const(i), "")?;
            memory::from_memory(cx, element, vector.scalar)
        })
        .collect();
    locals::array(cx, &vector.array(), elements?)
}

/// Stores an array at `address` as a vector.
pub(in crate::lower) fn store<'c>(
    cx: &Cx<'c, '_>,
    address: PointerValue<'c>,
    value: BasicValueEnum<'c>,
    vector: Vector,
) -> Lower<()> {
    let store = cx.builder.build_store(address, in_memory(cx, value, vector)?)?;
    locals::align(store, vector.bytes())
}

/// Converts an array to the type of the vector in memory.
pub(super) fn in_memory<'c>(
    cx: &Cx<'c, '_>,
    value: BasicValueEnum<'c>,
    vector: Vector,
) -> Lower<VectorValue<'c>> {
    let BasicValueEnum::ArrayValue(array) = value else {
        return Err(BackendError::Unchecked("an array that is none".to_owned()));
    };
    let mut stored = vector.ty(cx)?.get_poison();
    for i in 0..vector.len {
        let element = cx.builder.build_extract_value(array, i, "")?;
        let element = memory::to_memory(cx, element, vector.scalar)?;
        stored = cx.builder.build_insert_element(stored, element, cx.u32_const(i), "")?;
    }
    Ok(stored)
}

fn align(loaded: BasicValueEnum<'_>, vector: Vector) -> Lower<()> {
    let load = loaded
        .as_instruction_value()
        .ok_or_else(|| BackendError::Unchecked("a load that is no instruction".to_owned()))?;
    locals::align(load, vector.bytes())
}

/// Checks that `index` is a multiple of the vector's length, in a checked kernel.
pub(in crate::lower) fn check_multiple<'c>(
    cx: &mut Cx<'c, '_>,
    index: IntValue<'c>,
    vector: Vector,
    what: &str,
    span: Span,
) -> Lower<()> {
    if !cx.checked || index.is_const() {
        return Ok(());
    }
    let mask = index.get_type().const_int(u64::from(vector.len) - 1, false);
    let rest = cx.builder.build_and(index, mask, "")?;
    let whole = cx.builder.build_int_compare(IntPredicate::EQ, rest, rest.get_type().const_zero(), "")?;
    let message = format!("the index of a vector of {what} is not a multiple of its length, {}", vector.len);
    print::assert(cx, whole, &message, span)
}
