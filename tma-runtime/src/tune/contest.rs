//! Candidates in turns.

use super::turns::turns;
use super::{Outcome, Tuner};
use crate::backend::Backend;
use crate::device::Device;
use crate::device::stream::Stream;
use crate::error::Error;
use crate::progress::Progress;

/// Launches of a candidate in a round, at most.
const LAUNCHES: f64 = 1000.0;
/// Launches by which the time of one is estimated.
const ESTIMATE: usize = 3;

/// What comes of each of so many candidates. `queue` queues the candidate of an index.
///
/// # Errors
///
/// Those of launches, but for refusals.
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

/// The instructions of warps that a simulated device has executed so far; 0 on a GPU.
fn instructions(device: &Device) -> u64 {
    match device.backend() {
        Backend::Sim(context) => context.instructions(),
        Backend::Cuda(_) => 0,
    }
}

/// The microseconds of a launch of each candidate in each round.
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
        for place in turns(round, candidates.len()) {
            times[place].push(microseconds(tuner.stream, launches[place], || queue(candidates[place]))?);
            progress.step();
        }
    }
    Ok(times)
}

/// The microseconds of a launch, of so many in a row.
fn microseconds(
    stream: &Stream,
    launches: usize,
    mut queue: impl FnMut() -> Result<(), Error>,
) -> Result<f64, Error> {
    let start = stream.record()?;
    (0..launches).try_for_each(|_| queue())?;
    Ok(f64::from(start.elapsed_ms(&stream.record()?)?) * 1e3 / launches as f64)
}

/// The median of the rounds, of which there is at least one, and how far they lie apart.
fn summed_up(mut times: Vec<f64>) -> Outcome {
    times.sort_by(f64::total_cmp);
    let at = |place: usize| times.get(place).copied().unwrap_or_default();
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
    fn rounds_are_timed_by_events_in_turns() {
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
