//! Copies sums that are used elsewhere, too, before a multiplication.
//!
//! * Cures: C7517, "warpgroup.wait is injected in around line .. by compiler to allow use of
//!   registers defined by GMMA".
//! * Seen with: ptxas 13.0.
//! * Test: `Workaround::SharedSums` in `codegen/back/tests/flights/workarounds.rs`.
//!
//! A value may be an element of an accumulator and also have another use: it is another element as
//! well, or it is stored. LLVM then gives the multiplication a register that it copies from or to
//! another one, and ptxas coalesces the two. It concludes that a register of the tensor cores is
//! read while a multiplication is in flight, and first waits for all of them. Such a value is
//! therefore copied by an instruction of its own, unless it is a sum that only multiplications use,
//! of which this is the last on its path. ptxas sees through moves, and through the same
//! instruction on the same value, but not through byte permutations with different second operands,
//! of which no byte is selected.
//!
//! Equal values are only known once a module has been optimised.

use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::values::{BasicValue, BasicValueEnum, InstructionValue};

use super::assembly::Assembly;
use super::liveness::{Later, lives_on, operand, users};
use crate::backend::BackendError;
use crate::lower::Lower;

/// Copies the sums of a multiplication that need it. `after` are the instructions after it in its
/// block, to which this adds the copies. `number` is the number of copies in the module.
pub(super) fn copy_shared<'c>(
    context: &'c Context,
    builder: &Builder<'c>,
    call: InstructionValue<'c>,
    assembly: Assembly<'c>,
    after: &mut Later<'c>,
    number: &mut u32,
) -> Lower<()> {
    builder.position_before(&call);
    for i in assembly.moved() {
        if let Some(value) = operand(call, i).filter(|&value| is_shared(value, call, after)) {
            let copy = copy(context, builder, value, *number)?;
            call.set_operand(i, copy);
            after.extend(copy.as_instruction_value());
            *number += 1;
        }
    }
    Ok(())
}

/// Whether a value is used as several sums of a multiplication, or by an instruction other than a
/// multiplication, or by a multiplication that is reachable from this one. Constants also count:
/// LLVM puts equal ones in the same register.
fn is_shared<'c>(value: BasicValueEnum<'c>, call: InstructionValue<'c>, after: &Later<'c>) -> bool {
    let (is_constant, is_poison) = match value {
        BasicValueEnum::FloatValue(value) => (value.is_const(), value.is_undef()),
        BasicValueEnum::IntValue(value) => (value.is_const(), value.is_undef()),
        BasicValueEnum::ArrayValue(_)
        | BasicValueEnum::PointerValue(_)
        | BasicValueEnum::StructValue(_)
        | BasicValueEnum::VectorValue(_)
        | BasicValueEnum::ScalableVectorValue(_) => return false,
    };
    if is_constant {
        return !is_poison;
    }
    let is_sum = |user| Assembly::of(user).is_some_and(Assembly::multiplies);
    let users: Vec<_> = users(value.get_first_use()).collect();
    users.iter().any(|&user| !is_sum(user) || user != call && after.contains(&user))
        || users.iter().filter(|&&user| user == call).nth(1).is_some()
        || lives_on(
            &users.iter().filter_map(|user| user.get_parent()).collect(),
            value.as_instruction_value().and_then(InstructionValue::get_parent),
            call,
        )
}

/// Emits a copy of a 32-bit value in a register of its own. No two copies have the same `number`.
fn copy<'c>(
    context: &'c Context,
    builder: &Builder<'c>,
    value: BasicValueEnum<'c>,
    number: u32,
) -> Lower<BasicValueEnum<'c>> {
    let (ty, letter) = if value.is_float_value() {
        (context.f32_type().fn_type(&[context.f32_type().into()], false), "f")
    } else {
        (context.i32_type().fn_type(&[context.i32_type().into()], false), "r")
    };
    let text = format!("prmt.b32 $0, $1, {number}, 0x3210;");
    let constraints = format!("={letter},{letter}");
    let assembly = context.create_inline_asm(ty, text, constraints, false, false, None, false);
    let call = builder.build_indirect_call(ty, assembly, &[value.into()], "")?;
    let copy = call.try_as_basic_value().basic();
    copy.ok_or_else(|| BackendError::Unchecked("a permutation without a result".to_owned()))
}
