//! The mutants that the simulator reports as deadlocks.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use ptx_sim::{Finding, Findings};
use tma_runtime::prelude::*;

use super::DeadlockMutant;
use super::awaited::awaited;
use crate::mutation::steps::{Mutant, mutants};
use crate::mutation::subjects::{Subject, of_runtime};
use crate::mutation::trial::INSTRUCTIONS;
use crate::parallel::on_all_cores;

/// The seeds under which a mutant must deadlock: a GPU has an order of its own.
const SEEDS: u64 = 3;

/// The beginning of the finding of a deadlock. Some have the kind of their cause, such as wrong
/// transaction bytes.
const DEADLOCK: &str = "no thread can continue";

/// Runs every `nth` mutant of the subjects on the simulator, on all cores, and returns those that
/// deadlock under each of the seeds.
///
/// # Errors
///
/// A mutant that cannot be run at all.
pub fn deadlock_mutants(subjects: &[Subject], nth: usize) -> anyhow::Result<Vec<DeadlockMutant>> {
    let of_subject = |subject| mutants_of(subject).into_iter().map(move |mutant| (subject, mutant));
    let jobs = subjects.iter().flat_map(of_subject).step_by(nth.max(1)).collect();
    let found = on_all_cores(jobs, |(subject, mutant)| deadlock(subject, &mutant));
    found.into_iter().filter_map(Result::transpose).collect()
}

fn mutants_of(subject: &Subject) -> Vec<Mutant> {
    mutants(subject.kernel.ptx)
}

/// The end of a launch in a deadlock.
struct DeadlockFinding {
    awaited: BTreeSet<String>,
    also: BTreeSet<String>,
}

/// Runs a mutant, and returns it if it deadlocks.
fn deadlock(subject: &Subject, mutant: &Mutant) -> anyhow::Result<Option<DeadlockMutant>> {
    let kernel = subject.kernel;
    let mut found = DeadlockMutant {
        test: subject.test.name.clone(),
        kernel: kernel.name.to_owned(),
        entry: kernel.entry.to_owned(),
        step: mutant.change.to_string(),
        line: mutant.line,
        awaited: BTreeSet::new(),
        also: BTreeSet::new(),
    };
    for seed in 0..SEEDS {
        let Some(finding) = under(subject, &mutant.ptx, seed)? else { return Ok(None) };
        found.awaited.extend(finding.awaited);
        found.also.extend(finding.also);
    }
    Ok(Some(found))
}

/// Runs the subject's check with other PTX under a seed, and returns the deadlock with which it
/// ends.
fn under(subject: &Subject, ptx: &str, seed: u64) -> anyhow::Result<Option<DeadlockFinding>> {
    let last: Arc<Mutex<Option<DeadlockFinding>>> = Arc::default();
    let (entry, note) = (subject.kernel.entry, Arc::clone(&last));
    let device = Device::simulator().seed(seed).reporting(0, move |kernel, report| {
        if kernel.entry == entry {
            *note.lock().unwrap_or_else(PoisonError::into_inner) = finding(&report.findings);
        }
    });
    match subject.try_with(ptx, &device, INSTRUCTIONS) {
        Ok(_) => Ok(None),
        Err(error) => match of_runtime(&error) {
            Some(Error::Findings { .. }) => Ok(last.lock().unwrap_or_else(PoisonError::into_inner).take()),
            Some(_) | None => Err(error.context(subject.kernel.name)),
        },
    }
}

/// Returns the deadlock among the findings of a launch.
fn finding(findings: &Findings) -> Option<DeadlockFinding> {
    let is_deadlock = |finding: &&Finding| finding.message.starts_with(DEADLOCK);
    let deadlock = findings.iter().find(is_deadlock)?;
    let also = findings.iter().filter(|finding| !is_deadlock(finding));
    Some(DeadlockFinding {
        awaited: awaited(&deadlock.message),
        also: also.map(|finding| finding.kind.to_string()).collect(),
    })
}
