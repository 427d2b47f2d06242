//! Uses of values in an LLVM module: which instructions use a value, and which of them a call
//! reaches.

use std::collections::HashSet;

use inkwell::basic_block::BasicBlock;
use inkwell::values::{
    AnyValueEnum, BasicValue as _, BasicValueEnum, BasicValueUse, InstructionValue, Operand, PhiValue,
};

/// The instructions after a call in its block.
pub(super) type Later<'c> = HashSet<InstructionValue<'c>>;

/// Returns the operand of an instruction with this index, if it is a value.
pub(super) fn operand(call: InstructionValue<'_>, i: u32) -> Option<BasicValueEnum<'_>> {
    match call.get_operand(i)? {
        Operand::Value(value) => Some(value),
        Operand::Block(_) => None,
    }
}

/// Whether a value computed before a multiplication has users after it.
pub(super) fn is_used_after<'c>(
    value: InstructionValue<'c>,
    users: &[InstructionValue<'c>],
    call: InstructionValue<'c>,
    after: &Later<'c>,
) -> bool {
    let mut blocks = HashSet::new();
    for &user in users {
        // A phi uses the value at the end of the incoming block.
        if let Ok(phi) = PhiValue::try_from(user) {
            let incoming = phi.get_incomings().filter(|(from, _)| from.as_instruction_value() == Some(value));
            let leaves: Vec<_> = incoming.map(|(_, block)| block).collect();
            if leaves.iter().any(|&block| Some(block) == call.get_parent()) {
                return true;
            }
            blocks.extend(leaves);
        } else if after.contains(&user) {
            return true;
        } else {
            blocks.extend(user.get_parent());
        }
    }
    lives_on(&blocks, value.get_parent(), call)
}

/// Whether one of these blocks is reachable from the end of the block of `call`, without passing
/// through `defining_block`, the block that computes the value.
pub(super) fn lives_on<'c>(
    users: &HashSet<BasicBlock<'c>>,
    defining_block: Option<BasicBlock<'c>>,
    call: InstructionValue<'c>,
) -> bool {
    let mut open: Vec<_> = call.get_parent().into_iter().collect();
    let mut seen: HashSet<_> = defining_block.into_iter().collect();
    while let Some(from) = open.pop() {
        for to in successors(from).filter(|&to| seen.insert(to)) {
            if users.contains(&to) {
                return true;
            }
            open.push(to);
        }
    }
    false
}

/// Returns the successors of a block.
fn successors(block: BasicBlock<'_>) -> impl Iterator<Item = BasicBlock<'_>> {
    let last = block.get_terminator();
    let operands = last.into_iter().flat_map(InstructionValue::get_operands).flatten();
    operands.filter_map(Operand::block)
}

/// Returns the users of a value, of which this is the first use.
pub(super) fn users(first: Option<BasicValueUse<'_>>) -> impl Iterator<Item = InstructionValue<'_>> {
    std::iter::successors(first, |once| once.get_next_use()).filter_map(user)
}

fn user(once: BasicValueUse<'_>) -> Option<InstructionValue<'_>> {
    match once.get_user() {
        AnyValueEnum::ArrayValue(value) => value.as_instruction(),
        AnyValueEnum::IntValue(value) => value.as_instruction(),
        AnyValueEnum::FloatValue(value) => value.as_instruction(),
        AnyValueEnum::PhiValue(value) => Some(value.as_instruction()),
        AnyValueEnum::PointerValue(value) => value.as_instruction(),
        AnyValueEnum::StructValue(value) => value.as_instruction(),
        AnyValueEnum::VectorValue(value) => value.as_instruction(),
        AnyValueEnum::ScalableVectorValue(value) => value.as_instruction(),
        AnyValueEnum::InstructionValue(value) => Some(value),
        AnyValueEnum::FunctionValue(_) | AnyValueEnum::MetadataValue(_) => None,
    }
}
