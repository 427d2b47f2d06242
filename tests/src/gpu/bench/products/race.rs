//! The rounds of a shape, with contestants in alternation. Each contestant has one slice per round.
//! The order changes so that no contestant always follows the same one; ratios are taken within a
//! round.

use super::contestants::Contestant;
use super::precision::Precision;
use super::problem::Problem;
use super::report::of_speeds;
use crate::gpu::bench::slices::{Measured, Slices};
use tma_runtime::tune::turns;

/// The number of rounds, and how each slice runs.
#[derive(Clone, Copy)]
pub struct Race<'a> {
    /// How each slice runs.
    pub slices: Slices<'a>,
    /// The number of rounds.
    pub rounds: usize,
}

impl Race<'_> {
    /// Measures each contestant in each round.
    ///
    /// # Errors
    ///
    /// Errors of the launches and of the instruments.
    pub fn run<P: Precision>(
        &self,
        problem: &mut Problem<P>,
        contestants: &[Contestant<'_, P>],
    ) -> anyhow::Result<Vec<Vec<Measured>>> {
        let (stream, operations) = (self.slices.stream, problem.operations());
        let matrices = &mut problem.matrices;
        let prepare = |contestant: &Contestant<'_, P>| {
            self.slices.prepare(&mut || contestant.multiply(stream, matrices))
        };
        let slices = contestants.iter().map(prepare).collect::<anyhow::Result<Vec<_>>>()?;
        let mut slice = |index: usize| {
            let mut queue = || contestants[index].multiply(stream, matrices);
            // SAFETY: `matrices` are those of the graph, and are borrowed.
            unsafe { self.slices.run(&slices[index], operations, &mut queue) }
        };
        let mut measured = vec![vec![]; contestants.len()];
        for index in turns(0, contestants.len()) {
            slice(index)?; // warms the chip up
        }
        for round in 0..self.rounds {
            for index in turns(round, contestants.len()) {
                measured[index].push(slice(index)?);
            }
        }
        Ok(measured)
    }

    /// Returns the fastest of the contestants in a short race, or `None` if there are none.
    ///
    /// # Errors
    ///
    /// The errors of [`run`](Self::run).
    pub fn fastest<P: Precision>(
        &self,
        problem: &mut Problem<P>,
        contestants: &[Contestant<'_, P>],
    ) -> anyhow::Result<Option<usize>> {
        let slices = Slices { slice_ms: self.slices.slice_ms / 4.0, ..self.slices };
        let measured = Self { slices, rounds: 5 }.run(problem, contestants)?;
        let medians: Vec<f64> = measured.iter().map(|rounds| of_speeds(rounds).median).collect();
        Ok((0..medians.len()).max_by(|&a, &b| medians[a].total_cmp(&medians[b])))
    }
}
