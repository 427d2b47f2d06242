//! Contestants in turns: the rounds of a shape.
//!
//! A slice is many launches of one contestant one after the other, first some that do not count, so
//! that clock and cache are those of that contestant alone. In a round each has one slice, in
//! changing order; ratios are taken within a round. The launches of a slice are recorded as graphs,
//! so that none waits for the host.

use std::thread;
use std::time::Duration;

use tma_runtime::prelude::*;

use super::contestants::Contestant;
use super::precision::Precision;
use super::problem::{Matrices, Problem};
use super::report::{Measured, of_speeds};
use crate::gpu::bench::libraries::driver::{Driver, Recorded};
use crate::gpu::bench::libraries::nvml::{Nvml, State};

/// Launches of a graph, at most.
const PER_GRAPH: usize = 50;

/// What measures besides events; a simulated device has neither.
#[derive(Default)]
pub struct Instruments {
    /// Records graphs.
    pub driver: Option<Driver>,
    /// Reads clock and power.
    pub nvml: Option<Nvml>,
}

/// How a contestant is launched in a slice.
struct Slice<'a> {
    /// Launches of a repetition, and of which graph.
    launches: usize,
    graph: Option<Recorded<'a>>,
    repetitions: usize,
}

/// Where and how contestants are measured.
#[derive(Clone, Copy)]
pub struct Race<'a> {
    /// The stream that all use.
    pub stream: &'a Stream,
    /// See [`Instruments`].
    pub instruments: &'a Instruments,
    /// Rounds.
    pub rounds: usize,
    /// Milliseconds of a slice.
    pub slice_ms: f64,
}

impl<'a> Race<'a> {
    /// What each contestant reaches in each round.
    ///
    /// # Errors
    ///
    /// Those of the launches and of the instruments.
    pub fn run<P: Precision>(
        &self,
        problem: &mut Problem<P>,
        contestants: &[Contestant<'_, P>],
    ) -> anyhow::Result<Vec<Vec<Measured>>> {
        let operations = problem.operations();
        let matrices = &mut problem.matrices;
        let slices = contestants.iter().map(|contestant| self.slice(contestant, matrices));
        let slices = slices.collect::<anyhow::Result<Vec<_>>>()?;
        let mut measured = vec![vec![]; contestants.len()];
        for round in 0..self.rounds {
            for index in order(round, contestants.len()) {
                let (milliseconds, state) = self.turn(&contestants[index], &slices[index], matrices)?;
                let launches = slices[index].launches * slices[index].repetitions;
                let tflops = operations * launches as f64 / milliseconds / 1e9;
                measured[index].push(Measured { tflops, state });
            }
        }
        Ok(measured)
    }

    /// How often a contestant is launched in a slice, recorded if that is possible.
    fn slice<P: Precision>(
        &self,
        contestant: &Contestant<'_, P>,
        matrices: &mut Matrices<P>,
    ) -> anyhow::Result<Slice<'a>> {
        let mut milliseconds = |launches| {
            let start = self.stream.record()?;
            (0..launches).try_for_each(|_| contestant.multiply(self.stream, matrices))?;
            anyhow::Ok(f64::from(start.elapsed_ms(&self.stream.record()?)?))
        };
        milliseconds(2)?;
        let one = milliseconds(4)? / 4.0;
        let wanted = (self.slice_ms / one).ceil().clamp(1.0, 1e5) as usize;
        let launches = wanted.min(PER_GRAPH);
        let recorded = self.instruments.driver.as_ref().map(|driver| {
            driver.record(self.stream, || {
                (0..launches).try_for_each(|_| contestant.multiply(self.stream, matrices))
            })
        });
        Ok(Slice { launches, graph: recorded.transpose()?, repetitions: wanted.div_ceil(launches) })
    }

    /// A slice of a contestant: its milliseconds, and how the GPU was in the middle of it.
    fn turn<P: Precision>(
        &self,
        contestant: &Contestant<'_, P>,
        slice: &Slice<'_>,
        matrices: &mut Matrices<P>,
    ) -> anyhow::Result<(f64, Option<State>)> {
        let mut repeat = |repetitions: usize| {
            (0..repetitions).try_for_each(|_| match &slice.graph {
                // SAFETY: `matrices` are those of the graph, and borrowed.
                Some(graph) => unsafe { graph.launch() },
                None => (0..slice.launches).try_for_each(|_| contestant.multiply(self.stream, matrices)),
            })
        };
        repeat(slice.repetitions.div_ceil(4))?;
        let start = self.stream.record()?;
        repeat(slice.repetitions)?;
        let end = self.stream.record()?;
        let state = match &self.instruments.nvml {
            Some(nvml) => {
                thread::sleep(Duration::from_secs_f64(self.slice_ms * 0.75 / 1e3));
                Some(nvml.state()?)
            }
            None => None,
        };
        Ok((f64::from(start.elapsed_ms(&end)?), state))
    }
}

/// The contestants in a round: each begins as often as any other, and every other round runs
/// backwards, so that neighbours change.
fn order(round: usize, count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |turn| {
        let turn = if round.is_multiple_of(2) { turn } else { count - 1 - turn };
        (round / 2 + turn) % count
    })
}

/// The algorithm of `contestants` that is fastest in a short race, by its index.
///
/// # Errors
///
/// As [`Race::run`].
pub fn fastest<P: Precision>(
    race: &Race<'_>,
    problem: &mut Problem<P>,
    contestants: &[Contestant<'_, P>],
) -> anyhow::Result<Option<usize>> {
    let short = Race { rounds: 5, slice_ms: race.slice_ms / 4.0, ..*race };
    let measured = short.run(problem, contestants)?;
    let medians: Vec<f64> = measured.iter().map(|rounds| of_speeds(rounds).median).collect();
    Ok((0..medians.len()).max_by(|&a, &b| medians[a].total_cmp(&medians[b])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_contestant_runs_once_a_round_and_begins_as_often_as_any_other() {
        for count in 1..6 {
            let rounds: Vec<Vec<usize>> = (0..2 * count).map(|round| order(round, count).collect()).collect();
            for index in 0..count {
                assert!(rounds.iter().all(|round| round.contains(&index)), "{rounds:?}");
                assert_eq!(rounds.iter().filter(|round| round[0] == index).count(), 2, "{rounds:?}");
            }
        }
    }
}
