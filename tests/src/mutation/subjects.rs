//! The kernels that are mutated: all that synchronise, from the corpus, the examples and
//! `tma-kernels`, each with a check that launches it.

use std::sync::{Arc, Mutex, PoisonError};

use tma_kernels::AttentionError;
use tma_kernels::conv::ConvError;
use tma_kernels::gemm::GemmError;
use tma_kernels::team::CollectiveError;
use tma_runtime::launch::KernelSpec;
use tma_runtime::prelude::*;

use super::steps::mutants;
use crate::case::Options;
use crate::gpu::runner::Test;
use crate::gpu::{example_runs, teams};
use crate::parallel::on_all_cores;
use crate::{kernels, library};

/// A kernel, and the check that launches it and compares the results.
#[derive(Clone)]
pub struct Subject {
    /// The kernel.
    pub kernel: &'static KernelSpec,
    /// The check, which may also launch other kernels.
    pub test: Arc<Test>,
}

impl Subject {
    /// Runs the check with other PTX for the kernel, which ends after this many thread instructions
    /// of a cluster. Returns whether the results are correct; a finding of the simulator is the
    /// error.
    pub(crate) fn try_with(&self, ptx: &str, device: &Device, instructions: u64) -> anyhow::Result<bool> {
        let (entry, ptx) = (self.kernel.entry, ptx.to_owned());
        let device = device.clone().instruction_limit(instructions);
        let device = device.rewriting(move |kernel| (kernel.entry == entry).then(|| ptx.clone()));
        match (self.test.run)(&device) {
            Ok(()) => Ok(true),
            Err(error) if of_runtime(&error).is_none() => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Returns the runtime's error, which may be inside one of the library's.
pub(crate) fn of_runtime(error: &anyhow::Error) -> Option<&Error> {
    error.chain().find_map(|cause| {
        let of_gemm = || match cause.downcast_ref() {
            Some(GemmError::Runtime(error)) => Some(error),
            _ => None,
        };
        let of_attention = || match cause.downcast_ref() {
            Some(AttentionError::Runtime(error)) => Some(error),
            _ => None,
        };
        let of_conv = || match cause.downcast_ref() {
            Some(ConvError::Runtime(error)) => Some(error),
            _ => None,
        };
        let of_team = || match cause.downcast_ref() {
            Some(CollectiveError::Runtime(error)) => Some(error),
            _ => None,
        };
        cause.downcast_ref().or_else(of_gemm).or_else(of_attention).or_else(of_conv).or_else(of_team)
    })
}

/// Returns every check, with its smallest problem.
fn tests() -> Vec<Test> {
    let options = Options { quick: true };
    let cases = kernels::cases().map(|case| Test {
        name: case.name.to_owned(),
        run: Box::new(move |device| (case.run)(device, &options)),
    });
    cases.chain(example_runs::small_tests()).chain(teams::tests_of_two()).collect()
}

/// Returns every kernel of the corpus and of the examples that synchronises, with the first check
/// that launches it. Runs every check once.
///
/// # Errors
///
/// A check that fails, with its name.
pub fn subjects() -> anyhow::Result<Vec<Subject>> {
    launched_by(tests())
}

/// Returns the same for `tma-kernels`, with one instance of each kernel.
///
/// # Errors
///
/// A check that fails, with its name.
pub fn library_subjects() -> anyhow::Result<Vec<Subject>> {
    launched_by(library::tests())
}

/// Returns the kernels that the checks of this package and of `tma-kernels` launch whose names contain
/// `filter`.
///
/// # Errors
///
/// A check that fails, with its name.
pub fn subjects_of(filter: &str) -> anyhow::Result<Vec<Subject>> {
    let all = tests().into_iter().chain(library::tests());
    launched_by(all.filter(|test| test.name.contains(filter)).collect())
}

/// Returns the check of this name.
pub fn test(name: &str) -> Option<Test> {
    library::test(name).or_else(|| tests().into_iter().find(|test| test.name == name))
}

fn launched_by(tests: Vec<Test>) -> anyhow::Result<Vec<Subject>> {
    let mut subjects: Vec<Subject> = vec![];
    for (launched, test) in on_all_cores(tests, |test| (launches(&test), Arc::new(test))) {
        for kernel in launched? {
            let is_known = subjects.iter().any(|subject| subject.kernel.entry == kernel.entry);
            if !is_known && !mutants(kernel.ptx).is_empty() {
                subjects.push(Subject { kernel, test: Arc::clone(&test) });
            }
        }
    }
    Ok(subjects)
}

/// Returns the kernels that a check launches, in that order.
fn launches(test: &Test) -> anyhow::Result<Vec<&'static KernelSpec>> {
    let launched = Arc::new(Mutex::new(vec![]));
    let record = Arc::clone(&launched);
    let device = Device::simulator().rewriting(move |kernel| {
        record.lock().unwrap_or_else(PoisonError::into_inner).push(kernel);
        None
    });
    (test.run)(&device).map_err(|error| error.context(test.name.clone()))?;
    let mut launched = launched.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(std::mem::take(&mut *launched))
}

/// Returns the first instances of each kernel, at most `most` of them: the others have the same
/// steps.
pub fn first_instances(subjects: &[Subject], most: usize) -> Vec<Subject> {
    let generic = |subject: &Subject| subject.kernel.name.split("::").next().unwrap_or_default();
    let mut firsts: Vec<Subject> = vec![];
    for subject in subjects {
        if firsts.iter().filter(|first| generic(first) == generic(subject)).count() < most {
            firsts.push(subject.clone());
        }
    }
    firsts
}
