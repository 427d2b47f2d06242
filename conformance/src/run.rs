//! Runs lists of cases, and compares.

use std::fmt::Write;

use tma_runtime::Device;

use crate::batch::results;
use crate::case::Case;
use crate::list::by_family;
use crate::operand::{Matrices, Matrix};
use crate::plain::wanted;

/// What became of a case.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Its place in the list.
    pub index: usize,
    /// D of each device; none if one of them failed.
    pub results: Vec<Matrix>,
    /// What is wrong with it.
    pub problem: Option<String>,
}

/// Runs cases on each device, and hands out each as it is done. A device's errors are problems of
/// all cases that were run with the one at fault.
pub fn each(devices: &[Device], cases: &[Case], take: &mut dyn FnMut(Outcome)) {
    for (family, indices) in by_family(cases) {
        let batch: Vec<_> =
            indices.iter().map(|&index| (cases[index], Matrices::new(&cases[index]))).collect();
        let mut by_device = Vec::new();
        let mut failure = None;
        for device in devices {
            match results(device, family, &batch) {
                Ok(results) => by_device.push(results),
                Err(error) => failure = failure.or(Some(format!("{}: {error:#}", device.name()))),
            }
        }
        for (place, &index) in indices.iter().enumerate() {
            let (case, matrices) = &batch[place];
            let results: Vec<Matrix> = match failure {
                None => by_device.iter().map(|all| all[place].clone()).collect(),
                Some(_) => vec![],
            };
            let problem = failure.clone().or_else(|| compared(case, matrices, &results));
            take(Outcome { index, results, problem });
        }
    }
}

/// The first thing that is wrong with a case's results: devices that differ, or what plain Rust
/// does not allow.
fn compared(case: &Case, matrices: &Matrices, results: &[Matrix]) -> Option<String> {
    let first = results.first()?;
    if let Some(problem) = differing(results) {
        return Some(problem);
    }
    let wanted = wanted(case, matrices);
    let wrong: Vec<usize> =
        (0..wanted.len()).filter(|&i| !wanted[i].is_met(case.form().d, first.bits[i])).collect();
    let &at = wrong.first()?;
    let (row, column) = (at / first.depth as usize, at % first.depth as usize);
    let mut text = String::new();
    let _ = write!(
        text,
        "{} elements are not what plain Rust gives, first row {row}, column {column}: {:#010x}, not {:?}",
        wrong.len(),
        first.bits[at],
        wanted[at]
    );
    Some(text)
}

/// The first element in which devices' results differ.
pub(crate) fn differing(results: &[Matrix]) -> Option<String> {
    let (first, others) = results.split_first()?;
    others.iter().find_map(|other| {
        let places: Vec<usize> = (0..first.bits.len()).filter(|&i| first.bits[i] != other.bits[i]).collect();
        let &at = places.first()?;
        let (row, column) = (at / first.depth as usize, at % first.depth as usize);
        Some(format!(
            "{} elements differ, first at row {row}, column {column}: {:#010x}, {:#010x}",
            places.len(),
            first.bits[at],
            other.bits[at]
        ))
    })
}
