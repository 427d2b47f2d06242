//! Reasons for which warps wait, in words for the author of a kernel.
//!
//! `ncu` names reasons after parts of the hardware, and some stand for several events. A wait at an
//! mbarrier, for example, is a wait for a long scoreboard, as one for global memory. The
//! instruction tells them apart.

use std::collections::BTreeSet;

/// A reason for which warps do not issue an instruction.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stall {
    /// A reason that needs no instruction to be understood, by its name in `ncu`.
    Named(String),
    /// The phase of an mbarrier.
    Mbarrier,
    /// Multiplications of tensor cores that are in flight.
    Multiplications,
}

/// The reasons of `ncu` that are named differently here. Source: Nsight Compute, "Kernel Profiling
/// Guide", "Warp Stall Reasons".
const WORDS: [(&str, &str); 20] = [
    ("barrier", "other threads at a barrier"),
    ("branch_resolving", "the target of a branch"),
    ("dispatch", "the dispatch of an instruction"),
    ("drain", "stores before the end of the thread"),
    ("gmma", "multiplications"),
    ("imc", "constants and parameters"),
    ("lg", "the queue of global memory"),
    ("long_sb", "global memory"),
    ("math", "a busy arithmetic unit"),
    ("membar", "a memory fence"),
    ("mio", "the queue of shared memory and tensor cores"),
    ("misc", "something else"),
    ("no_inst", "the instruction cache"),
    ("not_selected", "another warp to issue"),
    ("short_sb", "shared memory"),
    ("sleep", "the end of a sleep"),
    ("sleeping", "the end of a sleep"),
    ("tex", "the queue of textures"),
    (UNNAMED, "something that ncu does not name"),
    ("wait", "the latency of an instruction"),
];

/// The reason of samples that are in no column. `ncu` 2025.3 has none for multiplications.
pub(super) const UNNAMED: &str = "unnamed";

/// The reason of samples in which a warp issues.
pub(super) const ISSUES: &str = "selected";

impl Stall {
    /// Returns what the warps wait for. A reason without words here has its name in `ncu`.
    pub(super) fn words(&self) -> &str {
        match self {
            Self::Named(name) => {
                WORDS.iter().find(|(ncu, _)| ncu == name).map_or(name.as_str(), |(_, words)| *words)
            }
            Self::Mbarrier => "the phase of an mbarrier",
            Self::Multiplications => "multiplications",
        }
    }

    /// Returns the name in `ncu`, which shows multiplications as barriers in some columns.
    pub(super) fn ncu(&self) -> &str {
        match self {
            Self::Named(name) => name,
            Self::Mbarrier => "long_sb",
            Self::Multiplications => "gmma",
        }
    }
}

/// Follows instructions in the order of their addresses, and names the reasons of each.
#[derive(Debug, Default)]
pub(super) struct Stalls {
    /// Predicates that say whether the phase of an mbarrier is complete.
    phases: BTreeSet<String>,
}

impl Stalls {
    /// Continues with an instruction, and returns the names of its reasons.
    pub(super) fn at<'r>(
        &mut self,
        instruction: &str,
        reasons: impl Iterator<Item = (&'r str, u64)>,
    ) -> Vec<(Stall, u64)> {
        let sass = Sass::read(instruction);
        let waits_for_phase = sass.read_predicates().any(|predicate| self.phases.contains(predicate));
        let multiplies = sass.opcode.starts_with("WARPGROUP") || sass.opcode.contains("GMMA");
        let named = reasons.map(|(reason, samples)| {
            let stall = match reason {
                "long_sb" if waits_for_phase => Stall::Mbarrier,
                "barrier" | "gmma" | UNNAMED if multiplies => Stall::Multiplications,
                other => Stall::Named(other.to_owned()),
            };
            (stall, samples)
        });
        let named = named.collect();
        let is_phase = sass.opcode.starts_with("SYNCS.PHASECHK");
        for predicate in sass.written() {
            if is_phase {
                self.phases.insert(predicate.to_owned());
            } else {
                self.phases.remove(predicate);
            }
        }
        named
    }
}

/// An instruction of the machine, such as `@!P1 BRA 0x10`.
#[derive(Debug)]
struct Sass<'t> {
    guard: Option<&'t str>,
    opcode: &'t str,
    operands: Vec<&'t str>,
}

impl<'t> Sass<'t> {
    fn read(text: &'t str) -> Self {
        let text = text.trim();
        let (guard, text) = match text.strip_prefix('@').and_then(|rest| rest.split_once(' ')) {
            Some((guard, rest)) => (Some(guard.trim_start_matches('!')), rest.trim()),
            None => (None, text),
        };
        let (opcode, operands) = text.split_once(' ').unwrap_or((text, ""));
        Self { guard, opcode, operands: operands.split(',').map(str::trim).collect() }
    }

    /// Returns the predicates that the instruction reads.
    fn read_predicates(&self) -> impl Iterator<Item = &'t str> {
        let operands = self.operands.iter().skip(self.results());
        let operands = operands.map(|operand| operand.trim_start_matches('!'));
        self.guard.into_iter().chain(operands).filter(|operand| is_predicate(operand))
    }

    /// Returns the predicates that the instruction writes.
    fn written(&self) -> impl Iterator<Item = &'t str> {
        let results = self.operands.iter().copied().take(self.results());
        results.filter(|operand| is_predicate(operand))
    }

    /// Returns the number of operands among which results are. A branch has none.
    fn results(&self) -> usize {
        if self.opcode.starts_with("BR") || self.opcode.starts_with("CALL") { 0 } else { 2 }
    }
}

/// Returns whether an operand is a predicate register. `PT` is always true.
fn is_predicate(operand: &str) -> bool {
    operand.strip_prefix('P').is_some_and(|number| number.len() == 1 && number.as_bytes()[0].is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stalls(instructions: &[(&str, &'static str)]) -> Vec<String> {
        let mut stalls = Stalls::default();
        let named = instructions.iter().map(|(text, reason)| stalls.at(text, [(*reason, 3)].into_iter()));
        named.flatten().map(|(stall, _)| stall.words().to_owned()).collect()
    }

    #[test]
    fn a_phase_is_told_from_global_memory() {
        let found = stalls(&[
            ("      SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [R7+UR4+0x38000], R12", "wait"),
            ("      LDG.E R4, desc[UR8][R6.64]", "lg"),
            ("@!P1  BRA 0x7f95ed7a3fa0", "long_sb"),
            ("      STS [R6+0x10000], R4", "long_sb"),
            ("      ISETP.NE.U32.AND P1, PT, R12, RZ, PT", "long_sb"),
            ("@P1   BRA 0x7f95ed7a3fb0", "long_sb"),
        ]);
        let wanted = [
            "the latency of an instruction",
            "the queue of global memory",
            "the phase of an mbarrier",
            "global memory",
            "global memory",
            "global memory",
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn multiplications_are_told_from_barriers() {
        let found = stalls(&[
            ("      WARPGROUP.DEPBAR.LE gsb0, 0x1", "barrier"),
            ("      HGMMA.64x256x16.F32.BF16 R24, gdesc[UR16], R24, gsb0", "mio"),
            ("      HGMMA.64x256x16.F32.BF16 R24, gdesc[UR16], R24, gsb0", UNNAMED),
            ("      LDS R1, [R2]", UNNAMED),
            ("      BAR.SYNC.DEFER_BLOCKING 0x0", "barrier"),
            ("      NOP", "a_new_reason"),
        ]);
        let wanted = [
            "multiplications",
            "the queue of shared memory and tensor cores",
            "multiplications",
            "something that ncu does not name",
            "other threads at a barrier",
            "a_new_reason",
        ];
        assert_eq!(found, wanted);
    }
}
