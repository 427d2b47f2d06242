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
//! A left operand may be packed from elements that are used after the multiplication, too. Then
//! ptxas moves some of its registers between two instructions of the multiplication, and adds a
//! fence there (its C7519). It says nothing if there is one before each of them.
//!
//! Which values are the same is known only when a module is optimised.

use std::collections::HashSet;

use inkwell::attributes::AttributeLoc;
use inkwell::basic_block::BasicBlock;
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::{
    AnyValueEnum, BasicValue, BasicValueEnum, BasicValueUse, CallSiteValue, FunctionValue, InstructionValue,
    Operand,
};

use crate::backend::BackendError;
use crate::lower::Lower;

/// Calls that are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lower) enum Marked {
    /// A multiplication. So many of its operands, from the first on, are sums that no flight is
    /// adding to.
    Multiplication(u32),
    /// The conversion of a pair of elements to a register of a left operand.
    Conversion,
}

/// The attribute of such a call.
const MARK: &str = "tma-mark";
/// What it is of a conversion; of a multiplication it is a number.
const CONVERSION: &str = "conversion";
/// A line of a multiplication whose left operand is in registers, where a fence may be.
const MAY_FENCE: &str = "// may fence";
/// A line before such a multiplication that needs them.
const FENCES: &str = "// fences";

/// The line between two instructions of a multiplication.
pub(super) const BETWEEN: &str = MAY_FENCE;

pub(in crate::lower) fn mark<'c>(context: &'c Context, call: CallSiteValue<'c>, as_a: Marked) {
    let value = match as_a {
        Marked::Multiplication(sums) => sums.to_string(),
        Marked::Conversion => CONVERSION.to_owned(),
    };
    call.add_attribute(AttributeLoc::Function, context.create_string_attribute(MARK, &value));
}

fn mark_of(instruction: InstructionValue<'_>) -> Option<Marked> {
    let call = CallSiteValue::try_from(instruction).ok()?;
    let attribute = call.get_string_attribute(AttributeLoc::Function, MARK)?;
    match attribute.get_string_value().to_str().ok()? {
        CONVERSION => Some(Marked::Conversion),
        sums => sums.parse().ok().map(Marked::Multiplication),
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
            if let Some(Marked::Multiplication(sums)) = mark_of(call) {
                builder.position_before(&call);
                for i in 0..sums {
                    if let Some(value) = operand(call, i).filter(|&value| is_shared(value, call, &after)) {
                        let copy = copy(context, &builder, value, copies)?;
                        call.set_operand(i, copy);
                        after.extend(copy.as_instruction_value());
                        copies += 1;
                    }
                }
                if packs_what_lives(call, block, &after) {
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

/// Whether a left operand is packed from what is used in another block, or in this one by the
/// multiplication or `after` it.
fn packs_what_lives<'c>(
    call: InstructionValue<'c>,
    block: BasicBlock<'c>,
    after: &HashSet<InstructionValue<'c>>,
) -> bool {
    let conversions = (0..call.get_num_operands())
        .filter_map(|i| operand(call, i)?.as_instruction_value())
        .filter(|&operand| mark_of(operand) == Some(Marked::Conversion));
    let mut elements = conversions.flat_map(|conversion| (0..2).filter_map(move |i| operand(conversion, i)));
    elements.any(|element| {
        uses(element).filter_map(user).any(|user| user.get_parent() != Some(block) || after.contains(&user))
    })
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
    let users = || uses(value).filter_map(user);
    users().any(|user| !is_sum(user) || user != call && after.contains(&user))
        || users().filter(|&user| user == call).nth(1).is_some()
        || lives_on(value, call)
}

fn is_multiplication(mark: Marked) -> bool {
    match mark {
        Marked::Multiplication(_) => true,
        Marked::Conversion => false,
    }
}

/// Whether a value that multiplications alone use is used in a block that control may reach from the
/// end of the block of `call`, before it is computed again.
fn lives_on<'c>(value: BasicValueEnum<'c>, call: InstructionValue<'c>) -> bool {
    let users: HashSet<_> = uses(value).filter_map(user).filter_map(InstructionValue::get_parent).collect();
    let home = value.as_instruction_value().and_then(InstructionValue::get_parent);
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

fn uses(value: BasicValueEnum<'_>) -> impl Iterator<Item = BasicValueUse<'_>> {
    std::iter::successors(value.get_first_use(), |once| once.get_next_use())
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
