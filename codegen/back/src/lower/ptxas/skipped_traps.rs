//! Lets conditional branches skip traps instead of leading to them, in kernels with
//! multiplications.
//!
//! * Cures: C7517, "warpgroup.wait is injected in around line .. by compiler to allow use of
//!   registers defined by GMMA".
//! * Seen with: ptxas 13.0.
//! * Test: `Workaround::SkippedTraps` in `codegen/back/tests/flights/workarounds.rs`.
//!
//! If a conditional branch leads to a `trap`, ptxas waits there for the multiplications in flight.
//! If the branch skips an unconditional one instead, it does not. LLVM chooses the branches when it
//! generates code, so they are only known in the PTX.

use std::collections::HashSet;

use super::line::{Instruction, Line, Predicate};

/// Rewrites branches to blocks that stop.
pub(super) fn skip_traps(ptx: &str) -> String {
    let mut stops = HashSet::new();
    let mut block = "";
    for line in ptx.lines() {
        match Line::parse(line) {
            Line::Label(label) => block = label,
            Line::Instruction(Instruction { opcode: "trap", .. }) => _ = stops.insert(block),
            Line::Instruction(_) | Line::Other => {}
        }
    }
    let mut number = 0;
    let mut text = String::with_capacity(ptx.len());
    for line in ptx.lines() {
        match conditional_branch(line).filter(|(_, label)| stops.contains(label)) {
            Some((Predicate { register, is_negated }, label)) => {
                let not = if is_negated { "" } else { "!" };
                text += &format!(
                    "\t@{not}{register} bra \t$L__on_{number};\n\tbra.uni \t{label};\n$L__on_{number}:\n"
                );
                number += 1;
            }
            None => text.extend([line, "\n"]),
        }
    }
    text
}

/// Returns the condition and the label of a conditional branch.
fn conditional_branch(line: &str) -> Option<(Predicate<'_>, &str)> {
    match Line::parse(line) {
        Line::Instruction(branch) if branch.opcode == "bra" => {
            Some((branch.predicate?, branch.operands().next()?))
        }
        Line::Instruction(_) | Line::Label(_) | Line::Other => None,
    }
}

#[cfg(test)]
mod tests {
    use super::skip_traps;

    #[test]
    fn branches_to_traps_are_turned_around() {
        let ptx = "\t@%p1 bra \t$L_1;\n\t@!%p2 bra \t$L_1;\n\t@%p1 bra \t$L_2;\n$L_1:\n\t@%p trap;\n$L_2:\n\tret;\n";
        let wanted = "\t@!%p1 bra \t$L__on_0;\n\tbra.uni \t$L_1;\n$L__on_0:\n\
                      \t@%p2 bra \t$L__on_1;\n\tbra.uni \t$L_1;\n$L__on_1:\n\
                      \t@%p1 bra \t$L_2;\n$L_1:\n\t@%p trap;\n$L_2:\n\tret;\n";
        assert_eq!(skip_traps(ptx), wanted);
    }
}
