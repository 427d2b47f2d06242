//! The PTX instructions that LLVM IR cannot express. All inline assembly strings are in this
//! module, except those of [workarounds](super::ptxas). This file emits them; each submodule has
//! the instructions of one kind.
//!
//! An entry states its operands, its effect for the optimiser, and the PTX version that introduced
//! it. The PTX version of a kernel is the greatest one among its instructions. All sources are
//! chapters of the PTX ISA. Versions are those in the chapters' notes, as major × 10 + minor.

use std::borrow::Cow;

use inkwell::AddressSpace;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::types::{BasicMetadataTypeEnum, BasicType, BasicTypeEnum};
use inkwell::values::{BasicMetadataValueEnum, BasicValueEnum};

use super::types::{GENERIC, GLOBAL, SHARED, SHARED_CLUSTER};
use super::{Cx, Lower};
use crate::backend::BackendError;

mod arithmetic;
mod atomics;
mod bulk;
mod cached;
mod descriptor;
mod mbarrier;
mod mma;
mod mma_sync;
mod ptx;
mod span;
mod stop;
mod sync;
mod text;
mod tma;

pub(in crate::lower) use arithmetic::*;
pub(in crate::lower) use atomics::*;
pub(in crate::lower) use bulk::*;
pub(in crate::lower) use cached::*;
pub(in crate::lower) use descriptor::*;
pub(in crate::lower) use mbarrier::*;
pub(in crate::lower) use mma::*;
pub(in crate::lower) use mma_sync::*;
pub(in crate::lower) use ptx::*;
pub(in crate::lower) use span::*;
pub(in crate::lower) use stop::*;
pub(in crate::lower) use sync::*;
pub(in crate::lower) use tma::*;

/// The type of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lower) enum Operand {
    /// A predicate.
    Pred,
    /// 16 bits.
    B16,
    /// 32 bits.
    B32,
    /// 64 bits.
    B64,
    /// An f32.
    F32,
    /// An f64.
    F64,
    /// A 32-bit immediate.
    Immediate,
    /// A 32-bit address in shared memory.
    Shared,
    /// A 32-bit address in the shared memory of a block of the cluster.
    Remote,
    /// An address in global memory.
    Global,
    /// A generic address.
    Generic,
}

use Operand::{B16, B32, B64, F32, F64, Generic, Global, Immediate, Pred, Remote, Shared};

/// The effect of an instruction, for the optimiser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lower) enum Effect {
    /// None but the result: the instruction may be moved, merged and removed.
    Pure,
    /// None, but the order relative to accesses and to other marks is kept.
    Mark,
    /// Reads or writes memory: the order relative to other accesses is kept.
    Memory,
    /// Accesses memory, and may synchronise threads: must neither become control-dependent on more
    /// or fewer conditions, nor be duplicated.
    Convergent,
}

/// An instruction. `$n` in its text refers to the result, if there is one, and then to the
/// operands.
#[derive(Debug)]
pub(in crate::lower) struct Instruction {
    text: Cow<'static, str>,
    result: Option<Operand>,
    operands: Cow<'static, [Operand]>,
    effect: Effect,
    ptx: u32,
}

const fn pure(text: &'static str, result: Operand, operands: &'static [Operand], ptx: u32) -> Instruction {
    Instruction {
        text: Cow::Borrowed(text),
        result: Some(result),
        operands: Cow::Borrowed(operands),
        effect: Effect::Pure,
        ptx,
    }
}

const fn memory(text: &'static str, operands: &'static [Operand], ptx: u32) -> Instruction {
    Instruction {
        text: Cow::Borrowed(text),
        result: None,
        operands: Cow::Borrowed(operands),
        effect: Effect::Memory,
        ptx,
    }
}

const fn convergent(text: &'static str, operands: &'static [Operand], ptx: u32) -> Instruction {
    Instruction {
        text: Cow::Borrowed(text),
        result: None,
        operands: Cow::Borrowed(operands),
        effect: Effect::Convergent,
        ptx,
    }
}

impl Operand {
    /// Returns LLVM's constraint letter. Source: LLVM, "LLVM Language Reference Manual", "Inline
    /// Assembler Expressions", "Supported Constraint Code List", NVPTX; `b` is in
    /// `NVPTXISelLowering.cpp`.
    const fn constraint(self) -> &'static str {
        match self {
            Pred => "b",
            B16 => "h",
            B32 | Shared | Remote => "r",
            F32 => "f",
            F64 => "d",
            Immediate => "n",
            B64 | Global | Generic => "l",
        }
    }

    fn ty<'c>(self, cx: &Cx<'c, '_>) -> BasicTypeEnum<'c> {
        let pointer = |space| cx.context.ptr_type(AddressSpace::from(space)).into();
        match self {
            Pred => cx.context.bool_type().into(),
            B16 => cx.context.i16_type().into(),
            B32 | Immediate => cx.context.i32_type().into(),
            B64 => cx.context.i64_type().into(),
            F32 => cx.context.f32_type().into(),
            F64 => cx.context.f64_type().into(),
            Global => pointer(GLOBAL),
            Shared => pointer(SHARED),
            Remote => pointer(SHARED_CLUSTER),
            Generic => pointer(GENERIC),
        }
    }
}

/// Returns the constraint string of `instruction` for LLVM.
fn constraints(instruction: &Instruction) -> String {
    let result = instruction.result.map(|operand| format!("={}", operand.constraint()));
    let operands = instruction.operands.iter().map(|operand| operand.constraint().to_owned());
    let clobbers = match instruction.effect {
        Effect::Pure | Effect::Mark => false,
        Effect::Memory | Effect::Convergent => true,
    };
    let clobber = clobbers.then(|| "~{memory}".to_owned());
    result.into_iter().chain(operands).chain(clobber).collect::<Vec<_>>().join(",")
}

/// The empty set of accesses.
const NO_MEMORY: u64 = 0;

/// Reads and writes of memory that no other instruction of the module accesses, but assembly may.
/// Source: LLVM, `ModRef.h`: two bits for each kind of memory, of which this is the second.
const INACCESSIBLE_MEMORY: u64 = 3 << 2;

/// Emits `instruction`.
pub(in crate::lower) fn emit<'c>(
    cx: &mut Cx<'c, '_>,
    instruction: &Instruction,
    args: &[BasicValueEnum<'c>],
) -> Lower<Option<BasicValueEnum<'c>>> {
    let types: Vec<_> = instruction.operands.iter().map(|operand| operand.ty(cx)).collect();
    if !types.iter().copied().eq(args.iter().map(BasicValueEnum::get_type)) {
        return Err(BackendError::Unchecked(format!("operands that `{}` does not take", instruction.text)));
    }
    cx.ptx_version = cx.ptx_version.max(instruction.ptx);

    let types: Vec<BasicMetadataTypeEnum<'c>> = types.into_iter().map(Into::into).collect();
    let ty = match instruction.result {
        Some(result) => result.ty(cx).fn_type(&types, false),
        None => cx.context.void_type().fn_type(&types, false),
    };
    let assembly = cx.context.create_inline_asm(
        ty,
        instruction.text.clone().into_owned(),
        constraints(instruction),
        instruction.effect != Effect::Pure,
        false,
        None,
        false,
    );
    let args: Vec<BasicMetadataValueEnum<'c>> = args.iter().map(|&arg| arg.into()).collect();
    let call = cx.builder.build_indirect_call(ty, assembly, &args, "")?;
    // The value of the `memory` attribute is a set of accesses.
    let attributes: &[(&str, u64)] = match instruction.effect {
        Effect::Pure => &[("nounwind", 0), ("willreturn", 0), ("memory", NO_MEMORY)],
        Effect::Mark => &[("nounwind", 0), ("willreturn", 0), ("memory", INACCESSIBLE_MEMORY)],
        Effect::Memory => &[("nounwind", 0)],
        Effect::Convergent => &[("nounwind", 0), ("convergent", 0)],
    };
    for &(name, value) in attributes {
        let attribute = cx.context.create_enum_attribute(Attribute::get_named_enum_kind_id(name), value);
        call.add_attribute(AttributeLoc::Function, attribute);
    }
    Ok(call.try_as_basic_value().basic())
}

/// Emits an `instruction` that has a result.
pub(in crate::lower) fn emit_value<'c>(
    cx: &mut Cx<'c, '_>,
    instruction: &Instruction,
    args: &[BasicValueEnum<'c>],
) -> Lower<BasicValueEnum<'c>> {
    emit(cx, instruction, args)?
        .ok_or_else(|| BackendError::Unchecked(format!("a result of `{}`, which has none", instruction.text)))
}
