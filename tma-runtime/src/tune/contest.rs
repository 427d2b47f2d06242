//! Measurement of candidates in alternation.

use super::rounds::turns;
use super::{Outcome, Tuner};
use crate::backend::Backend;
use crate::device::Device;
use crate::device::stream::Stream;
use crate::error::Error;
use crate::progress::Progress;

/// The maximum number of launches of a candidate in a round.
const LAUNCHES: f64 = 1000.0;
/// The number of launches for a first estimate of the time of one.
const ESTIMATE: usize = 3;

/// Measures `count` candidates, and returns the outcome of each. `queue` queues the candidate with
/// an index.
///
/// # Errors
///
/// The errors of launches, except refusals.
pub(super) fn run(
    tuner: &Tuner<'_>,
    count: usize,
    mut progress: Progress,
    mut queue: impl FnMut(usize) -> Result<(), Error>,
) -> Result<Vec<Outcome>, Error> {
    let device = tuner.stream.device();
    let mut outcomes = vec![];
    for index in 0..count {
        let before = instructions(device);
        let outcome = match queue(index).and_then(|()| tuner.stream.synchronize()) {
            Ok(()) => Outcome::Measured { cost: (instructions(device) - before) as f64, spread: 0.0 },
            Err(error) if error.is_refusal() => Outcome::Refused { why: error.to_string() },
            Err(error) => return Err(error),
        };
        outcomes.push(outcome);
        progress.step();
    }
    match device.backend() {
        Backend::Sim(_) => Ok(outcomes),
        Backend::Cuda(_) => {
            let runs = |index: &usize| matches!(outcomes[*index], Outcome::Measured { .. });
            let running: Vec<usize> = (0..count).filter(runs).collect();
            let times = times(tuner, &running, &mut progress, &mut queue)?;
            for (&index, times) in running.iter().zip(times) {
                outcomes[index] = summed_up(times);
            }
            Ok(outcomes)
        }
    }
}

/// Returns the number of warp instructions that a simulated device has executed so far, or 0 on a
/// GPU.
fn instructions(device: &Device) -> u64 {
    match device.backend() {
        Backend::Sim(context) => context.instructions(),
        Backend::Cuda(_) => 0,
    }
}

/// Returns the microseconds per launch of each candidate in each round.
fn times(
    tuner: &Tuner<'_>,
    candidates: &[usize],
    progress: &mut Progress,
    queue: &mut impl FnMut(usize) -> Result<(), Error>,
) -> Result<Vec<Vec<f64>>, Error> {
    let mut launches = vec![];
    for &candidate in candidates {
        let one = microseconds(tuner.stream, ESTIMATE, || queue(candidate))?;
        launches.push((tuner.slice_ms * 1e3 / one).clamp(1.0, LAUNCHES) as usize);
    }
    let mut times = vec![vec![]; candidates.len()];
    for round in 0..tuner.rounds {
        for candidate in turns(round, candidates.len()) {
            times[candidate]
                .push(microseconds(tuner.stream, launches[candidate], || queue(candidates[candidate]))?);
            progress.step();
        }
    }
    Ok(times)
}

/// Returns the microseconds per launch of `launches` consecutive ones.
fn microseconds(
    stream: &Stream,
    launches: usize,
    mut queue: impl FnMut() -> Result<(), Error>,
) -> Result<f64, Error> {
    let start = stream.record()?;
    (0..launches).try_for_each(|_| queue())?;
    Ok(f64::from(start.elapsed_ms(&stream.record()?)?) * 1e3 / launches as f64)
}

/// Returns the median of the rounds, of which there is at least one, and the distance between the
/// extremes relative to it.
fn summed_up(mut times: Vec<f64>) -> Outcome {
    times.sort_by(f64::total_cmp);
    let at = |index: usize| times.get(index).copied().unwrap_or_default();
    let median = at(times.len() / 2);
    let width = at(times.len().saturating_sub(1)) - at(0);
    Outcome::Measured { cost: median, spread: if median > 0.0 { width / median } else { 0.0 } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_decides() {
        let outcome = summed_up(vec![9.0, 4.0, 2.0]);
        assert_eq!(outcome, Outcome::Measured { cost: 4.0, spread: 7.0 / 4.0 });
    }

    #[test]
    fn rounds_are_timed_by_events_in_changing_order() {
        let stream = Device::simulator().stream().unwrap();
        let tuner = Tuner::new(&stream).no_cache().rounds(4).slice_ms(0.0);
        let mut queued = vec![];
        let mut progress = Progress::new("t", 8, true);
        let times = times(&tuner, &[2, 5], &mut progress, &mut |index| {
            queued.push(index);
            Ok(())
        });
        assert_eq!(times.unwrap().iter().map(Vec::len).collect::<Vec<_>>(), [4, 4]);
        let (estimates, rounds) = queued.split_at(2 * ESTIMATE);
        assert_eq!(estimates, [2, 2, 2, 5, 5, 5]);
        assert_eq!(rounds, [2, 5, 5, 2, 5, 2, 2, 5]);
    }
}
