//! Interleaved measurements of contestants.
//!
//! Each contestant runs once per round. The order changes so that no contestant always follows the
//! same one: clocks, temperature and cache contents favour none. Ratios are taken within a round.

use std::ops::Range;

use tma_runtime::prelude::*;
use tma_runtime::tune::turns;

use super::products;

/// The number of rounds before those that are measured.
pub const WARM_UP: usize = 6;
const ROUNDS: usize = 200;

/// The number of launches of a contestant in a round.
const LAUNCHES: usize = 4;

/// The benchmarks to run, and how.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Only contestants whose `benchmark/contestant` contains this text. A benchmark is measured
    /// with all its contestants or not at all.
    pub only: String,
    /// Instead of measuring, launches each contestant this many times: for a profiler.
    pub launches: Option<usize>,
    /// Instead of measuring, checks the results of the contestants, in benchmarks that can.
    pub check_only: bool,
    /// How GEMMs are measured.
    pub products: products::Options,
}

impl Plan {
    /// Returns whether the plan includes this contestant of a benchmark.
    pub fn names(&self, benchmark: &str, contestant: &str) -> bool {
        format!("{benchmark}/{contestant}").contains(&self.only)
    }
}

/// Measures the bandwidth of each of `contestants` in each round, in GB/s. Each comes with the
/// bytes that it moves, and `launch` queues the contestant of an index. Returns `None` if the plan
/// is only to launch them.
///
/// # Errors
///
/// Errors of the launches.
pub fn interleaved(
    plan: &Plan,
    benchmark: &str,
    contestants: &[(&str, u64)],
    stream: &Stream,
    mut launch: impl FnMut(usize, &Stream) -> Result<(), Error>,
) -> Result<Option<Vec<Vec<f64>>>, Error> {
    if let Some(launches) = plan.launches {
        for (index, (name, _)) in contestants.iter().enumerate() {
            if plan.names(benchmark, name) {
                (0..launches).try_for_each(|_| launch(index, stream))?;
                stream.synchronize()?;
                println!("{{\"benchmark\": \"{benchmark}/{name}\", \"launches\": {launches}}}");
            }
        }
        return Ok(None);
    }
    let mut speeds = vec![vec![]; contestants.len()];
    for round in 0..WARM_UP + ROUNDS {
        for index in turns(round, contestants.len()) {
            let start = stream.record()?;
            (0..LAUNCHES).try_for_each(|_| launch(index, stream))?;
            let seconds = f64::from(start.elapsed_ms(&stream.record()?)?) / 1e3;
            if round >= WARM_UP {
                speeds[index].push(contestants[index].1 as f64 * LAUNCHES as f64 / seconds / 1e9);
            }
        }
    }
    Ok(Some(speeds))
}

/// Returns the distribution of the ratios of one contestant's figures to another's, round by round.
pub fn ratio(figures: &[f64], to: &[f64]) -> Spread {
    Spread::of(&figures.iter().zip(to).map(|(figure, to)| figure / to).collect::<Vec<_>>())
}

/// Prints the speed of every contestant.
pub fn print_speeds(benchmark: &str, contestants: &[(&str, u64)], speeds: &[Vec<f64>]) {
    for ((name, _), speeds) in contestants.iter().zip(speeds) {
        let Spread { median, width } = Spread::of(speeds);
        println!(
            "{{\"benchmark\": \"{benchmark}/{name}\", \"gb_per_s\": {median:.1}, \"spread\": {width:.4}}}"
        );
    }
}

/// Compares the fastest of the `candidates` with the fastest of the `references`, which are not
/// empty: prints their ratio, and returns whether it is at least `target`.
pub fn compare(
    benchmark: &str,
    contestants: &[(&str, u64)],
    speeds: &[Vec<f64>],
    candidates: Range<usize>,
    references: Range<usize>,
    target: f64,
) -> bool {
    let median = |index: usize| Spread::of(&speeds[index]).median;
    let faster = |a: usize, b: usize| if median(b) > median(a) { b } else { a };
    let fastest = |of: Range<usize>| of.clone().fold(of.start, faster);
    let (candidate, reference) = (fastest(candidates), fastest(references));
    let Spread { median, width } = ratio(&speeds[candidate], &speeds[reference]);
    println!(
        "{{\"benchmark\": \"{benchmark}\", \"fastest\": \"{}\", \"against\": \"{}\", \"ratio\": {median:.4}, \
         \"spread\": {width:.4}, \"wanted\": {target:.2}}}",
        contestants[candidate].0, contestants[reference].0
    );
    median >= target
}

/// The median and the spread of some measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The distance between the 10th and the 90th percentile, relative to the median.
    pub width: f64,
}

impl Spread {
    /// Computes the spread of `values`.
    pub fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |part: f64| sorted[((sorted.len() - 1) as f64 * part).round() as usize];
        Self { median: at(0.5), width: (at(0.9) - at(0.1)) / at(0.5) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_leaves_out_what_is_far_off() {
        let mut values: Vec<f64> = (0..=100).map(|i| 100.0 + f64::from(i)).collect();
        assert_eq!(Spread::of(&values), Spread { median: 150.0, width: 80.0 / 150.0 });
        values[3] = 1e9;
        assert!(Spread::of(&values).width < 0.6);
    }

    #[test]
    fn the_fastest_of_each_side_are_compared() {
        let contestants = [("a", 1), ("b", 1), ("c", 1), ("d", 1)];
        let speeds = [90.0, 96.0, 100.0, 80.0].map(|speed| vec![speed; 5]);
        let compare = |candidates, references, target| {
            compare("test", &contestants, &speeds, candidates, references, target)
        };
        assert!(compare(0..2, 2..4, 0.96));
        assert!(!compare(0..2, 2..4, 0.97));
        assert!(compare(0..3, 3..4, 1.25));
        assert!(compare(1..2, 3..4, 1.2));
    }

    #[test]
    fn a_plan_names_benchmarks_and_contestants() {
        let plan = |only: &str| Plan { only: only.to_owned(), ..Plan::default() };
        assert!(plan("").names("multicast", "load_by_each::six"));
        assert!(plan("multicast/").names("multicast", "load_by_each::six"));
        assert!(plan("each::six").names("multicast", "load_by_each::six"));
        assert!(!plan("each::twelve").names("multicast", "load_by_each::six"));
    }
}
