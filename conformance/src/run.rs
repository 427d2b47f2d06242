//! Runs lists of cases, and compares the results.

use std::fmt::Write;

use tma_runtime::Device;

use crate::batch::results;
use crate::case::Case;
use crate::list::by_family;
use crate::operand::{Matrices, Matrix};
use crate::reference::expected;

/// The outcome of a case.
#[derive(Clone, Debug)]
pub struct CaseOutcome {
    /// Index of the case in the list.
    pub index: usize,
    /// D of each device. Empty if a device failed.
    pub results: Vec<Matrix>,
    /// Description of the problem, if there is one.
    pub problem: Option<String>,
}

/// Runs cases on each device, and passes on each outcome as it is available. An error of a device
/// is a problem of all cases in the same launch.
pub fn each(devices: &[Device], cases: &[Case], take: &mut dyn FnMut(CaseOutcome)) {
    for (family, indices) in by_family(cases) {
        let batch: Vec<_> =
            indices.iter().map(|&index| (cases[index], Matrices::new(&cases[index]))).collect();
        let run = |device: &Device| results(device, family, &batch);
        let problem = |position: usize, d: &Matrix| {
            let (case, matrices) = &batch[position];
            mismatch(case, matrices, d)
        };
        each_of(devices, &indices, run, problem, take);
    }
}

/// Runs cases in one launch on each device. `run` returns the D of each case. Devices must agree,
/// and `problem` describes any other problem of a result.
pub(crate) fn each_of(
    devices: &[Device],
    indices: &[usize],
    run: impl Fn(&Device) -> anyhow::Result<Vec<Matrix>>,
    problem: impl Fn(usize, &Matrix) -> Option<String>,
    take: &mut dyn FnMut(CaseOutcome),
) {
    if indices.is_empty() {
        return;
    }
    let run = |device: &Device| run(device).map_err(|error| format!("{}: {error:#}", device.name()));
    let by_device: Result<Vec<_>, String> = devices.iter().map(run).collect();
    for (position, &index) in indices.iter().enumerate() {
        let (results, problem) = match &by_device {
            Ok(all) => {
                let results: Vec<Matrix> = all.iter().map(|results| results[position].clone()).collect();
                let problem = differing(&results).or_else(|| problem(position, results.first()?));
                (results, problem)
            }
            Err(error) => (vec![], Some(error.clone())),
        };
        take(CaseOutcome { index, results, problem });
    }
}

/// Describes the first element of a case's result that plain Rust does not allow.
fn mismatch(case: &Case, matrices: &Matrices, first: &Matrix) -> Option<String> {
    let expected = expected(case, matrices);
    let wrong: Vec<usize> =
        (0..expected.len()).filter(|&i| !expected[i].accepts(case.form().d, first.bits[i])).collect();
    let &at = wrong.first()?;
    let (row, column) = (at / first.depth as usize, at % first.depth as usize);
    let mut text = String::new();
    let _ = write!(
        text,
        "{} elements are not what plain Rust gives, first row {row}, column {column}: {:#010x}, not {:?}",
        wrong.len(),
        first.bits[at],
        expected[at]
    );
    Some(text)
}

/// Describes the first element in which the results of the devices differ.
pub(crate) fn differing(results: &[Matrix]) -> Option<String> {
    let (first, others) = results.split_first()?;
    others.iter().find_map(|other| {
        let indices: Vec<usize> = (0..first.bits.len()).filter(|&i| first.bits[i] != other.bits[i]).collect();
        let &at = indices.first()?;
        let (row, column) = (at / first.depth as usize, at % first.depth as usize);
        Some(format!(
            "{} elements differ, first at row {row}, column {column}: {:#010x}, {:#010x}",
            indices.len(),
            first.bits[at],
            other.bits[at]
        ))
    })
}
