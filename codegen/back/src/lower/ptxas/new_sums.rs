//! Moves new sums to other registers after their wait, if LLVM lets multiplications share registers
//! in part.
//!
//! * Cures: C7511, "Potential Performance Loss: wgmma.mma_async instructions are serialized due to
//!   insufficient register resources for the wgmma pipeline".
//! * Seen with: ptxas 13.0.
//! * Test: `Workaround::NewSums` in `codegen/back/tests/flights/workarounds.rs`.
//!
//! ptxas expects that all multiplications that name a register work on the same set of registers in
//! the same order. The elements of a sum that a multiplication has begun stay in its registers
//! after the wait. LLVM may then give some of these registers to another multiplication.
//!
//! Moving the elements would prevent it, but may cost instructions: if the same accumulator is
//! begun at several points, ptxas does not always find registers that suit all of them. They are
//! therefore only moved if it is necessary. Since LLVM assigns registers when it generates code,
//! this is not known before. Code is then generated again, from the same module.

use std::collections::HashSet;

use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::{FunctionValue, InstructionValue};

use super::assembly::Assembly;
use super::line::{Line, elements};
use crate::lower::Lower;

/// The waits for new sums in a module, by their positions among all of its waits.
#[derive(Clone, Debug, Default)]
pub(crate) struct NewSums(Vec<usize>);

impl NewSums {
    /// Returns the positions of these waits in a module that has not been optimised.
    pub(in crate::lower) fn in_module<'c>(
        module: &Module<'c>,
        new_sums: &HashSet<InstructionValue<'c>>,
    ) -> Self {
        let positions = (0..).zip(waits(module)).filter(|(_, (wait, _))| new_sums.contains(wait));
        Self(positions.map(|(position, _)| position).collect())
    }

    /// Lets the waits for new sums move the elements to other registers.
    pub(crate) fn move_in<'c>(&self, context: &'c Context, module: &Module<'c>) -> Lower<()> {
        let all: Vec<_> = waits(module).collect();
        for &(wait, assembly) in self.0.iter().filter_map(|&position| all.get(position)) {
            let (text, constraints) = moved(assembly);
            Assembly::replace(context, wait, text, constraints)?;
        }
        Ok(())
    }
}

/// Returns the waits of a module, in order.
fn waits<'c>(module: &Module<'c>) -> impl Iterator<Item = (InstructionValue<'c>, Assembly<'c>)> {
    let blocks = module.get_functions().flat_map(FunctionValue::get_basic_block_iter);
    let instructions = blocks.flat_map(inkwell::basic_block::BasicBlock::get_instructions);
    instructions.filter_map(|call| Some((call, Assembly::of(call).filter(|assembly| assembly.waits())?)))
}

/// Returns the text and the constraints of a wait that leaves its results in other registers than
/// its arguments.
fn moved(wait: Assembly<'_>) -> (String, String) {
    let count = wait.results() as usize;
    let moves = (0..count).map(|i| format!("mov.b32 ${i}, ${};", count + i));
    let lines: Vec<_> = std::iter::once(wait.text.to_owned()).chain(moves).collect();
    let constraints = wait.constraints.split(',').enumerate().map(|(i, constraint)| {
        let letter = constraint.trim_start_matches('=');
        match i / count.max(1) {
            0 => format!("=&{letter}"),
            // The letter of the result that the argument was tied to.
            1 => wait.constraints.split(',').nth(i - count).unwrap_or_default().replace('=', ""),
            _ => constraint.to_owned(),
        }
    });
    let constraints: Vec<_> = constraints.collect();
    (lines.join("\n\t"), constraints.join(","))
}

/// Whether two multiplications in PTX share some but not all registers of their sums, or share them
/// in another order.
pub(crate) fn share_in_part(ptx: &str) -> bool {
    let sums = ptx.lines().filter_map(|line| match Line::parse(line) {
        Line::Instruction(instruction) if instruction.multiplies() => instruction.operands().next(),
        Line::Instruction(_) | Line::Label(_) | Line::Other => None,
    });
    let sums: HashSet<&str> = sums.collect();
    let mut registers = HashSet::new();
    !sums.iter().flat_map(|sum| elements(sum)).all(|register| registers.insert(register))
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn a_wait_moves_its_arguments() {
        let wait = Assembly { text: "wgmma.wait_group 0;", constraints: "=f,=f,0,1,r,r,~{memory}" };
        let text = "wgmma.wait_group 0;\n\tmov.b32 $0, $2;\n\tmov.b32 $1, $3;";
        assert_eq!(moved(wait), (text.to_owned(), "=&f,=&f,f,f,r,r,~{memory}".to_owned()));
    }
}
