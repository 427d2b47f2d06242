//! Comparison of results with the expected ones.

use std::thread;

use anyhow::ensure;
use tma_runtime::prelude::*;

use crate::random::{Sample, threads};

/// Checks that each result is [the same](Sample::is_same) as the expected one.
///
/// # Errors
///
/// The number of differences, and the first one.
pub fn same<T: Sample>(what: &str, found: &[T], wanted: &[T]) -> anyhow::Result<()> {
    judged(what, found, wanted, |_, found, wanted| found.is_same(wanted))
}

/// Checks that each result passes `fits(index, found, wanted)`.
///
/// # Errors
///
/// The number of results that do not pass, and the first one.
pub fn judged<T: Sample>(
    what: &str,
    found: &[T],
    wanted: &[T],
    fits: impl Fn(usize, T, T) -> bool,
) -> anyhow::Result<()> {
    ensure!(found.len() == wanted.len(), "{what}: {} results, wanted {}", found.len(), wanted.len());
    let pairs = found.iter().zip(wanted).enumerate();
    let mut wrong = pairs.filter(|&(i, (&found, &wanted))| !fits(i, found, wanted));
    if let Some((i, (found, wanted))) = wrong.next() {
        let others = wrong.count();
        anyhow::bail!("{what}: result {i} is {found:?}, wanted {wanted:?}; {others} others differ");
    }
    Ok(())
}

/// Checks that two slices have the same bits, on all processors if they are large.
///
/// # Errors
///
/// The first difference.
pub fn same_bits<T: Sample>(found: &[T], wanted: &[T]) -> anyhow::Result<()> {
    ensure!(found.len() == wanted.len(), "{} results, wanted {}", found.len(), wanted.len());
    let share = found.len().div_ceil(threads()).max(1);
    let first_difference = thread::scope(|scope| {
        let parts = found.chunks(share).zip(wanted.chunks(share)).enumerate();
        let parts: Vec<_> = parts
            .map(|(part, (found, wanted))| {
                scope.spawn(move || difference(found, wanted).map(|at| part * share + at))
            })
            .collect();
        parts.into_iter().filter_map(|part| part.join().ok()?).min()
    });
    match first_difference {
        None => Ok(()),
        Some(at) => anyhow::bail!("element {at} is {:?}, wanted {:?}", found[at], wanted[at]),
    }
}

/// Returns the index of the first element whose bits differ.
fn difference<T: Sample>(found: &[T], wanted: &[T]) -> Option<usize> {
    let (found, wanted) = (bytes(found), bytes(wanted));
    if found == wanted {
        return None;
    }
    let byte = found.iter().zip(wanted).position(|(found, wanted)| found != wanted);
    byte.map(|byte| byte / size_of::<T>())
}

/// Returns the bytes of scalars.
fn bytes<T: Scalar>(values: &[T]) -> &[u8] {
    // SAFETY: scalars have no padding, as `Scalar` promises, and bytes have no alignment.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}
