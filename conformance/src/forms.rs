//! All forms of `wgmma.mma_async`, from a list in the syntax of the PTX ISA, and kernels with these
//! forms for the assembler.

use std::collections::HashMap;
use std::fmt::Write;

use tma_model::mma::Form;

use crate::instruction::{Instruction, Source};
use crate::kernel::{braces, for_each};
use crate::list::types;

/// The list of forms.
const LIST: &str = include_str!("../forms.txt");

/// Returns the names of the operands in the list: registers of D, A in memory or in registers, B,
/// metadata, `scale-d`.
const fn operands(source: Source) -> [&'static str; 5] {
    let a = match source {
        Source::Shared => "a",
        Source::Registers => "{a}",
    };
    ["{d}", a, "b", "m", "p"]
}

/// Returns the forms of each line of the list, with all of its choices expanded: some hundred per
/// line.
pub fn listed() -> Vec<Vec<String>> {
    let lines = LIST.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let (names, forms): (Vec<&str>, Vec<&str>) = lines.partition(|line| line.contains(" = "));
    let names: HashMap<&str, &str> = names.iter().filter_map(|line| line.split_once(" = ")).collect();
    forms.iter().map(|form| expanded(form, &names)).collect()
}

/// Expands all choices of the parentheses in a line.
fn expanded(line: &str, names: &HashMap<&str, &str>) -> Vec<String> {
    let parts = line.split_once('(').and_then(|(before, rest)| {
        let (choices, after) = rest.split_once(')')?;
        Some((before, choices, after))
    });
    let Some((before, choices, after)) = parts else { return vec![line.to_owned()] };
    let choices = names.get(choices).copied().unwrap_or(choices);
    let rest = expanded(after, names);
    choices
        .split('|')
        .flat_map(|choice| rest.iter().map(move |rest| format!("{before}{choice}{rest}")))
        .collect()
}

/// Returns all instructions of the model, indexed by their text in the list.
pub fn modelled() -> HashMap<String, Instruction> {
    let mut all = HashMap::new();
    for form in types() {
        for n in Form::widths(form.a) {
            for instruction in Instruction::all(Form { n, ..form }) {
                all.insert(instruction.text(operands(instruction.source)), instruction);
            }
        }
    }
    all
}

/// Returns the kernels for a line of the list, as one module. There is a kernel for each opcode. At
/// the smallest width it has all choices of operands. At other widths it has one of them, in
/// rotation, unless `with_all`.
pub fn module(forms: &[String], with_all: bool) -> String {
    let modelled = modelled();
    let mut by_opcode: Vec<Vec<Instruction>> = Vec::new();
    let opcode = |one: &Instruction| (one.form, one.saturates);
    for instruction in forms.iter().filter_map(|form| modelled.get(form)) {
        match by_opcode.iter_mut().find(|all| opcode(&all[0]) == opcode(instruction)) {
            Some(all) => all.push(*instruction),
            None => by_opcode.push(vec![*instruction]),
        }
    }
    let mut text = String::from(".version 8.4\n.target sm_90a\n.address_size 64\n");
    for (number, instructions) in by_opcode.iter().enumerate() {
        let is_least = instructions[0].form.n == 8;
        let some = if with_all || is_least {
            &instructions[..]
        } else {
            &instructions[number % instructions.len()..][..1]
        };
        text += &kernel(number, some);
    }
    text
}

/// Returns a kernel that executes instructions on the same accumulators, in one stage. It stores
/// only one of these: storing all would take the assembler longer than the instructions do.
fn kernel(number: usize, instructions: &[Instruction]) -> String {
    let registers = instructions[0].form.accumulator_registers();
    let (d, a) = (braces("%c", registers), braces("%a", Form::LEFT_REGISTERS));
    let clear = for_each(registers, |i, _| format!("mov.b32 %c{i}, 0;"));
    let mut stage = String::new();
    for instruction in instructions {
        let left = if instruction.source == Source::Shared { "%q1" } else { &a };
        // Writing to a string does not fail.
        let _ = writeln!(stage, "{}", instruction.text([&d, left, "%q2", "%m", "%p"]));
    }
    format!(
        ".visible .entry k{number}(.param .u64 data, .param .u64 operands)\n.maxntid 128, 1, 1\n{{\n\
         .reg .b32 %c<128>; .reg .b32 %a<4>; .reg .b32 %m; .reg .b64 %q<4>; .reg .pred %p;\n\
         ld.param.u64 %q0, [data];\nld.param.u64 %q3, [operands];\n{clear}\
         ld.global.v2.u64 {{%q1, %q2}}, [%q3];\nld.global.v4.u32 {a}, [%q3+16];\nld.global.u32 %m, [%q3+32];\n\
         setp.ne.u32 %p, %m, 0;\nwgmma.fence.sync.aligned;\n{stage}wgmma.commit_group.sync.aligned;\n\
         wgmma.wait_group.sync.aligned 0;\nst.global.u32 [%q0], %c0;\nret;\n}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_and_the_model_have_the_same_forms() {
        let mut listed: Vec<String> = listed().concat();
        let mut modelled: Vec<String> = modelled().into_keys().collect();
        listed.sort();
        modelled.sort();
        let missing = |from: &[String], of: &[String]| -> Vec<String> {
            of.iter().filter(|form| from.binary_search(form).is_err()).take(5).cloned().collect()
        };
        assert_eq!(missing(&listed, &modelled), [""; 0], "are not in the list");
        assert_eq!(missing(&modelled, &listed), [""; 0], "are not in the model");
        assert_eq!(listed.len(), modelled.len());
        assert_eq!(listed.len(), 12388);
    }

    #[test]
    fn every_choice_of_a_line_is_taken() {
        let names = HashMap::from([("N", "8|16")]);
        assert_eq!(expanded("n(N) (|x)", &names), ["n8 ", "n8 x", "n16 ", "n16 x"]);
    }
}
