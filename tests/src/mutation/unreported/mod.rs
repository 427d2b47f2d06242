//! The mutants that are not found, each with the reason: those that do no harm, and those that the
//! simulator cannot detect.

mod kinds;
mod library;
mod tree;

use std::fmt;

use super::line::Instruction;
use super::steps::Change;
use super::trial::Trial;

/// Mutants of an instruction, or of several similar ones, that the simulator does not report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreported {
    /// The kernel's name. A `*` at its end matches all names with that prefix.
    pub kernel: &'static str,
    /// The instructions: their opcode or its first parts (the whole opcode, if a space ends it),
    /// and for each of them the number of instructions with the same opcode before it.
    pub instruction: (&'static str, &'static [usize]),
    /// The changes to the instruction.
    pub changes: &'static [Change],
    /// The reason why the changes do no harm, or are not detected.
    pub reason: &'static str,
}

/// The mutants of a set of kernels that are not reported.
#[derive(Clone, Copy, Debug)]
pub struct Lists {
    /// Mutants that do no harm, because the kernel does not need these steps.
    pub harmless: &'static [Unreported],
    /// Mutants that do harm, which the simulator cannot detect yet.
    pub missed: &'static [Unreported],
}

/// The lists for the kernels of the corpus and of the examples.
pub const TREE: Lists = Lists { harmless: tree::HARMLESS, missed: tree::MISSED };

/// The lists for the kernels of `tma-kernels`, some of which have the names of examples.
pub const LIBRARY: Lists = Lists { harmless: library::HARMLESS, missed: library::MISSED };

impl Lists {
    /// Returns whether a mutant is listed as harmless.
    pub fn is_harmless(&self, trial: &Trial) -> bool {
        self.harmless.iter().any(|entry| entry.is_of(trial))
    }

    /// Returns whether a mutant is listed as missed.
    pub fn is_missed(&self, trial: &Trial) -> bool {
        self.missed.iter().any(|entry| entry.is_of(trial))
    }
}

impl Unreported {
    /// Returns whether `trial` is one of this entry's mutants.
    pub fn is_of(&self, trial: &Trial) -> bool {
        let (parts, before) = self.instruction;
        let is_kernel = match self.kernel.strip_suffix('*') {
            Some(start) => trial.kernel.starts_with(start),
            None => trial.kernel == self.kernel,
        };
        let is_opcode = |instruction: Instruction<'_>| match parts.strip_suffix(' ') {
            Some(whole) => instruction.opcode == whole,
            None => instruction.is(parts),
        };
        is_kernel
            && before.contains(&trial.index)
            && self.changes.contains(&trial.change)
            && Instruction::parse(&trial.instruction).is_some_and(is_opcode)
    }
}

impl fmt::Display for Unreported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, instruction: (opcode, before), changes, reason } = self;
        let numbers: Vec<_> = before.iter().map(|before| (before + 1).to_string()).collect();
        let changes: Vec<_> = changes.iter().map(Change::to_string).collect();
        let (opcode, numbers, changes) = (opcode.trim_end(), numbers.join(", "), changes.join(", "));
        write!(f, "| `{kernel}` | `{opcode}`, no. {numbers} | {changes} | {reason} |")
    }
}
