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

/// 64 bits of a result: FNV-1a over its words.
pub fn hash(result: &Matrix) -> u64 {
    result
        .bits
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Runs cases on each device, and hands out each as it is done. A device's errors are problems of
/// all cases that were run with the one at fault.
pub fn each(devices: &[Device], cases: &[Case], mut take: impl FnMut(Outcome)) {
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
    for other in &results[1..] {
        let differ = (0..first.bits.len()).filter(|&i| first.bits[i] != other.bits[i]);
        let places: Vec<usize> = differ.collect();
        if let Some(&at) = places.first() {
            let (row, column) = (at / first.depth as usize, at % first.depth as usize);
            return Some(format!(
                "{} elements differ, first at row {row}, column {column}: {:#010x}, {:#010x}",
                places.len(),
                first.bits[at],
                other.bits[at]
            ));
        }
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
