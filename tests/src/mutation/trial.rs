//! Mutants on the simulator: under which seed is each found?

use tma_runtime::prelude::Error;
use tma_runtime::testing::{SeedFailure, under_seeds};

use super::steps::{Change, Mutant, mutants};
use super::subjects::{Subject, of_runtime};
use super::unreported::Lists;
use crate::parallel::on_all_cores;

/// Seeds within which a mutant must be found.
pub const SEEDS: u64 = 32;
/// Seeds that a mutant gets which is listed as unreported: it would mostly be found under the
/// first, if it were wrongly so.
const UNREPORTED_SEEDS: u64 = 4;

/// Thread-instructions of a cluster after which a mutant counts as not ending: some ten times what
/// the longest kernel runs.
const INSTRUCTIONS: u64 = 1 << 28;

/// What became of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The simulator has reported it, first under this seed.
    Found {
        /// The seed.
        seed: u64,
    },
    /// It computed what it should not, under some seed, and nothing was reported.
    OnlyWrong,
    /// It computed what it should under every seed.
    Unseen,
}

/// A mutant that has run.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The kernel's name.
    pub kernel: &'static str,
    /// Line of the PTX, from 1.
    pub line: usize,
    /// The instruction in that line, as it was.
    pub instruction: String,
    /// How many instructions with the same opcode stand before it.
    pub index: usize,
    /// What was done to it.
    pub change: Change,
    /// What became of it.
    pub verdict: Verdict,
}

/// Runs one in `step` of the mutants of all subjects, until it is found or no seed is left; on all
/// cores. `lists` are of those that should not be found.
///
/// # Errors
///
/// A mutant that could not be run at all.
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
        // Of a wrong result, another seed may show why.
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
