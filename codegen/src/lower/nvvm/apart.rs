//! What keeps the registers of multiplications apart from all others, as ptxas 13.0 wants it.
//!
//! A value may be an element of an accumulator and something else as well: another element, or what
//! is stored. LLVM then gives the multiplication a register that it copies from or to another, and
//! ptxas takes the two for one: it finds that a register of the tensor cores is read while a
//! multiplication is under way, and waits for all of them first (its C7517). So such a value is
//! copied by an instruction of its own, unless it is the sum of multiplications alone, of which this
//! is the last on its path. ptxas sees through moves, and through the same instruction on the same
//! value, but not through permutations with different second operands, of which no byte is taken.
//!
//! A left operand may be packed from elements that are used after the multiplication, too, or be
//! such elements: halves are. Then ptxas moves some of its registers between two instructions of
//! the multiplication, and adds a fence there (its C7519). It says nothing if there is one before
//! each of them. What is only put together otherwise is still the same element.
//!
//! Which values are the same is known only when a module is optimised.

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

/// Calls that are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lower) enum Marked {
    /// A multiplication.
    Multiplication(Operands),
    /// The wait for multiplications, which names what they read although it uses none of it.
    Wait,
    /// The conversion of a pair of elements to a register of a left operand.
    Conversion,
}

/// Which operands a multiplication has in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lower) struct Operands {
    /// So many, from the first on, are sums that no flight is adding to.
    pub(in crate::lower) sums: u32,
    /// The first that may be of the left operand, behind all sums.
    pub(in crate::lower) first_left: u32,
    /// How many are.
    pub(in crate::lower) left: u32,
}

/// The attribute of such a call.
const MARK: &str = "tma-mark";
/// What it is of a conversion; of a multiplication it is the numbers of [`Operands`].
const CONVERSION: &str = "conversion";
/// What it is of a wait.
const WAIT: &str = "wait";
/// A line of a multiplication whose left operand is in registers, where a fence may be.
const MAY_FENCE: &str = "// may fence";
/// A line before such a multiplication that needs them.
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

/// Keeps the operands of multiplications apart, in a module that is optimised.
pub(crate) fn keep_apart<'c>(context: &'c Context, module: &Module<'c>) -> Lower<()> {
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

/// The lines of PTX with fences where multiplications need them.
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

/// Whether two multiplications of a text share some of their sums' registers and not all, or in
/// another order. ptxas serialises multiplications then (its C7511).
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
    // What is carried here was packed elsewhere: ptxas has no reason to move it.
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
        // A converted pair is no element; and what is computed after the multiplication is not the
        // value that it was given.
        let is_element = mark_of(value) != Some(Marked::Conversion);
        if is_element && !after.contains(&value) && is_used_after(value, &users, call, after) {
            return true;
        }
        // The same elements, as they were before.
        if is_rearranged(value) {
            let parts = (0..value.get_num_operands()).filter_map(|i| operand(value, i));
            open.extend(parts.filter_map(|part| part.as_instruction_value()));
        }
    }
    false
}

/// Whether a value, computed before a multiplication, has users after it.
fn is_used_after<'c>(
    value: InstructionValue<'c>,
    users: &[InstructionValue<'c>],
    call: InstructionValue<'c>,
    after: &HashSet<InstructionValue<'c>>,
) -> bool {
    let mut blocks = HashSet::new();
    for &user in users {
        // A phi uses it where control leaves for there.
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

/// Whether an instruction puts elements into a register or takes them out, and computes nothing.
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

/// Whether a value is several sums of a multiplication, is also used by something else than
/// multiplications, or by one that control reaches after this. LLVM makes one register of equal
/// constants.
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

/// Whether control may reach one of these blocks from the end of the block of `call`, before a value
/// is computed again in its own block, its `home`.
fn lives_on<'c>(
    users: &HashSet<BasicBlock<'c>>,
    home: Option<BasicBlock<'c>>,
    call: InstructionValue<'c>,
) -> bool {
    let mut open: Vec<_> = call.get_parent().into_iter().collect();
    let mut seen: HashSet<_> = home.into_iter().collect();
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

/// The blocks that a block may be followed by.
fn successors(block: BasicBlock<'_>) -> impl Iterator<Item = BasicBlock<'_>> {
    let last = block.get_terminator();
    let operands = last.into_iter().flat_map(InstructionValue::get_operands).flatten();
    operands.filter_map(Operand::block)
}

/// What uses a value, of which this is the first use.
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

/// A value of 32 bits in a register of its own. No two have the same `number`.
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

/// A line of text that stays where it is.
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
