//! Plain accesses to global memory that name their path through the caches.
//!
//! They are inline assembly that keeps its place among other accesses. In particular, a
//! non-coherent load must not become an invariant load of LLVM, which may be moved across a wait
//! for another grid (`grid_dependency_wait`).

use inkwell::values::{BasicValueEnum, PointerValue};
use tma_front::ir::{LoadPath, Scalar};

use super::atomic::{from_register, to_register};
use super::vector::{self, Vector};
use crate::backend::BackendError;
use crate::lower::nvvm::{self, Registers};
use crate::lower::{Cx, Lower};

/// An element, or a vector of them, in global memory.
#[derive(Clone, Copy)]
pub(super) struct Place<'c> {
    pub(super) address: PointerValue<'c>,
    pub(super) scalar: Scalar,
    pub(super) vector: Option<Vector>,
}

impl Place<'_> {
    fn registers(self) -> Registers {
        Registers::of(self.scalar, self.vector.map_or(1, |vector| vector.len))
    }
}

/// Loads from `place`, with a cache policy if there is one.
pub(super) fn load<'c>(
    cx: &mut Cx<'c, '_>,
    place: Place<'c>,
    path: LoadPath,
    policy: Option<BasicValueEnum<'c>>,
) -> Lower<BasicValueEnum<'c>> {
    let registers = place.registers();
    let instruction = nvvm::cached_load(registers, path, policy.is_some());
    let args: Vec<_> = [place.address.into()].into_iter().chain(policy).collect();
    let results = nvvm::emit_in_place(cx, &instruction, &[], &args)?;
    let Some(vector) = place.vector else {
        let result =
            results.first().ok_or_else(|| BackendError::Unchecked("a load without a result".to_owned()))?;
        return from_register(cx, *result, place.scalar);
    };
    let mut packed = registers.ty(cx)?.get_poison();
    for (i, result) in (0..registers.count).zip(results) {
        packed = cx.builder.build_insert_element(packed, result, cx.u32_const(i), "")?;
    }
    let stored = cx.builder.build_bit_cast(packed, vector.ty(cx)?, "")?;
    vector::elements(cx, stored, vector)
}

/// Stores `value` at `place`, with a cache policy.
pub(super) fn store<'c>(
    cx: &mut Cx<'c, '_>,
    place: Place<'c>,
    value: BasicValueEnum<'c>,
    policy: BasicValueEnum<'c>,
) -> Lower<()> {
    let registers = place.registers();
    let mut args = vec![place.address.into()];
    match place.vector {
        None => args.push(to_register(cx, value, place.scalar)?),
        Some(vector) => {
            let stored = vector::in_memory(cx, value, vector)?;
            let packed = cx.builder.build_bit_cast(stored, registers.ty(cx)?, "")?.into_vector_value();
            for i in 0..registers.count {
                args.push(cx.builder.build_extract_element(packed, cx.u32_const(i), "")?);
            }
        }
    }
    args.push(policy);
    nvvm::emit(cx, &nvvm::hinted_store(registers), &args)?;
    Ok(())
}
