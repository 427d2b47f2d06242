//! The LLVM types of IR types.

use inkwell::AddressSpace;
use inkwell::types::{BasicType, BasicTypeEnum, FloatType, IntType, PointerType};
use inkwell::values::{BasicValueEnum, FloatValue, IntValue, PointerValue};
use tma_front::ir::{Scalar, Type};

use super::{Cx, Lower, narrow};
use crate::backend::BackendError;

/// Address spaces. Source: LLVM, "User Guide for NVPTX Back-end", "Address Spaces".
pub(super) const GENERIC: u16 = 0;
pub(super) const GLOBAL: u16 = 1;
pub(super) const SHARED: u16 = 3;
pub(super) const SHARED_CLUSTER: u16 = 7;

/// The representation of a scalar in an LLVM register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// `i1`.
    Bool,
    /// An integer, signed or unsigned.
    Int { signed: bool },
    /// A float type of LLVM.
    Float,
    /// A `tf32`: an `i32` with the bits of an f32 whose last 13 bits are zero. Only conversions
    /// interpret it.
    Tf32,
    /// An 8-bit float: an `i8` that only conversions interpret.
    Float8,
}

pub(super) const fn class(scalar: Scalar) -> Class {
    match scalar {
        Scalar::Bool => Class::Bool,
        Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => Class::Int { signed: true },
        Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64 | Scalar::Usize => Class::Int { signed: false },
        Scalar::F16 | Scalar::Bf16 | Scalar::F32 | Scalar::F64 => Class::Float,
        Scalar::Tf32 => Class::Tf32,
        Scalar::E4m3 | Scalar::E5m2 => Class::Float8,
    }
}

impl<'c> Cx<'c, '_> {
    /// Returns the type of `scalar` in a register.
    pub(super) fn scalar_type(&self, scalar: Scalar) -> BasicTypeEnum<'c> {
        match scalar {
            Scalar::Bool => self.context.bool_type().into(),
            Scalar::F16 => self.context.f16_type().into(),
            Scalar::Bf16 => self.context.bf16_type().into(),
            Scalar::F32 => self.context.f32_type().into(),
            Scalar::F64 => self.context.f64_type().into(),
            Scalar::I8
            | Scalar::U8
            | Scalar::I16
            | Scalar::U16
            | Scalar::I32
            | Scalar::U32
            | Scalar::I64
            | Scalar::U64
            | Scalar::Usize
            | Scalar::Tf32
            | Scalar::E4m3
            | Scalar::E5m2 => self.bits_type(scalar).into(),
        }
    }

    /// Returns the type of `scalar` in memory and as a parameter, where a `bool` takes a byte.
    pub(super) fn memory_type(&self, scalar: Scalar) -> BasicTypeEnum<'c> {
        if scalar == Scalar::Bool { self.context.i8_type().into() } else { self.scalar_type(scalar) }
    }

    /// Returns the integer type of the size of `scalar` in memory.
    pub(super) fn bits_type(&self, scalar: Scalar) -> IntType<'c> {
        match scalar.bytes() {
            1 => self.context.i8_type(),
            2 => self.context.i16_type(),
            4 => self.context.i32_type(),
            _ => self.context.i64_type(),
        }
    }

    /// Returns the type of a local of type `ty`.
    pub(super) fn value_type(&self, ty: &Type) -> Lower<BasicTypeEnum<'c>> {
        match ty {
            Type::Scalar(scalar) => Ok(self.scalar_type(*scalar)),
            Type::Array(element, len) => Ok(self.value_type(element)?.array_type(*len).into()),
            // A register holds two elements, and is split only where they are used. Otherwise LLVM
            // would keep them separate throughout, and combine them for each multiplication.
            Type::Accumulator(sum) if sum.element == Scalar::F16 => {
                Ok(self.context.i32_type().array_type(sum.elements() / 2).into())
            }
            Type::Accumulator(_) | Type::Rows(_) => {
                let (element, len) = ty.elements().unwrap_or((Type::Error, 0));
                Ok(self.value_type(&element)?.array_type(len).into())
            }
            Type::Fragment(fragment) => Ok(self.context.i32_type().array_type(fragment.registers()).into()),
            Type::WarpFragment(operand) => {
                let register = self.operand_register(operand.element);
                Ok(register.array_type(operand.registers()).into())
            }
            Type::Token | Type::CachePolicy => Ok(self.context.i64_type().into()),
            Type::Tile(_) | Type::Barrier | Type::SharedArray(..) | Type::SharedMap(_) | Type::Stages(..) => {
                Ok(self.pointer_type(SHARED).into())
            }
            Type::Remote(_) => Ok(self.pointer_type(SHARED_CLUSTER).into()),
            Type::Unit
            | Type::Never
            | Type::Dim3
            | Type::Choice(_)
            | Type::TensorMap(_)
            | Type::Im2colMap(..)
            | Type::Maps(_)
            | Type::Global(_)
            | Type::Peers(_)
            | Type::Peer(_)
            | Type::Compound(_)
            | Type::Infer(_)
            | Type::Error => Err(BackendError::Unchecked(format!("a value of type `{ty}`"))),
        }
    }

    /// Returns the type of an operand register of a warp: 64 bits for `f64`, otherwise 32.
    pub(super) fn operand_register(&self, element: Scalar) -> BasicTypeEnum<'c> {
        if element == Scalar::F64 { self.scalar_type(element) } else { self.context.i32_type().into() }
    }

    /// Returns the pointer type of an address space.
    pub(super) fn pointer_type(&self, space: u16) -> PointerType<'c> {
        self.context.ptr_type(AddressSpace::from(space))
    }

    /// Creates a constant number of bytes in shared memory.
    pub(super) fn bytes_const(&self, bytes: u64) -> Lower<IntValue<'c>> {
        Ok(self.u32_const(narrow(bytes)?))
    }

    /// Creates a `u32` or `i32` constant.
    pub(super) fn u32_const(&self, value: u32) -> IntValue<'c> {
        self.context.i32_type().const_int(u64::from(value), false)
    }
}

/// Creates an integer constant from the low bits of `value`, in two's complement.
pub(super) fn int_const(ty: IntType<'_>, value: i128) -> IntValue<'_> {
    let mask = u64::MAX >> (64 - ty.get_bit_width().clamp(1, 64));
    ty.const_int(value as u64 & mask, false)
}

/// Returns the scalar type.
pub(super) fn scalar_of(ty: &Type) -> Lower<Scalar> {
    ty.as_scalar().ok_or_else(|| BackendError::Unchecked(format!("a scalar of type `{ty}`")))
}

/// Returns the integer or `bool`.
pub(super) fn int(value: BasicValueEnum<'_>) -> Lower<IntValue<'_>> {
    let BasicValueEnum::IntValue(value) = value else {
        return Err(BackendError::Unchecked("an integer that is none".to_owned()));
    };
    Ok(value)
}

/// Returns the float.
pub(super) fn float(value: BasicValueEnum<'_>) -> Lower<FloatValue<'_>> {
    let BasicValueEnum::FloatValue(value) = value else {
        return Err(BackendError::Unchecked("a float that is none".to_owned()));
    };
    Ok(value)
}

/// Returns the pointer.
pub(super) fn pointer(value: BasicValueEnum<'_>) -> Lower<PointerValue<'_>> {
    let BasicValueEnum::PointerValue(value) = value else {
        return Err(BackendError::Unchecked("an address that is none".to_owned()));
    };
    Ok(value)
}

/// Returns the float type.
pub(super) fn float_type(ty: BasicTypeEnum<'_>) -> Lower<FloatType<'_>> {
    let BasicTypeEnum::FloatType(ty) = ty else {
        return Err(BackendError::Unchecked("a float type that is none".to_owned()));
    };
    Ok(ty)
}
