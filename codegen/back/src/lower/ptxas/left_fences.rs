//! Inserts fences between the instructions of a multiplication whose left operand is packed from
//! elements that are used after it.
//!
//! * Cures: C7519, "warpgroup.arrive is injected in around line .. by compiler to allow use of
//!   registers in GMMA".
//! * Seen with: ptxas 13.0.
//! * Test: `Workaround::LeftFences` in `codegen/back/tests/flights/workarounds.rs`.
//!
//! A left operand may be packed from elements that are used after the multiplication, or consist of
//! such elements if they are 16-bit floats. ptxas then moves some of its registers between two
//! instructions of the multiplication, and adds a fence there. The warning disappears if a fence
//! precedes each of these instructions. A value that is only rearranged otherwise counts as the
//! same element.
//!
//! Uses are only known once a module has been optimised.

use std::collections::HashSet;

use inkwell::context::Context;
use inkwell::values::{BasicValue as _, InstructionOpcode, InstructionValue};

use super::assembly::Assembly;
use super::line::Line;
use super::liveness::{Later, is_used_after, operand, users};
use crate::lower::Lower;

/// Inserts fences into a multiplication that needs them. `after` are the instructions after it in
/// its block.
pub(super) fn fence<'c>(
    context: &'c Context,
    call: InstructionValue<'c>,
    assembly: Assembly<'c>,
    after: &Later<'c>,
) -> Lower<()> {
    if !packs_what_lives(call, assembly, after) {
        return Ok(());
    }
    Assembly::replace(context, call, with_fences(assembly.text), assembly.constraints.to_owned())
}

/// Returns the text of a multiplication with a fence between each two of its instructions.
fn with_fences(text: &str) -> String {
    let multiplies = |line: &&str| match Line::parse(line) {
        Line::Instruction(instruction) => instruction.multiplies(),
        Line::Label(_) | Line::Other => false,
    };
    let mut left = text.lines().filter(multiplies).count();
    let mut lines = vec![];
    for line in text.lines() {
        lines.push(line);
        if multiplies(&line) {
            left -= 1;
            lines.extend((left > 0).then_some("\twgmma.fence.sync.aligned;"));
        }
    }
    lines.join("\n")
}

/// Whether a left operand has elements that are used after the multiplication.
fn packs_what_lives<'c>(call: InstructionValue<'c>, assembly: Assembly<'c>, after: &Later<'c>) -> bool {
    // A value carried by a phi was packed elsewhere. ptxas has no reason to move it.
    let is_here = |register: &InstructionValue<'c>| register.get_opcode() != InstructionOpcode::Phi;
    let registers = assembly.left().filter_map(|i| operand(call, i)?.as_instruction_value());
    let mut open: Vec<_> = registers.filter(is_here).collect();
    let mut seen = HashSet::new();
    while let Some(value) = open.pop() {
        if !seen.insert(value) {
            continue;
        }
        // The operands of a wait are values that it does not use.
        let is_use =
            |&user: &InstructionValue<'c>| user != call && !Assembly::of(user).is_some_and(Assembly::waits);
        let users: Vec<_> = users(value.get_first_use()).filter(is_use).collect();
        // A converted pair is not an element. A value computed after the multiplication is not the
        // one that it received.
        if !is_converted(value) && !after.contains(&value) && is_used_after(value, &users, call, after) {
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

/// Whether a value is a pair of elements that were converted.
fn is_converted(value: InstructionValue<'_>) -> bool {
    Assembly::of(value).is_some_and(Assembly::packs)
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
    REARRANGE.contains(&value.get_opcode()) || is_converted(value)
}

#[cfg(test)]
mod tests {
    use super::with_fences;

    #[test]
    fn fences_are_between_multiplications() {
        let text = "{\n\twgmma.fence.sync.aligned;\n\twgmma.mma_async.a;\n\tadd.s64 %right, $1, 2;\n\t\
                    wgmma.mma_async.a;\n\twgmma.commit_group.sync.aligned;\n\t}";
        let fenced = text.replace("\tadd", "\twgmma.fence.sync.aligned;\n\tadd");
        assert_eq!(with_fences(text), fenced);
    }
}
