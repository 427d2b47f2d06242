//! Mutants on the simulator, with the seed under which each is found.

use tma_runtime::prelude::Error;
use tma_runtime::testing::{SeedFailure, under_seeds};

use super::steps::{Change, Mutant, mutants};
use super::subjects::{Subject, of_runtime};
use super::unreported::Lists;
use crate::parallel::on_all_cores;

/// The number of seeds within which a mutant must be found.
pub const SEEDS: u64 = 32;
/// The number of seeds for a mutant that is listed as unreported. If it were listed wrongly, it
/// would usually be found under the first.
const UNREPORTED_SEEDS: u64 = 4;

/// Thread instructions of a cluster after which a mutant counts as non-terminating: some ten times
/// those of the longest kernel.
pub(crate) const INSTRUCTIONS: u64 = 1 << 28;

/// The verdict on a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Reported by the simulator, first under this seed.
    Found {
        /// The seed.
        seed: u64,
    },
    /// Wrong results under some seed, but no report.
    OnlyWrong,
    /// Correct results under every seed.
    Unseen,
}

/// A mutant that has run.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The kernel's name.
    pub kernel: &'static str,
    /// Line of the PTX, from 1.
    pub line: usize,
    /// The original instruction in that line.
    pub instruction: String,
    /// The number of instructions with the same opcode before it.
    pub index: usize,
    /// The change to the instruction.
    pub change: Change,
    /// The verdict on the mutant.
    pub verdict: Verdict,
}

/// Runs one in `step` of the mutants of all subjects, until it is found or no seed is left, on all
/// cores. `lists` has the mutants that should not be found.
///
/// # Errors
///
/// A mutant that cannot be run at all.
pub fn trials(subjects: &[Subject], step: usize, lists: &Lists) -> anyhow::Result<Vec<Trial>> {
    let jobs = subjects
        .iter()
        .flat_map(|subject| mutants(subject.kernel.ptx).into_iter().map(move |m| (subject, m)));
    on_all_cores(jobs.step_by(step).collect(), |(subject, mutant)| trial(subject, mutant, lists))
        .into_iter()
        .collect()
}

fn trial(subject: &Subject, mutant: Mutant, lists: &Lists) -> anyhow::Result<Trial> {
    let kernel = subject.kernel;
    let Mutant { line, change, ptx } = mutant;
    let before: Vec<_> = kernel.ptx.lines().take(line).map(str::trim).collect();
    let instruction = before.last().copied().unwrap_or_default();
    let opcode = |line: &&str| line.split_whitespace().next() == instruction.split_whitespace().next();
    let index = before.iter().copied().filter(|line| opcode(line)).count() - 1;
    let instruction = instruction.to_owned();
    let mut trial = Trial { kernel: kernel.name, line, instruction, index, change, verdict: Verdict::Unseen };
    let is_listed = lists.is_harmless(&trial) || lists.is_missed(&trial);
    let seeds = if is_listed { UNREPORTED_SEEDS } else { SEEDS };
    trial.verdict = verdict(subject, ptx, seeds)
        .map_err(|error| error.context(format!("{}, line {line}, {change}", kernel.name)))?;
    Ok(trial)
}

fn verdict(subject: &Subject, ptx: String, seeds: u64) -> anyhow::Result<Verdict> {
    let mut is_wrong = false;
    let outcome = under_seeds(seeds, |device| {
        // For a wrong result, another seed may show the cause.
        is_wrong |= !subject.try_with(&ptx, device, INSTRUCTIONS)?;
        anyhow::Ok(())
    });
    match outcome {
        Ok(()) if is_wrong => Ok(Verdict::OnlyWrong),
        Ok(()) => Ok(Verdict::Unseen),
        Err(SeedFailure { seed, error }) => match of_runtime(&error) {
            Some(Error::Findings { .. }) => Ok(Verdict::Found { seed }),
            _ => Err(error),
        },
    }
}
