//! Measures what kernels reach on a GPU: the examples against the driver's own copy, forms of one task against each
//! other, and launches against the driver's own launch.

pub mod additions;
pub mod copies;
pub mod kernels;
pub mod launches;
pub mod measure;
pub mod streams;

use tma_runtime::Device;

use self::measure::Plan;
use super::runner::Tally;

/// Something to measure.
struct Benchmark {
    name: &'static str,
    contestants: &'static [&'static str],
    /// Prints JSON lines; says of each target whether it is met.
    run: fn(&Device, &Plan) -> anyhow::Result<Vec<bool>>,
}

const BENCHMARKS: [Benchmark; 4] = [
    Benchmark { name: "copies", contestants: copies::CONTESTANTS, run: copies::run },
    Benchmark { name: "reduce_add", contestants: additions::CONTESTANTS, run: additions::run },
    Benchmark { name: "multicast", contestants: streams::CONTESTANTS, run: streams::run },
    Benchmark { name: "launch_overhead", contestants: launches::CONTESTANTS, run: launches::run },
];

/// Measures what is planned and prints a JSON line a result.
///
/// # Errors
///
/// Those of the device, and a contestant that computes something wrong.
pub fn run(device: &Device, plan: &Plan) -> anyhow::Result<Tally> {
    let mut verdicts = vec![];
    for benchmark in BENCHMARKS {
        if benchmark.contestants.iter().any(|contestant| plan.names(benchmark.name, contestant)) {
            verdicts.extend((benchmark.run)(device, plan)?);
        }
    }
    let passed = verdicts.iter().filter(|&&met| met).count();
    Ok(Tally { passed, failed: verdicts.len() - passed })
}
