//! Separates the registers of multiplications from all others, as ptxas 13.0 requires.
//!
//! A value may be an element of an accumulator and also have another use: it is another element as
//! well, or it is stored. LLVM then gives the multiplication a register that it copies from or to
//! another one, and ptxas coalesces the two. It concludes that a register of the tensor cores is
//! read while a multiplication is in flight, and first waits for all of them (its C7517). Such a
//! value is therefore copied by an instruction of its own, unless it is a sum that only
//! multiplications use, of which this is the last on its path. ptxas sees through moves, and
//! through the same instruction on the same value, but not through byte permutations with different
//! second operands, of which no byte is selected.
//!
//! A left operand may be packed from elements that are used after the multiplication, or consist of
//! such elements if they are 16-bit floats. ptxas then moves some of its registers between two
//! instructions of the multiplication, and adds a fence there (its C7519). The warning disappears
//! if a fence precedes each of these instructions. A value that is only rearranged otherwise counts
//! as the same element.
//!
//! Equal values are only known once a module has been optimised.

use std::collections::HashSet;

use inkwell::attributes::AttributeLoc;
use inkwell::basic_block::BasicBlock;
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::{
    AnyValueEnum, BasicValue, BasicValueEnum, BasicValueUse, CallSiteValue, FunctionValue, InstructionOpcode,
    InstructionValue, Operand, PhiValue,
};

use crate::backend::BackendError;
use crate::lower::Lower;

/// The calls that are searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lower) enum Marked {
    /// A multiplication.
    Multiplication(Operands),
    /// The wait for multiplications. Its operands are values that it does not use.
    Wait,
    /// The conversion of two elements to a register of a left operand.
    Conversion,
}

/// The register operands of a multiplication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lower) struct Operands {
    /// The number of operands, from the first on, that are sums to which no flight adds.
    pub(in crate::lower) sums: u32,
    /// The index of the first operand that may belong to the left operand, after all sums.
    pub(in crate::lower) first_left: u32,
    /// The number of operands that belong to it.
    pub(in crate::lower) left: u32,
}

/// The attribute that marks such a call.
const MARK: &str = "tma-mark";
/// The attribute's value for a conversion. For a multiplication, the value is the numbers of
/// [`Operands`].
const CONVERSION: &str = "conversion";
/// The attribute's value for a wait.
const WAIT: &str = "wait";
/// A line in a multiplication with its left operand in registers, at which a fence may be inserted.
const MAY_FENCE: &str = "// may fence";
/// A line before such a multiplication, if it needs the fences.
const FENCES: &str = "// fences";

/// The line between two instructions of a multiplication.
pub(super) const BETWEEN: &str = MAY_FENCE;

pub(in crate::lower) fn mark<'c>(context: &'c Context, call: CallSiteValue<'c>, as_a: Marked) {
    let value = match as_a {
        Marked::Multiplication(Operands { sums, first_left, left }) => {
            format!("{sums} {first_left} {left}")
        }
        Marked::Wait => WAIT.to_owned(),
        Marked::Conversion => CONVERSION.to_owned(),
    };
    call.add_attribute(AttributeLoc::Function, context.create_string_attribute(MARK, &value));
}

fn mark_of(instruction: InstructionValue<'_>) -> Option<Marked> {
    let call = CallSiteValue::try_from(instruction).ok()?;
    let attribute = call.get_string_attribute(AttributeLoc::Function, MARK)?;
    let value = attribute.get_string_value().to_str().ok()?;
    match value {
        CONVERSION => Some(Marked::Conversion),
        WAIT => Some(Marked::Wait),
        numbers => {
            let numbers: Vec<u32> = numbers.split(' ').filter_map(|number| number.parse().ok()).collect();
            let [sums, first_left, left] = numbers[..] else { return None };
            Some(Marked::Multiplication(Operands { sums, first_left, left }))
        }
    }
}

/// Separates the operands of multiplications, in a module that has been optimised.
pub(crate) fn isolate_registers<'c>(context: &'c Context, module: &Module<'c>) -> Lower<()> {
    let builder = context.create_builder();
    let mut copies = 0;
    for block in module.get_functions().flat_map(FunctionValue::get_basic_block_iter) {
        let mut instructions: Vec<_> = block.get_instructions().collect();
        let mut after = HashSet::new();
        while let Some(call) = instructions.pop() {
            after.insert(call);
            if let Some(Marked::Multiplication(operands)) = mark_of(call) {
                builder.position_before(&call);
                for i in 0..operands.sums {
                    if let Some(value) = operand(call, i).filter(|&value| is_shared(value, call, &after)) {
                        let copy = copy(context, &builder, value, copies)?;
                        call.set_operand(i, copy);
                        after.extend(copy.as_instruction_value());
                        copies += 1;
                    }
                }
                if packs_what_lives(call, operands, &after) {
                    comment(context, &builder, FENCES)?;
                }
            }
        }
    }
    Ok(())
}

/// Returns the lines of PTX with fences inserted where multiplications need them.
pub(crate) fn with_fences(text: &str) -> String {
    let mut is_fenced = false;
    let fenced = |line: &str| {
        let is_end = line.contains("wgmma.commit_group");
        is_fenced = line.contains(FENCES) || is_fenced && !is_end;
        let is_fence = is_fenced && line.contains(MAY_FENCE);
        if is_fence { "\twgmma.fence.sync.aligned;\n".to_owned() } else { format!("{line}\n") }
    };
    text.lines().map(fenced).collect()
}

/// Whether two multiplications in the text share some but not all registers of their sums, or share
/// them in another order. ptxas then serialises multiplications (its C7511).
pub(crate) fn share_in_part(text: &str) -> bool {
    let lists = text.lines().filter(|line| line.trim_start().starts_with("wgmma.mma_async"));
    let lists: HashSet<&str> = lists.filter_map(|line| line.split(['{', '}']).nth(1)).collect();
    let mut registers = HashSet::new();
    !lists.iter().flat_map(|list| list.split(", ")).all(|register| registers.insert(register))
}

fn operand(call: InstructionValue<'_>, i: u32) -> Option<BasicValueEnum<'_>> {
    match call.get_operand(i)? {
        Operand::Value(value) => Some(value),
        Operand::Block(_) => None,
    }
}

/// Whether a left operand has elements that are used after the multiplication.
fn packs_what_lives<'c>(
    call: InstructionValue<'c>,
    operands: Operands,
    after: &HashSet<InstructionValue<'c>>,
) -> bool {
    let range = operands.first_left..operands.first_left + operands.left;
    // A value carried by a phi was packed elsewhere. ptxas has no reason to move it.
    let is_here = |register: &InstructionValue<'c>| register.get_opcode() != InstructionOpcode::Phi;
    let registers = range.filter_map(|i| operand(call, i)?.as_instruction_value());
    let mut open: Vec<_> = registers.filter(is_here).collect();
    let mut seen = HashSet::new();
    while let Some(value) = open.pop() {
        if !seen.insert(value) {
            continue;
        }
        let is_use = |&user: &InstructionValue<'c>| user != call && mark_of(user) != Some(Marked::Wait);
        let users: Vec<_> = users(value.get_first_use()).filter(is_use).collect();
        // A converted pair is not an element. A value computed after the multiplication is not the
        // one that it received.
        let is_element = mark_of(value) != Some(Marked::Conversion);
        if is_element && !after.contains(&value) && is_used_after(value, &users, call, after) {
            return true;
        }
        // The same elements, before they were rearranged.
        if is_rearranged(value) {
            let parts = (0..value.get_num_operands()).filter_map(|i| operand(value, i));
            open.extend(parts.filter_map(|part| part.as_instruction_value()));
        }
    }
    false
}

/// Whether a value computed before a multiplication has users after it.
fn is_used_after<'c>(
    value: InstructionValue<'c>,
    users: &[InstructionValue<'c>],
    call: InstructionValue<'c>,
    after: &HashSet<InstructionValue<'c>>,
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

/// Whether an instruction only inserts elements into a register or extracts them.
fn is_rearranged(value: InstructionValue<'_>) -> bool {
    const REARRANGE: [InstructionOpcode; 9] = [
        InstructionOpcode::And,
        InstructionOpcode::BitCast,
        InstructionOpcode::ExtractElement,
        InstructionOpcode::InsertElement,
        InstructionOpcode::LShr,
        InstructionOpcode::Or,
        InstructionOpcode::Shl,
        InstructionOpcode::Trunc,
        InstructionOpcode::ZExt,
    ];
    REARRANGE.contains(&value.get_opcode()) || mark_of(value) == Some(Marked::Conversion)
}

/// Whether a value is used as several sums of a multiplication, or by an instruction other than a
/// multiplication, or by a multiplication that is reachable from this one. Constants also count:
/// LLVM puts equal ones in the same register.
fn is_shared<'c>(
    value: BasicValueEnum<'c>,
    call: InstructionValue<'c>,
    after: &HashSet<InstructionValue<'c>>,
) -> bool {
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
    let is_sum = |user| mark_of(user).is_some_and(is_multiplication);
    let users: Vec<_> = users(value.get_first_use()).collect();
    users.iter().any(|&user| !is_sum(user) || user != call && after.contains(&user))
        || users.iter().filter(|&&user| user == call).nth(1).is_some()
        || lives_on(
            &users.iter().filter_map(|user| user.get_parent()).collect(),
            value.as_instruction_value().and_then(InstructionValue::get_parent),
            call,
        )
}

fn is_multiplication(mark: Marked) -> bool {
    match mark {
        Marked::Multiplication(_) => true,
        Marked::Wait | Marked::Conversion => false,
    }
}

/// Whether one of these blocks is reachable from the end of the block of `call`, without passing
/// through `defining_block`, the block that computes the value.
fn lives_on<'c>(
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
fn users(first: Option<BasicValueUse<'_>>) -> impl Iterator<Item = InstructionValue<'_>> {
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

/// Emits a line of text that keeps its position.
fn comment<'c>(context: &'c Context, builder: &Builder<'c>, text: &str) -> Lower<()> {
    let ty = context.void_type().fn_type(&[], false);
    let assembly = context.create_inline_asm(ty, text.to_owned(), String::new(), true, false, None, false);
    builder.build_indirect_call(ty, assembly, &[], "")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::share_in_part;

    #[test]
    fn multiplications_have_the_same_registers_or_others() {
        let texts = |lists: &[&str]| -> String {
            lists.iter().map(|list| format!("\twgmma.mma_async.sync {{{list}}}, %rd1, %rd2, 1;\n")).collect()
        };
        assert!(!share_in_part(""));
        assert!(!share_in_part(&texts(&["%f1, %f2", "%f3, %f4", "%f1, %f2"])));
        assert!(share_in_part(&texts(&["%f1, %f2", "%f1, %f3"])));
        assert!(share_in_part(&texts(&["%f1, %f2", "%f2, %f1"])));
    }
}
